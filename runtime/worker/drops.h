#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "runtime/agent/object.h"

namespace rota::detail {

// What handles and builders have let go of, until somebody at the pump takes it. Any thread adds, also one that has the
// pump, and an object takes no lock for it; in no particular order. Adding and any() are seq_cst: of a thread that adds
// and then looks whether somebody will come, and one that ceases to come and then looks here, one sees the other.
class drops {
 public:
  void add(agent::object& o) noexcept {
    o.next_dropped = objects_.load(std::memory_order_relaxed);  // relaxed: the exchange checks it
    while (!objects_.compare_exchange_weak(o.next_dropped, &o)) {
    }
  }
  void add_place(std::uint64_t cell) noexcept {
    std::lock_guard lock(places_mutex_);
    places_.push_back(cell);
    places_wait_.store(true);
  }

  bool any() const { return objects_.load() || places_wait_.load(); }

  // With the pump: use_object(object) and use_place(cell) for each that is here.
  template <class UseObject, class UsePlace>
  void take(UseObject&& use_object, UsePlace&& use_place) {
    for (agent::object* o = objects_.exchange(nullptr); o;) {
      agent::object* next = o->next_dropped;  // it may be dropped anew as soon as it is used
      use_object(*o);
      o = next;
    }
    if (!places_wait_.load(std::memory_order_acquire)) return;  // pairs with add_place
    {
      std::lock_guard lock(places_mutex_);
      taken_places_.swap(places_);
      places_wait_.store(false, std::memory_order_relaxed);  // relaxed: whoever sets it holds the lock
    }
    for (std::uint64_t cell : taken_places_) use_place(cell);
    taken_places_.clear();
  }

 private:
  std::atomic<agent::object*> objects_{nullptr};  // a stack by object::next_dropped
  std::atomic<bool> places_wait_{false};
  std::mutex places_mutex_;
  std::vector<std::uint64_t> places_;        // guarded by places_mutex_
  std::vector<std::uint64_t> taken_places_;  // with the pump
};

}  // namespace rota::detail
