// An object lives while any ref to it lives anywhere, and is freed when the last goes. The store is small: what is not
// freed soon shows as out_of_memory. After each test the runtime is asked whether it still holds anything.
#include <gtest/gtest.h>
#include <rota/detail/session_state.h>
#include <rota/rota.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "tests/ranks/session_help.h"

namespace {

using namespace std::chrono_literals;
using namespace rota::tests;
using rota::actor;
using rota::actor_handle;
using rota::array;
using rota::ref;
using rota::remote;

// Read by init, which comes after it.
const bool small_store = offer({{"ROTA_STORE", "64M"}, {"ROTA_CPUS", "2"}});

constexpr std::size_t large = 4 << 20;  // the store holds less than 16 of them
using bytes = array<char>;

bytes made(char value) {
  auto all = rota::make_array<char>(large);
  std::fill(all.begin(), all.end(), value);
  return all;
}
char check(const bytes& b) {
  if (b.size() != large) return '?';
  return std::all_of(b.begin(), b.end(), [&](char c) { return c == b[0]; }) ? b[0] : '!';
}

// For what gives room back a moment later, on another rank: repeats while the store is full.
template <class F>
auto with_room(F call) {
  const auto until = std::chrono::steady_clock::now() + 10s;
  for (;;) {
    try {
      return call();
    } catch (const rota::error&) {
      if (std::chrono::steady_clock::now() > until) throw;
      std::this_thread::sleep_for(1ms);
    }
  }
}
ref<bytes> put_made(char value) {
  return with_room([&] { return rota::put(made(value)); });
}
// Overwrites whatever room is free, so that an object that was freed too early shows.
void churn() {
  for (int i = 0; i < 12; ++i) EXPECT_EQ(remote<check>(put_made('c')).get(), 'c');
}

class refs : public testing::Test {
  void TearDown() override { EXPECT_EQ(rota::detail::leak_report(), ""); }
};

TEST_F(refs, the_driver_puts_more_than_the_store_holds) {
  for (int i = 0; i < 200; ++i) {
    auto r = put_made('d');
    auto copy = r;
    r = {};
    EXPECT_EQ(check(copy.get()), 'd');
  }
}

TEST_F(refs, results_are_freed_when_their_refs_go) {
  for (int i = 0; i < 200; ++i) EXPECT_EQ(with_room([] { return check(remote<made>('r').get()); }), 'r');
}

TEST_F(refs, arguments_keep_objects_until_the_task_ends) {
  for (unsigned rank : workers()) {
    note_folder notes;
    const std::string go = notes["go"], started = notes["started"];
    auto r = remote<[](const bytes& b, std::string at, std::string until) {
               write_note(at);
               hold_slot_until(until);
               return check(b);
             }>.with({.where = rota::on_rank(rank)})(put_made('a'), started, go);
    ASSERT_TRUE(eventually([&] { return exists(started); }));
    churn();
    write_note(go);
    EXPECT_EQ(r.get(), 'a');
  }
  for (int i = 0; i < 200; ++i) EXPECT_EQ(remote<check>(put_made('a')).get(), 'a');
}

TEST_F(refs, a_task_that_has_not_started_keeps_its_arguments) {
  note_folder notes;
  const std::string go = notes["go"];
  auto gate = remote<[](std::string until) {
    hold_slot_until(until);
    return 1;
  }>(go);
  auto behind = remote<[](const bytes& b, int) { return check(b); }>(put_made('q'), gate);
  auto held =
      remote<[](std::vector<ref<bytes>> all, int) { return check(all.at(0).get()); }>(std::vector{put_made('h')}, gate);
  churn();
  write_note(go);
  EXPECT_EQ(behind.get(), 'q');
  EXPECT_EQ(held.get(), 'h');
}

TEST_F(refs, values_keep_the_objects_whose_refs_they_hold) {
  auto outer = rota::put(std::vector{put_made('1'), put_made('2')});
  auto outermost = rota::put(std::vector{outer});
  outer = {};
  churn();
  {
    const auto inner = outermost.get().at(0).get();
    outermost = {};
    churn();
    EXPECT_EQ(check(inner[0].get()), '1');
    EXPECT_EQ(remote<check>(inner[1]).get(), '2');
  }
  for (int i = 0; i < 100; ++i) rota::put(std::vector{put_made('i')});
}

std::vector<ref<bytes>> make_some(int count) {
  std::vector<ref<bytes>> all;
  for (int i = 0; i < count; ++i) all.push_back(put_made(static_cast<char>('a' + i)));
  return all;
}
ref<bytes> pass_on(ref<bytes> r) { return r; }

TEST_F(refs, results_keep_the_objects_whose_refs_they_hold) {
  auto some = remote<make_some>(3);
  rota::wait(std::vector{some});
  churn();
  auto got = some.get();
  some = {};
  churn();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(remote<check>(got[static_cast<std::size_t>(i)]).get(), 'a' + i);
  got.clear();
  for (int i = 0; i < 60; ++i) EXPECT_EQ(check(remote<make_some>(2).get()[1].get()), 'b');
}

TEST_F(refs, objects_live_while_they_are_in_flight_only) {
  ref<ref<bytes>> passed;
  {
    auto r = put_made('f');
    passed = remote<pass_on>(r);
  }
  for (int i = 0; i < 3; ++i) {
    ref<ref<bytes>> again = remote<pass_on>(passed);  // resolved once: the task gets the ref
    passed = again;
  }
  churn();
  EXPECT_EQ(passed.get().get().size(), large);
  EXPECT_EQ(check(passed.get().get()), 'f');
  for (int i = 0; i < 100; ++i) EXPECT_EQ(check(remote<pass_on>(put_made('g')).get().get()), 'g');
}

TEST_F(refs, results_that_nobody_asked_for_are_freed) {
  for (int i = 0; i < 100; ++i) with_room([] { return remote<made>('n'), 0; });
  for (int i = 0; i < 50; ++i) remote<[](int x) { return x; }>(i);
  churn();
}

class cupboard {
 public:
  void keep(ref<bytes> r) { kept_.push_back(std::move(r)); }
  void keep_view(bytes b) { view_ = std::move(b); }
  char look(std::size_t i) { return check(kept_.at(i).get()); }
  char look_at_view() { return check(view_); }
  ref<bytes> hand_out(std::size_t i) { return kept_.at(i); }
  void clear() {
    kept_.clear();
    view_ = {};
  }

