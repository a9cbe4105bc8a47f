#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

namespace rota::base {

// Records of one type named by 32-bit index, in pages that never move; an erased index is used again. Not
// thread-safe. Index 0 is never given out, so that 0 can mean "none".
template <class T>
class pool {
 public:
  std::uint32_t add() {
    if (!free_.empty()) {
      std::uint32_t index = free_.back();
      free_.pop_back();
      ++live_;
      return index;
    }
    if (next_ == pages_.size() * page_size) pages_.push_back(std::make_unique<T[]>(page_size));
    ++live_;
    return next_++;
  }

  void erase(std::uint32_t index) {
    (*this)[index] = T{};
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
  std::vector<std::unique_ptr<T[]>> pages_ = make_first();
  std::vector<std::uint32_t> free_;
  std::uint32_t next_ = 1;
  std::uint32_t live_ = 0;

  static std::vector<std::unique_ptr<T[]>> make_first() {
    std::vector<std::unique_ptr<T[]>> pages;
    pages.push_back(std::make_unique<T[]>(page_size));
    return pages;
  }
};

}  // namespace rota::base
