#include "apps/rota-bench/bench.h"

#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace bench {
namespace {

constexpr std::array<benchmark, 25> table{{
    {"pending", "memory of rank 0 for each of 1,000,000 tasks held back by one argument", 2, run_pending},
    {"roundtrip", "one task at a time on the other rank", 2, run_roundtrip},
    {"tasks", "1,000,000 independent tasks: submit all, get all", 2, run_tasks},
    {"tasks_window", "the same with at most 4,096 in flight", 2, run_tasks_window},
    {"map", "1,000,000 elements by map", 2, run_map},
    {"oversubscribed", "tasks, on 4 ranks of 2 cores", 4, run_oversubscribed},
    {"chain", "100,000 tasks, each taking the ref of the one before", 2, run_chain},
    {"relay", "the same, alternating between ranks 1 and 2", 3, run_relay},
    {"tree", "pairwise sum of 131,072 leaves", 2, run_tree},
    {"nested", "fib(22) by tasks that get their children", 2, run_nested},
    {"actor_calls", "1,000,000 calls to one actor on the other rank", 2, run_actor_calls},
    {"actor_roundtrip", "one call to an actor at a time", 2, run_actor_roundtrip},
    {"put_copy", "put of a 64 MiB vector into fresh memory, and into memory used before", 1, run_put_copy},
    {"put_array", "make_array, fill and put, 64 MiB", 1, run_put_array},
    {"get_view", "get of a 64 MiB array made on the other rank", 2, run_get_view},
    {"spill", "4 times the store, in values of 8 MiB: put all, get all", 1, run_spill, 1, std::size_t{1} << 30},
    {"many_refs", "10,000 refs: in a get, in a value, in the arguments of a task", 2, run_many_refs},
    {"idle", "CPU seconds of all ranks over 2 idle seconds", 1, run_idle},
    {"startup", "rota::init to the first result from another rank", 1, run_startup},
    {"simulate", "the scheduler alone: 10,000 ranks, 1,000,000 tasks", 1, run_simulate},
    {"link_roundtrip", "one task at a time on another node", 2, run_link_roundtrip, 2},
    {"transfer", "get of 256 MiB from another node", 2, run_transfer, 2},
    {"many_small", "100,000 gets of 4 KiB from another node", 2, run_many_small, 2},
    {"broadcast", "64 MiB to all other nodes", 2, run_broadcast, 2},
    {"tasks_nodes", "tasks, over several nodes", 2, run_tasks_nodes, 2},
}};

// Four significant digits: more would be noise.
double rounded(double x) {
  if (x == 0 || !std::isfinite(x)) return x;
  const double scale = std::pow(10.0, 3 - std::floor(std::log10(std::fabs(x))));
  return std::round(x * scale) / scale;
}

}  // namespace

std::span<const benchmark> benchmarks() { return table; }

void report(const context& run, const finding& found) {
  show_progress("");
  nlohmann::ordered_json line;
  line["bench"] = found.bench;
  line["value"] = rounded(found.value);
  line["unit"] = found.unit;
  line["limit"] = nullptr;
  line["limit_is"] = nullptr;
  line["ratio"] = nullptr;
  if (found.limit) {
    line["limit"] = rounded(*found.limit);
    line["limit_is"] = found.limit_is;
    line["ratio"] = rounded(found.value / *found.limit);
  }
  line["ranks"] = run.ranks;
  if (!found.note.empty()) line["note"] = found.note;
  std::puts(line.dump().c_str());
  std::fflush(stdout);
}

void show_progress(std::string_view name, int done, int all) {
  static const bool terminal = isatty(STDERR_FILENO) == 1;
  if (!terminal) return;
  std::fputs("\r\x1b[K", stderr);
  if (!name.empty()) std::fprintf(stderr, "%.*s %d/%d", static_cast<int>(name.size()), name.data(), done, all);
}

void expect(bool right, const char* bench, const std::string& otherwise) {
  if (!right) throw std::runtime_error(std::string(bench) + ": " + otherwise);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace bench
