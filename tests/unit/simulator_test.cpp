// A thousand seeded clusters and programs. A seed that fails is named and replays alone: ROTA_SIMULATE_SEED=17
// simulator_test, with ROTA_SIMULATE_TRACE=1 message by message.
#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>

#include "runtime/simulator/simulation.h"
#include "runtime/simulator/throughput.h"

namespace {

using rota::simulator::simulate;
using rota::simulator::summary;

class seeds : public testing::TestWithParam<std::uint64_t> {};

constexpr std::uint64_t seeds_a_case = 125;

TEST_P(seeds, hold_the_invariants) {
  summary sum;
  for (std::uint64_t seed = GetParam(); seed < GetParam() + seeds_a_case; ++seed) {
    try {
      const summary one = simulate(seed, false);
      sum.tasks += one.tasks;
      sum.calls += one.calls;
      sum.values_checked += one.values_checked;
      sum.lost += one.lost;
      sum.copies += one.copies;
      sum.refused += one.refused;
      sum.head.retried += one.head.retried;
      sum.head.recalled += one.head.recalled;
    } catch (const std::exception& e) {
      FAIL() << "ROTA_SIMULATE_SEED=" << seed << ": " << e.what();
    }
  }
  // Programs that did nothing would prove nothing.
  EXPECT_GT(sum.tasks, 1000u);
  EXPECT_GT(sum.calls, 100u);
  EXPECT_GT(sum.values_checked, 1000u);
  EXPECT_GT(sum.lost, 10u);
  EXPECT_GT(sum.copies, 100u);
  EXPECT_GT(sum.refused, 0u);
  EXPECT_GT(sum.head.retried, 10u);
  EXPECT_GT(sum.head.recalled, 10u);
}

INSTANTIATE_TEST_SUITE_P(simulator, seeds, testing::Values(1, 126, 251, 376, 501, 626, 751, 876));

TEST(simulator, replays_one_seed) {
  const char* seed = std::getenv("ROTA_SIMULATE_SEED");
  const std::uint64_t number = seed ? std::strtoull(seed, nullptr, 0) : 1;
  const summary first = simulate(number, std::getenv("ROTA_SIMULATE_TRACE") != nullptr);
  const summary again = simulate(number, false);
  EXPECT_EQ(first.events, again.events);
  EXPECT_EQ(first.values_checked, again.values_checked);
}

TEST(simulator, schedules_each_task_once_on_many_ranks) {
  EXPECT_GT(rota::simulator::simulate_throughput(1'000, 50'000).tasks_per_second, 0.0);
}

}  // namespace
