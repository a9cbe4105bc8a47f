#include "runtime/base/page_source.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace rota::base {

page_source::page_source(std::size_t page_bytes) : page_bytes_(page_bytes) {}

std::byte* page_source::next() {
  // A page that is larger than a region gets a region of its own.
  const std::size_t size = (std::max(page_bytes_, region_bytes) + region_bytes - 1) / region_bytes * region_bytes;
  if (left_ < page_bytes_) {
    auto* made = static_cast<std::byte*>(std::aligned_alloc(region_bytes, size));
    if (!made) throw std::bad_alloc();
    regions_.emplace_back(made);
    // The first region stays in small pages: most ranks never fill it. Advice that the system ignores does no harm.
    if (regions_.size() > 1) madvise(made, size, MADV_HUGEPAGE);
    left_ = size;
  }
  std::byte* page = regions_.back().get() + (size - left_);
  left_ -= page_bytes_;
  return page;
}

}  // namespace rota::base
