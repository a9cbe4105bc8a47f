#pragma once

#include <atomic>
#include <cstdlib>
#include <vector>

#include "runtime/wire/messages.h"

namespace rota::agent {

// elsewhere: it exists, in the store of another node.
enum class object_state : std::uint32_t { pending, elsewhere, ready, failed };

// What one rank knows of one object. Handles (rota::ref, array views) are counted by any thread; everything else is
// touched by the thread that holds the pump, and `state`, stored last with release, lets any thread that holds a
// handle read the value after an acquire load.
struct object {
  enum flag : std::uint16_t {
    counted = 1,     // the head has an account of this rank for it
    local = 2,       // the head does not know it: made here, named nowhere else
    pushed = 4,      // its value will come without asking
    pulled = 8,      // it has been asked for
    calling = 16,    // the result of an actor's call that has not returned
    lasting = 32,    // `contains` are held by handles, not by pins
    from_peer = 64,  // `source` sent the value; the head may not have it
    known_actor = 128,
    any_waits = 256,  // a call waits for any copy of the value
    wanted = 512,     // somebody here needs the bytes
  };

  explicit object(object_id name) : id(name) {}

  const object_id id;
  std::atomic<std::uint64_t> handles{0};  // low half: handles; high half: drops to none that the agent has not seen
  std::atomic<object_state> state{object_state::pending};
  std::uint16_t flags = 0;
  std::uint16_t attempt = 0;
  std::int32_t claims = 0;  // deliveries received less deliveries awaited
  std::uint32_t pins = 0;   // uses on this rank that the head covers: arguments of tasks here, values that contain it
  std::uint32_t loans =
      0;  // arguments of calls to actors here: the caller's hold covers them, until it hears the result
  std::uint32_t waiters = 0;  // jobs that wait for the value, oldest first
  std::uint32_t last_waiter = 0;
  std::uint32_t call = 0;  // calling: the pending call
  rank_t source = no_rank;

  // The value, once state says so.
  wire::value_kind kind = wire::value_kind::none;
  rank_t owner = no_rank;  // placed
  std::uint32_t contained = 0;
  std::uint64_t size = 0;
  union {
    std::byte small[16];  // inlined or failed, up to 16 bytes
    std::byte* large;     // inlined or failed, on the heap
    std::uint64_t place;  // placed
  };
  object** contains = nullptr;
  std::vector<wire::serve>* routes = nullptr;  // who gets the value when it is made here
  object* next_dropped = nullptr;              // for whoever was told by drop_handle, until agent::dropped

  bool has_value() const { return kind != wire::value_kind::none; }
  // REQUIRES: kind is inlined or failed.
  bytes_view bytes() const { return {size <= sizeof(small) ? small : large, size}; }
};

inline constexpr std::uint64_t one_drop = std::uint64_t{1} << 32;
inline std::uint32_t handle_count(const object& o) {
  return static_cast<std::uint32_t>(o.handles.load(std::memory_order_acquire));  // pairs with drop_handle
}
// It has handles, or the agent has still to hear that the last went: until then its account, and with it what its
// value contains, stays.
inline bool named(const object& o) { return o.handles.load(std::memory_order_acquire) != 0; }  // pairs with drop_handle
inline void add_handle(object& o) { o.handles.fetch_add(1, std::memory_order_relaxed); }

// Gives up a handle. True if it was the last and nobody has still to tell the agent so: the caller then does
// (agent::dropped).
inline bool drop_handle(object& o) {
  std::uint64_t seen = o.handles.load(std::memory_order_relaxed);
  for (;;) {
    bool last = static_cast<std::uint32_t>(seen) == 1;
    std::uint64_t next = last ? seen - 1 + one_drop : seen - 1;
    if (o.handles.compare_exchange_weak(seen, next, std::memory_order_acq_rel)) {  // pairs with handle_count
      return last && next == one_drop;
    }
  }
}
// The agent has heard that the last handle went, each time that it did.
inline void see_drops(object& o) {
  o.handles.fetch_and(one_drop - 1, std::memory_order_acq_rel);  // pairs with drop_handle
}

}  // namespace rota::agent
