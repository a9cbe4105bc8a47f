#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/base/page_source.h"

namespace rota::base {

// Records of one type named by 32-bit index, in pages that never move; an erased index is used again. Not
// thread-safe. Index 0 is never given out, so that 0 can mean "none".
template <class T>
class pool {
 public:
  pool() { add_page(); }
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;
  ~pool() {
    for (T* page : pages_) std::destroy_n(page, page_size);
  }

  std::uint32_t add() {
    ++live_;
    if (!free_.empty()) {
      std::uint32_t index = free_.back();
      free_.pop_back();
      return index;
    }
    if (next_ == pages_.size() * page_size) add_page();
    return next_++;
  }

  void erase(std::uint32_t index) {
    T* at = &(*this)[index];
    std::destroy_at(at);
    std::construct_at(at);
    free_.push_back(index);
    --live_;
  }

  T& operator[](std::uint32_t index) { return pages_[index / page_size][index % page_size]; }
  const T& operator[](std::uint32_t index) const { return pages_[index / page_size][index % page_size]; }

  std::uint32_t live() const { return live_; }
  // One past the highest index ever given out: bounds a walk over all (rare events only).
  std::uint32_t end() const { return next_; }

 private:
  static constexpr std::uint32_t page_size = 1024;

  void add_page() {
    auto* page = reinterpret_cast<T*>(memory_.next());
    std::uninitialized_value_construct_n(page, page_size);
    pages_.push_back(page);
  }

  page_source memory_{page_size * sizeof(T)};
  std::vector<T*> pages_;
  std::vector<std::uint32_t> free_;
  std::uint32_t next_ = 1;
  std::uint32_t live_ = 0;
};

}  // namespace rota::base
