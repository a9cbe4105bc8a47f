#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace rota::base {

// Objects of one type in pages that stay until the slab goes; a freed place is used again, the latest first. What is
// still there when the slab goes is not destroyed. Not thread-safe.
template <class T>
class slab {
 public:
  template <class... A>
  T* make(A&&... args) {
    if (!free_) add_page();
    place* at = free_;
    free_ = at->next;
    return new (at->bytes) T(std::forward<A>(args)...);
  }

  void erase(T* object) {
    object->~T();
    auto* at = new (static_cast<void*>(object)) place;
    at->next = std::exchange(free_, at);
  }

 private:
  static constexpr std::size_t page_size = 256;
  union place {
    place* next;
    alignas(T) std::byte bytes[sizeof(T)];
  };

  void add_page() {
    pages_.push_back(std::make_unique_for_overwrite<place[]>(page_size));
    for (std::size_t i = page_size; i-- > 0;) pages_.back()[i].next = std::exchange(free_, &pages_.back()[i]);
  }

  std::vector<std::unique_ptr<place[]>> pages_;
  place* free_ = nullptr;
};

}  // namespace rota::base
