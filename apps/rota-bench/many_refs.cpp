// 10,000 refs at a time.

#include <rota/rota.h>

#include <numeric>
#include <vector>

#include "apps/rota-bench/bench.h"
#include "apps/rota-bench/peers.h"

namespace bench {
namespace {

constexpr int ref_count = 10'000;
constexpr double milli = 1e3;
constexpr long long right_sum = static_cast<long long>(ref_count) * (ref_count - 1) / 2;

using ref_list = std::vector<rota::ref<int>>;

int same(int x) { return x; }

ref_list make_refs() {
  ref_list refs;
  for (int i = 0; i < ref_count; ++i) refs.push_back(rota::put(i));
  return refs;
}

long long sum_of(const ref_list& refs) {
  const std::vector<int> values = rota::get(refs);
  return std::accumulate(values.begin(), values.end(), 0LL);
}

// Returns when the tasks submitted before have run on the other rank, without asking for their values: a later one did.
void let_them_run() { rota::remote<same>.with({.where = rota::on_rank(1)})(0).get(); }

ref_list results_of_tasks() {
  const auto submit = rota::remote<same>.with({.where = rota::on_rank(1)});
  ref_list refs;
  for (int i = 0; i < ref_count; ++i) refs.push_back(submit(i));
  let_them_run();
  return refs;
}

double get_results() {
  const ref_list refs = results_of_tasks();
  long long sum = 0;
  const double seconds = seconds_of([&] { sum = sum_of(refs); });
  expect(sum == right_sum, "many_refs", "wrong results");
  return seconds * milli;
}

double get_one_that_holds_them() {
  const auto whole = rota::remote<make_refs>.with({.where = rota::on_rank(1)})();
  let_them_run();
  ref_list refs;
  const double seconds = seconds_of([&] { refs = whole.get(); });
  expect(sum_of(refs) == right_sum, "many_refs_nested", "wrong values");
  return seconds * milli;
}

// The task gets the value of each.
double pass_as_arguments() {
  const ref_list refs = results_of_tasks();
  long long sum = 0;
  const double seconds = seconds_of([&] { sum = rota::remote<sum_of>.with({.where = rota::on_rank(1)})(refs).get(); });
  expect(sum == right_sum, "many_refs_arguments", "wrong sum");
  return seconds * milli;
}

void report_case(const context& run, const char* bench, double (*once)()) {
  const auto ring = [] { return ref_count / ring_calls(ref_count, ref_count) * milli; };
  const medians found = alternate(run, bench, once, ring);
  report(run, {.bench = bench,
               .value = found.rota,
               .unit = "ms",
               .limit = found.limit,
               .limit_is = "10,000 calls between two ranks over a bare ring with a map of futures"});
}

}  // namespace

void run_many_refs(const context& run) {
  report_case(run, "many_refs", get_results);
  report_case(run, "many_refs_nested", get_one_that_holds_them);
  report_case(run, "many_refs_arguments", pass_as_arguments);
}

}  // namespace bench
