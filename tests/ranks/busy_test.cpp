// A rank all of whose executors are in user code for long: others reach it meanwhile, and none is held up.
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

constexpr std::size_t large = 4'000'000;  // doubles

// Computes, or only holds its slot, until the file is there; false if that is not so after a minute.
bool stay_until(const std::string& file, bool compute) {
  const moment last = now() + 1min;
  while (!exists(file)) {
    const moment next = now() + 10ms;
    if (next > last) return false;
    if (!compute) std::this_thread::sleep_until(next);
    while (now() < next) {
    }
  }
  return true;
}

bool keep_busy(const std::string& note, bool compute, const std::string& end) {
  write_note(note);
  return stay_until(end, compute);
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
std::size_t talk(rota::actor_handle<listener> to) {
  std::vector<ref<std::size_t>> calls;
  for (int i = 0; i < 500; ++i) calls.push_back(to.call<&listener::hear>(std::string(4000, 't')));
  return rota::get(calls).back();
}

double sum(const rota::array<double>& a) { return std::accumulate(a.begin(), a.end(), 0.0); }
int plus_one(int x) { return x + 1; }
void note(const std::string& file, std::size_t, double, int) { write_note(file); }

TEST(busy, a_rank_that_computes_takes_calls_and_lends_values_and_holds_nobody_up) {
  ASSERT_TRUE(offered);
  const unsigned busy = workers().back(), other = workers().front();
  const auto there = rota::on_rank(busy);
  auto hears = rota::actor<listener>.with({.where = there})();
  hears.call<&listener::hear>("").get();
  const auto values = remote<ones>.with({.where = there})();
  rota::wait(std::vector{values});

  note_folder notes;
  const std::string end = notes["end"];
  std::vector<ref<bool>> busy_slots;
  for (bool compute : {true, false}) {
    const std::string note = notes[compute ? "computes" : "waits"];
    busy_slots.push_back(remote<keep_busy>.with({.where = there})(note, compute, end));
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
  write_note(end);
  EXPECT_EQ(rota::get(busy_slots), (std::vector{true, true}));
}

TEST(busy, a_program_that_computes_holds_no_rank_up) {
  auto hears = rota::actor<listener>.with({.where = rota::on_rank(workers().back())})();
  const auto talking = remote<talk>.with({.where = rota::on_rank(workers().front())})(hears);
  const auto first = remote<ones>();
  const auto second = remote<sum>.with({.where = rota::on_rank(workers().back())})(first);
  const auto third = remote<plus_one>(remote<plus_one>(remote<plus_one>(1)));
  note_folder notes;
  const std::string end = notes["end"];
  const auto last = remote<note>(end, talking, second, third);
  EXPECT_TRUE(stay_until(end, true));
  last.get();
  EXPECT_EQ(talking.get(), 500u * 4000);
  EXPECT_EQ(second.get(), double{large});
  EXPECT_EQ(third.get(), 4);
}

}  // namespace
