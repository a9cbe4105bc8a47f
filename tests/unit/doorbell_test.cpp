#include "mpi/doorbell.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace {

using namespace std::chrono_literals;
using rota::mpi::doorbell;

// Sleeps until what `word` holds is no longer `old`, by the protocol of doorbell.h. No limit: a lost wake-up hangs.
int sleep_while(doorbell& bell, const std::atomic<int>& word, int old) {
  for (;;) {
    const std::uint32_t value = bell.prepare();
    // relaxed: the protocol's own fence has to order this
    if (word.load(std::memory_order_relaxed) == old) bell.wait(value);
    bell.awake();
    const int now = word.load(std::memory_order_acquire);
    if (now != old) return now;
  }
}

TEST(doorbell, loses_no_wake_up_of_20000_between_two_threads) {
  constexpr int rounds = 20'000;
  doorbell bells[2];
  std::atomic<int> ping{0}, pong{0};
  std::jthread peer([&] {
    for (int i = 1; i <= rounds; ++i) {
      ASSERT_EQ(sleep_while(bells[1], ping, i - 1), i);
      pong.store(i, std::memory_order_release);
      rota::mpi::ring_if_sleeping(bells[0]);
    }
  });
  for (int i = 1; i <= rounds; ++i) {
    ping.store(i, std::memory_order_release);
    rota::mpi::ring_if_sleeping(bells[1]);
    ASSERT_EQ(sleep_while(bells[0], pong, i - 1), i);
  }
}

TEST(doorbell, loses_no_wake_up_from_a_ringer_that_never_waits) {
  constexpr int last = 200'000;
  doorbell bell;
  std::atomic<int> word{0};
  std::jthread ringer([&] {
    for (int i = 1; i <= last; ++i) {
      word.store(i, std::memory_order_release);
      rota::mpi::ring_if_sleeping(bell);
    }
  });
  int seen = 0;
  while (seen != last) seen = sleep_while(bell, word, seen);
}

TEST(doorbell, is_not_rung_for_an_owner_that_is_awake) {
  doorbell bell;
  rota::mpi::ring_if_sleeping(bell);
  EXPECT_EQ(bell.counter.load(), 0u);
  bell.prepare();
  rota::mpi::ring_if_sleeping(bell);
  EXPECT_EQ(bell.counter.load(), 1u);
  bell.awake();
  rota::mpi::ring_if_sleeping(bell);
  EXPECT_EQ(bell.counter.load(), 1u);
  rota::mpi::ring(bell);
  EXPECT_EQ(bell.counter.load(), 2u);
}

TEST(doorbell, a_ring_between_prepare_and_wait_is_not_slept_over) {
  doorbell bell;
  const std::uint32_t value = bell.prepare();
  rota::mpi::ring_if_sleeping(bell);
  bell.wait(value);  // would never return
  bell.awake();
}

TEST(doorbell, wait_ends_at_its_limit) {
  doorbell bell;
  const auto before = std::chrono::steady_clock::now();
  bell.wait(bell.prepare(), 20ms);
  bell.awake();
  EXPECT_GE(std::chrono::steady_clock::now() - before, 15ms);  // may also be woken for no reason, hardly here
}

}  // namespace
