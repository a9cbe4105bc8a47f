#pragma once

#include <tsl/robin_map.h>

#include <array>
#include <memory>
#include <utility>

#include "runtime/base/types.h"

namespace rota::base {

// Object id -> T, for ids that are dense per origin: pages of 64 consecutive ids behind a hash map, so that a run of
// ids costs one probe per page and sizeof(T) bytes each. T{} means "absent". Not thread-safe.
template <class T>
class id_map {
 public:
  // T{} where the id is absent.
  T find(object_id id) const {
    const page* found = find_page(id);
    return found ? found->slots[id % page_size] : T{};
  }

  // REQUIRES: value != T{}.
  void set(object_id id, T value) {
    page* p = find_page(id);
    if (!p) p = add_page(id);
    T& slot = p->slots[id % page_size];
    if (slot == T{}) {
      ++p->live;
      ++size_;
    }
    slot = value;
  }

  // The value of id; where it is absent, what make() gives (not T{}) becomes its value first. make() must not use the
  // map. True: it was absent.
  template <class F>
  std::pair<T, bool> find_or_add(object_id id, F&& make) {
    page* p = find_page(id);
    if (!p) p = add_page(id);
    T& slot = p->slots[id % page_size];
    if (!(slot == T{})) return {slot, false};
    slot = make();
    ++p->live;
    ++size_;
    return {slot, true};
  }

  void erase(object_id id) {
    page* p = find_page(id);
    if (!p || p->slots[id % page_size] == T{}) return;
    p->slots[id % page_size] = T{};
    --size_;
    if (--p->live == 0) keep_empty(id / page_size);
  }

  std::size_t size() const { return size_; }

  // Rare events only: walks everything.
  template <class F>
  void for_each(F&& use) const {
    for (const auto& [key, p] : pages_) {
      for (std::size_t i = 0; i < page_size; ++i) {
        if (!(p->slots[i] == T{})) use(key * page_size + i, p->slots[i]);
      }
    }
  }

 private:
  static constexpr std::size_t page_size = 64;
  struct page {
    std::array<T, page_size> slots{};
    std::uint32_t live = 0;
  };

  page* find_page(object_id id) const {
    if (last_ && last_key_ == id / page_size) return last_;
    auto found = pages_.find(id / page_size);
    if (found == pages_.end()) return nullptr;
    last_key_ = id / page_size;
    last_ = found->second.get();
    return last_;
  }

  page* add_page(object_id id) {
    last_ = pages_.emplace(id / page_size, std::make_unique<page>()).first->second.get();
    last_key_ = id / page_size;
    return last_;
  }

  // The page that was emptied last stays: where one id comes as another goes, none is made and freed each time.
  void keep_empty(std::uint64_t key) {
    const std::uint64_t before = std::exchange(empty_key_, key);
    if (before == key) return;
    auto found = pages_.find(before);
    if (found == pages_.end() || found->second->live > 0) return;
    if (last_ == found->second.get()) last_ = nullptr;
    pages_.erase(found);
  }

  // The page key is hashed by a multiplicative mix: std::hash of an integer is the identity, and robin_map takes the
  // low bits.
  struct mix {
    std::size_t operator()(std::uint64_t key) const { return (key * 0x9e37'79b9'7f4a'7c15u) >> 20; }
  };
  tsl::robin_map<std::uint64_t, std::unique_ptr<page>, mix> pages_;
  std::size_t size_ = 0;
  std::uint64_t empty_key_ = ~std::uint64_t{0};  // of the page that was emptied last; it may have been filled since
  mutable page* last_ = nullptr;
  mutable std::uint64_t last_key_ = 0;
};

}  // namespace rota::base
