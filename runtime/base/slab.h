#pragma once

#include <cstddef>
#include <new>
#include <utility>

#include "runtime/base/page_source.h"

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
    auto* page = reinterpret_cast<place*>(memory_.next());
    for (std::size_t i = page_size; i-- > 0;) (new (page + i) place)->next = std::exchange(free_, page + i);
  }

  page_source memory_{page_size * sizeof(place)};
  place* free_ = nullptr;
};

}  // namespace rota::base
