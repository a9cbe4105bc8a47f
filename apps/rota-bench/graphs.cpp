// Tasks that need one another.

#include <rota/rota.h>

#include <atomic>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "apps/rota-bench/bench.h"
#include "apps/rota-bench/peers.h"

namespace bench {
namespace {

constexpr int links = 100'000;
constexpr double mega = 1e-6;
constexpr double micro = 1e6;

int next(int x) { return x + 1; }
int leaf(int x) { return x; }
int add(int a, int b) { return a + b; }

// Microseconds a link of a chain whose even links `even` submits and whose odd ones `odd` does.
double walk_chain(const char* bench, const rota::remote_function<next>& even, const rota::remote_function<next>& odd) {
  int last = 0;
  const double seconds = seconds_of([&] {
    rota::ref<int> end = even(0);
    for (int i = 1; i < links; ++i) end = i % 2 == 0 ? even(end) : odd(end);
    last = end.get();
  });
  expect(last == links, bench, "wrong result");
  return seconds / links * micro;
}

double sum_tree() {
  constexpr int leaves = 131'072;
  int sum = 0;
  const double seconds = seconds_of([&] {
    std::vector<rota::ref<int>> level;
    level.reserve(leaves);
    for (int i = 0; i < leaves; ++i) level.push_back(rota::remote<leaf>(i % 100));
    for (; level.size() > 1; level.resize(level.size() / 2)) {
      for (std::size_t i = 0; i < level.size() / 2; ++i) level[i] = rota::remote<add>(level[2 * i], level[2 * i + 1]);
    }
    sum = level.front().get();
  });
  int right = 0;
  for (int i = 0; i < leaves; ++i) right += i % 100;
  expect(sum == right, "tree", "wrong sum");
  return (2 * leaves - 1) * mega / seconds;
}

// Most threads that this process was seen to have; looking costs some microseconds, so not every task does.
std::atomic<int> most_threads{0};

int threads_now() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Threads:")) return std::stoi(line.substr(8));
  }
  return 0;
}

int note_threads() {
  const int now = threads_now();
  int most = most_threads.load();
  while (most < now && !most_threads.compare_exchange_weak(most, now)) {
  }
  return most_threads.load();
}

int fib(int n) {
  thread_local unsigned calls = 0;
  if (++calls % 512 == 0) note_threads();
  if (n < 2) return n;
  const rota::ref<int> a = rota::remote<fib>(n - 1);
  const rota::ref<int> b = rota::remote<fib>(n - 2);
  return a.get() + b.get();
}

double nested_tasks() {
  constexpr int depth = 22;
  constexpr int fib_of_depth = 17'711;
  constexpr int tasks = 57'313;  // calls of fib in all
  int result = 0;
  const double seconds = seconds_of([&] { result = rota::remote<fib>(depth).get(); });
  expect(result == fib_of_depth, "nested", "wrong result");
  return tasks * mega / seconds;
}

// Slots of the rank with the fewest.
int slots_of_a_rank(const context& run) {
  return static_cast<int>(rota::cluster_resources().cpus) / std::max(run.ranks - 1, 1);
}

double ring_rate() { return ring_calls(200'000, 4096) * mega; }

constexpr const char* ring_is = "calls between two ranks over a bare ring with a map of futures";

}  // namespace

void run_chain(const context& run) {
  const auto& submit = rota::remote<next>;
  const medians found = alternate(
      run, "chain", [&] { return walk_chain("chain", submit, submit); }, [] { return 1 / ring_rate(); });
  report(run, {.bench = "chain",
               .value = found.rota,
               .unit = "us",
               .limit = found.limit,
               .limit_is = std::string("time of ") + ring_is});
}

void run_relay(const context& run) {
  const auto even = rota::remote<next>.with({.where = rota::on_rank(1)});
  const auto odd = rota::remote<next>.with({.where = rota::on_rank(2)});
  const medians found = alternate(
      run, "relay", [&] { return walk_chain("relay", even, odd); }, [] { return mpi_hop(20'000) * micro; });
  report(run, {.bench = "relay",
               .value = found.rota,
               .unit = "us",
               .limit = found.limit,
               .limit_is = "half an 8-byte MPI_Send/MPI_Recv round trip between ranks 1 and 2"});
}

void run_tree(const context& run) {
  const medians found = alternate(run, "tree", sum_tree, ring_rate);
  report(run,
         {.bench = "tree", .value = found.rota, .unit = "M/s", .limit = found.limit, .limit_is = std::string(ring_is)});
}

void run_nested(const context& run) {
  const medians found = alternate(run, "nested", nested_tasks, ring_rate);
  int most = 0;
  for (int rank = 1; rank < run.ranks; ++rank) {
    const auto there = rota::on_rank(static_cast<std::uint64_t>(rank));
    most = std::max(most, rota::remote<note_threads>.with({.where = there})().get());
  }
  report(run, {.bench = "nested",
               .value = found.rota,
               .unit = "M/s",
               .limit = found.limit,
               .limit_is = ring_is,
               .note = "at most " + std::to_string(most) + " threads in a rank"});
  const int allowed = 64 + slots_of_a_rank(run);
  expect(most <= allowed, "nested",
         "a rank had " + std::to_string(most) + " threads, more than " + std::to_string(allowed));
}

}  // namespace bench
