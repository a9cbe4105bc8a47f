// A rank all of whose executors are in user code for seconds: others reach it meanwhile, and none is held up.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/ranks/session_help.h"

namespace {

using namespace std::chrono_literals;
using namespace rota::tests;
using rota::ref;
using rota::remote;
using moment = std::chrono::steady_clock::time_point;

moment now() { return std::chrono::steady_clock::now(); }

const bool offered = offer({{"ROTA_CPUS", "2"}});

constexpr auto busy_for = 3s;
constexpr std::size_t large = 4'000'000;  // doubles

// One computes, the others only hold their slots.
void keep_busy(const std::string& note, bool compute) {
  write_note(note);
  const moment end = now() + busy_for;
  if (!compute) return std::this_thread::sleep_until(end);
  while (now() < end) {
  }
}

struct listener {
  std::size_t heard = 0;
  std::size_t hear(const std::string& text) { return heard += text.size(); }
};

rota::array<double> ones() {
  auto made = rota::make_array<double>(large);
  std::fill(made.begin(), made.end(), 1.0);
  return made;
}

// More than a ring holds goes to the listener.
void talk(rota::actor_handle<listener> to) {
  std::vector<ref<std::size_t>> calls;
  for (int i = 0; i < 500; ++i) calls.push_back(to.call<&listener::hear>(std::string(4000, 't')));
  rota::get(calls);
}

double sum(const rota::array<double>& a) { return std::accumulate(a.begin(), a.end(), 0.0); }
int plus_one(int x) { return x + 1; }

TEST(busy, a_rank_that_computes_takes_calls_and_lends_values_and_holds_nobody_up) {
  ASSERT_TRUE(offered);
  const unsigned busy = workers().back(), other = workers().front();
  const auto there = rota::on_rank(busy);
  auto hears = rota::actor<listener>.with({.where = there})();
  hears.call<&listener::hear>("").get();
  const auto values = remote<ones>.with({.where = there})();
  rota::wait(std::vector{values});

  note_folder notes;
  std::vector<ref<void>> busy_slots;
  for (bool compute : {true, false}) {
    const std::string note = notes[compute ? "computes" : "waits"];
    busy_slots.push_back(remote<keep_busy>.with({.where = there})(note, compute));
    hold_slot_until(note);
  }
  talk(hears);
  EXPECT_EQ(values.get()[large - 1], 1.0);
  if (other != busy) {
    EXPECT_EQ(remote<sum>.with({.where = rota::on_rank(other)})(values).get(), double{large});
    remote<talk>.with({.where = rota::on_rank(other)})(hears).get();
    std::chrono::nanoseconds longest{0};
    for (int i = 0; i < 50; ++i) {
      const moment before = now();
      EXPECT_EQ(remote<plus_one>.with({.where = rota::on_rank(other)})(i).get(), i + 1);
      longest = std::max<std::chrono::nanoseconds>(longest, now() - before);
    }
    EXPECT_LT(longest, 1s);
  }
  EXPECT_FALSE(busy_slots[0].ready() || busy_slots[1].ready());
  rota::get(busy_slots);
}

TEST(busy, a_program_that_computes_holds_no_rank_up) {
  auto hears = rota::actor<listener>.with({.where = rota::on_rank(workers().back())})();
  const auto talking = remote<talk>.with({.where = rota::on_rank(workers().front())})(hears);
  const auto first = remote<ones>();
  const auto second = remote<sum>.with({.where = rota::on_rank(workers().back())})(first);
  const auto third = remote<plus_one>(remote<plus_one>(remote<plus_one>(1)));
  const moment end = now() + busy_for;
  while (now() < end) {
  }
  EXPECT_TRUE(talking.ready() && second.ready() && third.ready());
  EXPECT_EQ(second.get(), double{large});
}

}  // namespace
