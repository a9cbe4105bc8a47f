// Independent tasks.

#include <rota/rota.h>

#include <numeric>
#include <vector>

#include "apps/rota-bench/bench.h"
#include "apps/rota-bench/peers.h"

namespace bench {
namespace {

constexpr int task_count = 1'000'000;
constexpr int window = 4096;
constexpr double mega = 1e-6;

int next(int x) { return x + 1; }

long long sum_of_nexts(int count) { return static_cast<long long>(count) * (count + 1) / 2; }

void expect_nexts(const char* bench, const std::vector<int>& values) {
  expect(std::accumulate(values.begin(), values.end(), 0LL) == sum_of_nexts(static_cast<int>(values.size())), bench,
         "wrong results");
}

// Mega-tasks a second. The refs are dropped after the clock has stopped.
double submit_all_get_all(const char* bench) {
  std::vector<rota::ref<int>> refs;
  refs.reserve(task_count);
  std::vector<int> values;
  const double seconds = seconds_of([&] {
    for (int i = 0; i < task_count; ++i) refs.push_back(rota::remote<next>(i));
    values = rota::get(refs);
  });
  expect_nexts(bench, values);
  return task_count * mega / seconds;
}

double submit_in_window() {
  std::vector<rota::ref<int>> refs(window);
  long long sum = 0;
  const double seconds = seconds_of([&] {
    for (int i = 0; i < task_count; ++i) {
      rota::ref<int>& place = refs[static_cast<std::size_t>(i % window)];
      if (place) sum += place.get();
      place = rota::remote<next>(i);
    }
    for (const auto& left : refs) sum += left.get();
  });
  expect(sum == sum_of_nexts(task_count), "tasks_window", "wrong results");
  return task_count * mega / seconds;
}

double map_all() {
  std::vector<int> elements(task_count);
  std::iota(elements.begin(), elements.end(), 0);
  std::vector<rota::ref<int>> refs;
  std::vector<int> values;
  const double seconds = seconds_of([&] {
    refs = rota::map<next>(elements);
    values = rota::get(refs);
  });
  expect_nexts("map", values);
  return task_count * mega / seconds;
}

void report_rate(const context& run, const char* bench, const medians& found) {
  report(run, {.bench = bench,
               .value = found.rota,
               .unit = "M/s",
               .limit = found.limit,
               .limit_is = "calls between two ranks over a bare ring with a map of futures"});
}

double ring_rate(std::size_t in_flight) { return ring_calls(task_count, in_flight) * mega; }

void run_submit_all(const context& run, const char* bench) {
  report_rate(run, bench,
              alternate(
                  run, bench, [&] { return submit_all_get_all(bench); }, [] { return ring_rate(task_count); }));
}

}  // namespace

void run_roundtrip(const context& run) {
  constexpr int rounds = 20'000;
  constexpr double micro = 1e6;
  const auto rota_roundtrip = [] {
    long long sum = 0;
    const double seconds = seconds_of([&] {
      for (int i = 0; i < rounds; ++i) sum += rota::remote<next>(i).get();
    });
    expect(sum == sum_of_nexts(rounds), "roundtrip", "wrong results");
    return seconds / rounds * micro;
  };
  const medians found = alternate(run, "roundtrip", rota_roundtrip, [] { return mpi_roundtrip(rounds) * micro; });
  report(run, {.bench = "roundtrip",
               .value = found.rota,
               .unit = "us",
               .limit = found.limit,
               .limit_is = "8-byte MPI_Send/MPI_Recv round trip"});
}

void run_tasks(const context& run) { run_submit_all(run, "tasks"); }

void run_oversubscribed(const context& run) { run_submit_all(run, "oversubscribed"); }

void run_tasks_window(const context& run) {
  report_rate(run, "tasks_window", alternate(run, "tasks_window", submit_in_window, [] { return ring_rate(window); }));
}

void run_map(const context& run) {
  report_rate(run, "map", alternate(run, "map", map_all, [] { return ring_rate(task_count); }));
}

void run_tasks_nodes(const context& run) {
  const double rate = repeated(run, "tasks_nodes", [] { return submit_all_get_all("tasks_nodes"); });
  report(run, {.bench = "tasks_nodes", .value = rate, .unit = "M/s"});
}

}  // namespace bench
