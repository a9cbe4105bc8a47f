// Large values.

#include <rota/rota.h>

#include <cstring>
#include <memory>
#include <vector>

#include "apps/rota-bench/bench.h"
#include "apps/rota-bench/fresh_memory.h"

namespace bench {
namespace {

constexpr std::size_t count = std::size_t{8} << 20;
constexpr std::size_t bytes = count * sizeof(double);  // 64 MiB
constexpr double gigabytes = bytes * 1e-9;

double copy_rate(const fresh_memory& to, const std::vector<double>& from) {
  const double seconds = seconds_of([&] { std::memcpy(to.data(), from.data(), bytes); });
  expect(static_cast<const double*>(to.data())[count - 1] == from.back(), "put_copy", "memcpy did not copy");
  return gigabytes / seconds;
}

rota::array_builder<double> make_here(double value) {
  auto made = rota::make_array<double>(count);
  std::fill(made.begin(), made.end(), value);
  return made;
}

}  // namespace

void run_put_copy(const context& run) {
  const std::vector<double> values(count, 1.5);

  // So that no put of this process finds memory that another has used.
  static std::vector<rota::ref<std::vector<double>>> kept;
  const auto put_fresh = [&] { return gigabytes / seconds_of([&] { kept.push_back(rota::put(values)); }); };
  const medians fresh = alternate(
      run, "put_copy", put_fresh, [&] { return copy_rate(fresh_memory(bytes), values); }, 0);
  report(run, {.bench = "put_copy",
               .value = fresh.rota,
               .unit = "GB/s",
               .limit = fresh.limit,
               .limit_is = "memcpy to fresh MAP_SHARED memory"});

  const fresh_memory used(bytes);
  const auto put_warm = [&] {
    rota::ref<std::vector<double>> dropped;
    return gigabytes / seconds_of([&] { dropped = rota::put(values); });
  };
  const medians warm = alternate(
      run, "put_copy_warm", put_warm, [&] { return copy_rate(used, values); }, 2);
  report(run, {.bench = "put_copy_warm",
               .value = warm.rota,
               .unit = "GB/s",
               .limit = warm.limit,
               .limit_is = "memcpy to MAP_SHARED memory written before"});
}

void run_put_array(const context& run) {
  std::vector<rota::ref<rota::array<double>>> kept;
  const auto put_filled = [&] { return gigabytes / seconds_of([&] { kept.push_back(rota::put(make_here(2.5))); }); };
  const auto fill = [] {
    const fresh_memory to(bytes);
    return gigabytes / seconds_of([&] { std::fill_n(static_cast<double*>(to.data()), count, 2.5); });
  };
  const medians found = alternate(run, "put_array", put_filled, fill, 0);
  for (const auto& ref : kept) expect(ref.get().back() == 2.5, "put_array", "wrong values");
  report(run, {.bench = "put_array",
               .value = found.rota,
               .unit = "GB/s",
               .limit = found.limit,
               .limit_is = "the same fill of fresh MAP_SHARED memory"});
}

void run_get_view(const context& run) {
  constexpr int gets = 10'000;
  constexpr double micro = 1e6;
  const auto made = rota::remote<make_here>.with({.where = rota::on_rank(1)})(3.5);
  rota::wait(std::vector{made});
  double first = 0;
  const auto get_often = [&] {
    double sum = 0;
    const double seconds = seconds_of([&] {
      for (int i = 0; i < gets; ++i) sum += made.get()[static_cast<std::size_t>(i)];
    });
    expect(sum == gets * 3.5, "get_view", "wrong values");
    return seconds / gets * micro;
  };
  first = seconds_of([&] { expect(made.get().size() == count, "get_view", "wrong size"); }) * micro;
  const fresh_memory copy(bytes);
  const rota::array<double> values = made.get();
  const auto copy_all = [&] { return seconds_of([&] { std::memcpy(copy.data(), values.data(), bytes); }) * micro; };
  const medians found = alternate(run, "get_view", get_often, copy_all);
  report(run, {.bench = "get_view",
               .value = found.rota,
               .unit = "us",
               .limit = found.limit,
               .limit_is = "memcpy of the array's 64 MiB to memory written before",
               .note = "the first get took " + std::to_string(first) + " us"});
}

}  // namespace bench
