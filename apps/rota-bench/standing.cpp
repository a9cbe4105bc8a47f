// What rota costs while nothing runs, and before.

#include <rota/rota.h>
#include <sys/resource.h>

#include <chrono>
#include <thread>
#include <vector>

#include "apps/rota-bench/bench.h"

namespace bench {
namespace {

double seconds_in(const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6; }

// CPU time of this process so far.
double cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return seconds_in(used.ru_utime) + seconds_in(used.ru_stime);
}

double cpu_seconds_of_all(const context& run) {
  double sum = cpu_seconds();
  for (int rank = 1; rank < run.ranks; ++rank) {
    const auto there = rota::on_rank(static_cast<std::uint64_t>(rank));
    sum += rota::remote<cpu_seconds>.with({.where = there})().get();
  }
  return sum;
}

}  // namespace

void run_idle(const context& run) {
  const double used = repeated(run, "idle", [&] {
    const double before = cpu_seconds_of_all(run);
    std::this_thread::sleep_for(std::chrono::seconds(2));
    return cpu_seconds_of_all(run) - before;
  });
  report(run, {.bench = "idle", .value = used, .unit = "s"});
}

void run_startup(const context& run) {
  constexpr double milli = 1e3;
  report(run, {.bench = "startup",
               .value = run.startup_seconds * milli,
               .unit = "ms",
               .limit = run.mpi_init_seconds * milli,
               .limit_is = "MPI_Init_thread before it, not counted in the value",
               .note = "measured once: a process can start only once"});
}

}  // namespace bench
