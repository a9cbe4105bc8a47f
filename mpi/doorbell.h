#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "runtime/base/futex.h"

namespace rota::mpi {

// Wakes a rank that sleeps. Lies in the rank's slice; any thread of any rank of the node may ring, one thread of the
// owner at a time sleeps. All zero bytes are a valid doorbell at rest. Sleeping goes like this, and loses no wake-up:
//   value = bell.prepare(); look again at everything that may have come; if nothing: bell.wait(value); bell.awake();
// and whoever brings something publishes it first and then calls ring_if_sleeping.
struct doorbell {
  alignas(64) std::atomic<std::uint32_t> counter{0};   // written by all: every value is valid and means only "look"
  alignas(64) std::atomic<std::uint32_t> sleeping{0};  // written by the owner

  // Announces sleep and returns the value to wait on.
  std::uint32_t prepare() {
    // relaxed: an older value only makes wait() return at once; a later ring changes it.
    const std::uint32_t value = counter.load(std::memory_order_relaxed);
    sleeping.store(1, std::memory_order_relaxed);  // relaxed: ordered by the fence
    // pairs with the fence in ring_if_sleeping: either we see what was published or it sees that we sleep.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return value;
  }

  // Sleeps until rung after the prepare() that returned `value`, or for `limit`. May also return for no reason.
  void wait(std::uint32_t value, std::optional<std::chrono::nanoseconds> limit = std::nullopt) {
    base::futex_wait(counter, value, limit);
  }

  // Ends what prepare() began, whether wait() was called or not.
  void awake() {
    // relaxed: a ringer that still sees 1 rings in vain, no more.
    sleeping.store(0, std::memory_order_relaxed);
  }
};
static_assert(sizeof(doorbell) == 128);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

// Wakes the owner whether it says that it sleeps or not; for helper threads of its own that cannot know. ~1 µs.
inline void ring(doorbell& bell) {
  bell.counter.fetch_add(1);
  base::futex_wake(bell.counter, 1 << 30);
}

// To be called after publishing something for the owner. 3 ns when it is awake.
inline void ring_if_sleeping(doorbell& bell) {
  std::atomic_thread_fence(std::memory_order_seq_cst);                 // pairs with the fence in doorbell::prepare
  if (bell.sleeping.load(std::memory_order_relaxed) != 0) ring(bell);  // relaxed: ordered by the fence
}

}  // namespace rota::mpi
