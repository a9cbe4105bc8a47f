// Programs that send faster than others take in.
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/ranks/session_help.h"

namespace {

using namespace rota::tests;
using rota::ref;
using rota::remote;

const bool offered = offer({{"ROTA_CPUS", "2"}});

struct slow_reader {
  std::size_t bytes = 0;
  bool went_on = true;
  // The first call returns only once the callers have made all of theirs.
  void take(const std::string& text, const std::string& go) {
    if (bytes == 0) went_on = eventually([&] { return exists(go); });
    bytes += text.size();
  }
  std::size_t total() const { return bytes; }
  bool callers_went_on() const { return went_on; }
};

TEST(ahead, callers_that_are_far_ahead_of_an_actor_go_on_before_any_call_returns) {
  constexpr std::size_t threads = 6, calls = 4'000, size = 1'000;
  note_folder notes;
  const std::string go = notes["go"];
  auto reader = rota::actor<slow_reader>();
  {
    std::vector<std::jthread> callers;
    for (std::size_t t = 0; t < threads; ++t) {
      callers.emplace_back([&] {
        const std::string text(size, 't');
        for (std::size_t i = 0; i < calls; ++i) reader.call<&slow_reader::take>(text, go);
      });
    }
  }
  write_note(go, "go");
  EXPECT_TRUE(reader.call<&slow_reader::callers_went_on>().get());
  EXPECT_EQ(reader.call<&slow_reader::total>().get(), threads * calls * size);
}

int after(int gate, const std::string&) { return gate; }
int spawn_behind(ref<int> gate, int tasks, std::size_t size) {
  std::vector<ref<int>> refs;
  for (int i = 0; i < tasks; ++i) refs.push_back(remote<after>(gate, std::string(size, 't')));
  return tasks;
}

// The head takes in what is sent and has nothing to answer: whoever waits for it to catch up must see that it has.
TEST(ahead, a_task_that_is_far_ahead_of_the_head_goes_on_once_that_has_caught_up) {
  constexpr int rounds = 40, tasks = 2'000;
  note_folder notes;
  const std::string go = notes["go"];
  auto gate = remote<[](std::string until) {
                hold_slot_until(until);
                return 1;
              }>.with({.cpus = 0})(go);
  for (int round = 0; round < rounds; ++round) EXPECT_EQ(remote<spawn_behind>(gate, tasks, 1'000).get(), tasks);
  write_note(go, "go");
  EXPECT_EQ(gate.get(), 1);
}

}  // namespace
