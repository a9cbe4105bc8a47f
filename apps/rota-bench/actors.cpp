// Calls of actors.

#include <rota/rota.h>

#include <vector>

#include "apps/rota-bench/bench.h"
#include "apps/rota-bench/peers.h"

namespace bench {
namespace {

class counter {
 public:
  int add(int by) { return total_ += by; }

 private:
  int total_ = 0;
};

rota::actor_handle<counter> counter_on_other_rank() {
  auto made = rota::actor<counter>.with({.where = rota::on_rank(1)})();
  made.call<&counter::add>(0).get();
  return made;
}

}  // namespace

void run_actor_calls(const context& run) {
  constexpr int calls = 1'000'000;
  constexpr double mega = 1e-6;
  const auto call_all = [&] {
    const auto there = counter_on_other_rank();
    std::vector<rota::ref<int>> refs;
    refs.reserve(calls);
    std::vector<int> totals;
    const double seconds = seconds_of([&] {
      for (int i = 0; i < calls; ++i) refs.push_back(there.call<&counter::add>(1));
      totals = rota::get(refs);
    });
    for (int i = 0; i < calls; ++i) {
      expect(totals[static_cast<std::size_t>(i)] == i + 1, "actor_calls", "calls ran out of order");
    }
    return calls * mega / seconds;
  };
  const medians found = alternate(run, "actor_calls", call_all, [] { return ring_calls(calls, calls) * mega; });
  report(run, {.bench = "actor_calls",
               .value = found.rota,
               .unit = "M/s",
               .limit = found.limit,
               .limit_is = "calls between two ranks over a bare ring with a map of futures"});
}

void run_actor_roundtrip(const context& run) {
  constexpr int rounds = 20'000;
  constexpr double micro = 1e6;
  const auto there = counter_on_other_rank();
  const auto call_one_by_one = [&] {
    int before = there.call<&counter::add>(0).get();
    int after = 0;
    const double seconds = seconds_of([&] {
      for (int i = 0; i < rounds; ++i) after = there.call<&counter::add>(1).get();
    });
    expect(after == before + rounds, "actor_roundtrip", "wrong results");
    return seconds / rounds * micro;
  };
  const medians found =
      alternate(run, "actor_roundtrip", call_one_by_one, [] { return mpi_roundtrip(rounds) * micro; });
  report(run, {.bench = "actor_roundtrip",
               .value = found.rota,
               .unit = "us",
               .limit = found.limit,
               .limit_is = "8-byte MPI_Send/MPI_Recv round trip"});
}

}  // namespace bench
