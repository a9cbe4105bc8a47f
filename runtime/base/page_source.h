#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <vector>

namespace rota::base {

// Memory in pages of one size, which stay where they are until it goes. Where it becomes much, it lies in huge pages:
// walks over a million records otherwise spend their time on address translation. Not thread-safe.
class page_source {
 public:
  explicit page_source(std::size_t page_bytes);  // aligned to 64 bytes where page_bytes is

  // Uninitialised. Throws std::bad_alloc.
  std::byte* next();

 private:
  static constexpr std::size_t region_bytes = std::size_t{2} << 20;  // a huge page of x86-64 and of aarch64
  struct release {
    void operator()(std::byte* p) const { std::free(p); }
  };

  std::size_t page_bytes_;
  std::size_t left_ = 0;  // bytes of the last region
  std::vector<std::unique_ptr<std::byte, release>> regions_;
};

}  // namespace rota::base
