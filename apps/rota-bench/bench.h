#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"

namespace bench {

// What a benchmark is told about this run.
struct context {
  int repeats = 5;
  int ranks = 1;
  int nodes = 1;
  double mpi_init_seconds = 0;  // of this process
  double startup_seconds = 0;   // from rota::init to the first result from another rank, MPI being initialised before
};

// One line of output. The ratio is value / limit, for times and for rates alike; neither is printed without a limit.
struct finding {
  std::string bench;
  double value = 0;
  std::string unit;
  std::optional<double> limit{};
  std::string limit_is{};
  std::string note{};  // more numbers, for people
};
void report(const context& run, const finding& found);

// A subcommand. REQUIRES: `ranks` ranks at least, on one node, or (nodes > 1) on as many nodes at least; a store of
// `most_store` bytes at most, if that is not 0. run() reports one finding or more, and throws when a result is wrong.
struct benchmark {
  const char* name;
  const char* what;
  int ranks;
  void (*run)(const context&);
  int nodes = 1;
  std::size_t most_store = 0;
};

// In the order in which `all` runs them: pending first, since memory that others gave back would hide what it asks for.
std::span<const benchmark> benchmarks();

void run_pending(const context& run);
void run_roundtrip(const context& run);
void run_tasks(const context& run);
void run_tasks_window(const context& run);
void run_map(const context& run);
void run_oversubscribed(const context& run);
void run_chain(const context& run);
void run_relay(const context& run);
void run_tree(const context& run);
void run_nested(const context& run);
void run_actor_calls(const context& run);
void run_actor_roundtrip(const context& run);
void run_put_copy(const context& run);
void run_put_array(const context& run);
void run_get_view(const context& run);
void run_spill(const context& run);
void run_many_refs(const context& run);
void run_idle(const context& run);
void run_startup(const context& run);
void run_simulate(const context& run);
void run_link_roundtrip(const context& run);
void run_transfer(const context& run);
void run_many_small(const context& run);
void run_broadcast(const context& run);
void run_tasks_nodes(const context& run);

// Progress on stderr, on a terminal only; `done` of `all` repeats. An empty name wipes it.
void show_progress(std::string_view name, int done = 0, int all = 0);

// Throws a std::runtime_error that names the benchmark.
void expect(bool right, const char* bench, const std::string& otherwise);

double median(std::vector<double> values);

// Seconds that work() takes.
template <class Work>
double seconds_of(Work&& work) {
  const std::uint64_t start = rota::base::now_ns();
  work();
  return static_cast<double>(rota::base::now_ns() - start) * 1e-9;
}

// The median of what once() returns, over the repeats and after one run to warm up.
template <class Once>
double repeated(const context& run, const char* name, Once&& once) {
  std::vector<double> values;
  for (int i = -1; i < run.repeats; ++i) {
    show_progress(name, i + 1, run.repeats + 1);
    const double value = once();
    if (i >= 0) values.push_back(value);
  }
  return median(std::move(values));
}

struct medians {
  double rota = 0;
  double limit = 0;
};

// The same for two that take turns, so that both see the same machine.
template <class Rota, class Limit>
medians alternate(const context& run, const char* name, Rota&& rota, Limit&& limit, int warm_up = 1) {
  std::vector<double> ours, theirs;
  for (int i = -warm_up; i < run.repeats; ++i) {
    show_progress(name, i + warm_up, run.repeats + warm_up);
    const double our_value = rota();
    const double their_value = limit();
    if (i < 0) continue;
    ours.push_back(our_value);
    theirs.push_back(their_value);
  }
  return {median(std::move(ours)), median(std::move(theirs))};
}

}  // namespace bench