 private:
  std::vector<ref<bytes>> kept_;
  bytes view_;
};

TEST_F(refs, actors_keep_objects_in_their_members) {
  for (unsigned rank : workers()) {
    auto c = actor<cupboard>.with({.where = rota::on_rank(rank)})();
    c.call<&cupboard::keep>(rota::put(put_made('m')));
    c.call<&cupboard::keep_view>(put_made('v'));
    churn();
    EXPECT_EQ(c.call<&cupboard::look>(0u).get(), 'm');
    EXPECT_EQ(c.call<&cupboard::look_at_view>().get(), 'v');
    auto out = c.call<&cupboard::hand_out>(0u).get();
    c.call<&cupboard::clear>();
    churn();
    EXPECT_EQ(check(out.get()), 'm');
  }
}

TEST_F(refs, an_actor_that_ends_lets_go_of_its_members) {
  for (int i = 0; i < 40; ++i) {
    auto c = actor<cupboard>();
    c.call<&cupboard::keep_view>(put_made('e'));
    c.call<&cupboard::keep>(rota::put(put_made('e')));
    if (i % 2 == 0) c.kill();
  }
  churn();
}

TEST_F(refs, killed_and_failing_calls_let_go_of_their_arguments) {
  auto c = actor<cupboard>();
  c.kill();
  for (int i = 0; i < 40; ++i) {
    EXPECT_THROW(c.call<&cupboard::keep_view>(put_made('k')).get(), rota::actor_died);
    EXPECT_THROW(remote<[](const bytes&) { throw 1; }>(put_made('k')).get(), rota::task_error);
    EXPECT_THROW(remote<check>.with({.cpus = 99})(put_made('k')).get(), rota::infeasible);
  }
  churn();
}

TEST_F(refs, threads_share_and_drop_refs) {
  for (int round = 0; round < 20; ++round) {
    auto r = put_made('t');
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([mine = r] {
        for (int k = 0; k < 50; ++k) {
          auto copy = mine;
          auto held = remote<pass_on>(copy);
          if (k % 10 != 0) continue;
          EXPECT_EQ(held.get().id(), copy.id());
        }
      });
    }
    r = {};
  }
  churn();
}

struct link {
  std::vector<ref<link>> next{};
  template <class Archive>
  void serialize(Archive& archive) {
    archive(next);
  }
};

TEST_F(refs, a_long_chain_is_freed_without_deep_recursion) {
  auto head = rota::put(link{});
  for (int i = 0; i < 200'000; ++i) head = rota::put(link{{head}});
  remote<[](ref<link> l) { return l.get().next.size(); }>(head).get();
}

struct hider {
  actor_handle<cupboard> other = actor<cupboard>();
  void keep(ref<bytes> r) { other.call<&cupboard::keep>(rota::put(r)).get(); }
  char look() { return other.call<&cupboard::look>(0u).get(); }
};

TEST_F(refs, refs_pass_through_tasks_and_actors_of_other_ranks) {
  for (int i = 0; i < 10; ++i) {
    auto h = actor<hider>();
    // It waits for the call: those of other callers have no order with look().
    remote<[](actor_handle<hider> to) { to.call<&hider::keep>(rota::put(put_made('z'))).get(); }>(h).get();
    churn();
    EXPECT_EQ(h.call<&hider::look>().get(), 'z');
  }
}

}  // namespace
