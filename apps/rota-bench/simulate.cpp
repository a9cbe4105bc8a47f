// The scheduler alone: no links, no agents, ranks that finish whatever they are given.

#include "apps/rota-bench/bench.h"
#include "runtime/simulator/throughput.h"

namespace bench {

void run_simulate(const context& run) {
  constexpr std::uint32_t ranks = 10'000;
  constexpr std::uint64_t tasks = 1'000'000;
  constexpr double mega = 1e-6;
  auto once = [] { return rota::simulator::simulate_throughput(ranks, tasks).tasks_per_second * mega; };
  report(run, {.bench = "simulate", .value = repeated(run, "simulate", once), .unit = "M/s"});
}

}  // namespace bench
