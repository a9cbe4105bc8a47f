// Waiting: get, wait and as_completed, their limits, orders and refusals.
#include <gtest/gtest.h>
#include <rota/rota.h>

#include <atomic>
#include <limits>
#include <ranges>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/ranks/session_help.h"

namespace {

using namespace std::chrono_literals;
using namespace rota::tests;
using rota::ref;
using rota::remote;

int wait_for_note(const std::string& path, int x) {
  hold_slot_until(path);
  return x;
}
int id(int x) { return x; }
int fails(int) { throw std::runtime_error("fails"); }

std::size_t size_of(const std::string& text) { return text.size(); }
int fails_for_odd(int x) { return x % 2 ? throw std::out_of_range("odd") : x; }
int map_in_tasks(int depth) {
  if (depth == 0) return 1;
  int sum = 0;
  for (int one : rota::get(rota::map<map_in_tasks>(std::vector<int>(4, depth - 1)))) sum += one;
  return sum;
}
long map_many(int count) {
  long sum = 0;
  for (int one : rota::get(rota::map<id>(std::views::iota(0, count)))) sum += one;
  return sum;
}

TEST(get, an_empty_ref_is_a_config_error) {
  const ref<int> empty;
  EXPECT_FALSE(empty);
  EXPECT_EQ(empty.id(), 0u);
  EXPECT_THROW(empty.get(), rota::config_error);
  EXPECT_THROW(static_cast<void>(empty.ready()), rota::config_error);
  EXPECT_THROW(rota::get(std::vector{remote<id>(1), empty}), rota::config_error);
  EXPECT_THROW(rota::wait(std::vector{empty}), rota::config_error);
}

TEST(get, with_a_timeout_throws_and_the_task_goes_on) {
  note_folder notes;
  const std::string go = notes["go"];
  auto slow = remote<wait_for_note>(go, 5);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THROW(slow.get(50ms), rota::get_timeout);
  EXPECT_THROW(rota::get(slow, 50ms), rota::get_timeout);
  EXPECT_THROW(rota::get(std::vector{remote<id>(1), slow}, 50ms), rota::get_timeout);
  EXPECT_THROW(slow.get(0s), rota::get_timeout);
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_TRUE(took > 140ms && took < 5s);
  EXPECT_FALSE(slow.ready());
  write_note(go);
  EXPECT_EQ(slow.get(20s), 5);
  EXPECT_EQ(slow.get(0s), 5);
}

TEST(get, a_limit_beyond_what_the_clock_can_say_is_no_limit) {
  note_folder notes;
  for (int i = 0; i < 6; ++i) {
    const std::string go = notes["go" + std::to_string(i)];
    auto slow = remote<wait_for_note>(go, i);
    std::jthread later([&] {
      std::this_thread::sleep_for(20ms);
      write_note(go);
    });
    const auto longest = std::chrono::nanoseconds::max();
    const std::vector one{slow};
    int got = -1;
    if (i == 0) got = slow.get(longest);
    if (i == 1) got = rota::get(slow, longest);
    if (i == 2) got = rota::get(one, longest).front();
    if (i == 3) got = slow.get(std::chrono::hours(1'000'000));
    if (i == 4) got = rota::get(one, std::chrono::hours::max()).front();
    if (i == 5) got = rota::wait(one, {.timeout = longest - 1ns}).ready.at(0).get();
    EXPECT_EQ(got, i);
  }
}

TEST(get, a_negative_limit_looks_once) {
  note_folder notes;
  const std::string go = notes["go"];
  auto slow = remote<wait_for_note>(go, 5);
  for (auto limit : {std::chrono::nanoseconds(-1), std::chrono::nanoseconds::min()}) {
    EXPECT_THROW(slow.get(limit), rota::get_timeout);
    EXPECT_THROW(rota::get(std::vector{slow}, limit), rota::get_timeout);
    EXPECT_EQ(rota::wait(std::vector{slow}, {.timeout = limit}).pending.size(), 1u);
  }
  EXPECT_THROW(slow.get(std::chrono::hours::min()), rota::get_timeout);
  EXPECT_THROW(slow.get(std::chrono::duration<double>(-1e300)), rota::get_timeout);
  write_note(go);
  EXPECT_EQ(slow.get(), 5);
  EXPECT_EQ(slow.get(-1s), 5);
}

TEST(get, takes_ranges_that_make_their_refs_as_they_go) {
  std::atomic<int> made = 0;
  auto task = [&made](int x) {
    ++made;
    return remote<id>(x);
  };
  auto numbers = std::views::iota(0, 100);
  EXPECT_EQ(rota::get(numbers | std::views::transform(task)), std::vector<int>(numbers.begin(), numbers.end()));
  EXPECT_EQ(made.exchange(0), 100);  // each task once
  EXPECT_EQ(rota::get(numbers | std::views::transform(task), 20s).size(), 100u);
  EXPECT_EQ(made.exchange(0), 100);
  auto waited = rota::wait(numbers | std::views::transform(task), {.count = 100});
  EXPECT_EQ(made.exchange(0), 100);
  EXPECT_EQ(rota::get(waited.ready), std::vector<int>(numbers.begin(), numbers.end()));
  std::set<int> seen;
  for (ref<int> r : rota::as_completed(numbers | std::views::transform(task))) seen.insert(r.get());
  EXPECT_EQ(seen.size(), 100u);
  EXPECT_EQ(made, 100);

  const std::vector<ref<int>> kept{remote<id>(1), remote<id>(2), remote<id>(3)};
  EXPECT_EQ(rota::get(kept | std::views::drop(1)), (std::vector{2, 3}));
  EXPECT_EQ(rota::get(kept | std::views::filter([](const ref<int>& r) { return r.get() != 2; })), (std::vector{1, 3}));
}

template <class T>
std::vector<std::uint64_t> ids(const std::vector<ref<T>>& refs) {
  std::vector<std::uint64_t> out;
  for (const auto& r : refs) out.push_back(r.id());
  return out;
}

TEST(wait, gives_at_most_count_in_the_order_given) {
  note_folder notes;
  const std::string go = notes["go"];
  const auto slow = remote<wait_for_note>(go, 5);
  const std::vector<ref<int>> refs{remote<id>(0), slow, remote<fails>(1), remote<id>(2)};
  const auto three = rota::wait(refs, {.count = 3});
  EXPECT_EQ(ids(three.ready), ids(std::vector{refs[0], refs[2], refs[3]}));  // the failed one is ready
  EXPECT_EQ(ids(three.pending), ids(std::vector{slow}));
  const auto one = rota::wait(refs);
  EXPECT_EQ(ids(one.ready), ids(std::vector{refs[0]}));
  EXPECT_EQ(ids(one.pending), ids(std::vector{slow, refs[2], refs[3]}));
  const auto late = rota::wait(refs, {.count = 4, .timeout = 50ms});
  EXPECT_EQ(late.ready.size(), 3u);
  const auto poll = rota::wait(std::vector{slow}, {.timeout = 0s});
  EXPECT_TRUE(poll.ready.empty());
  EXPECT_EQ(poll.pending.size(), 1u);
  write_note(go);
  EXPECT_EQ(ids(rota::wait(refs, {.count = 4}).ready), ids(refs));
}

TEST(wait, refuses_count_0_above_the_size_and_duplicates) {
  const auto a = remote<id>(1), b = remote<id>(2);
  EXPECT_THROW(rota::wait(std::vector{a, b}, {.count = 0}), rota::config_error);
  EXPECT_THROW(rota::wait(std::vector{a, b}, {.count = 3}), rota::config_error);
  EXPECT_THROW(rota::wait(std::vector{a, b, a}), rota::config_error);
  EXPECT_THROW(rota::wait(std::vector<ref<int>>{}), rota::config_error);
}

TEST(as_completed, gives_every_ref_once_as_it_becomes_ready) {
  note_folder notes;
  const std::string go = notes["go"];
  std::vector<ref<int>> refs{remote<wait_for_note>(go, -1)};
  for (int i = 0; i < 100; ++i) refs.push_back(remote<id>(i));
  std::vector<int> got;
  for (ref<int> r : rota::as_completed(refs)) {
    EXPECT_TRUE(r.ready());
    got.push_back(r.get());
    if (got.size() == 100) write_note(go);
  }
  ASSERT_EQ(got.size(), 101u);
  EXPECT_EQ(got.back(), -1);
  EXPECT_EQ(std::set<int>(got.begin(), got.end()).size(), 101u);
  for (ref<int> r : rota::as_completed(std::vector<ref<int>>{})) ADD_FAILURE() << r.id();
}

TEST(as_completed, keeps_the_order_given_among_those_that_are_ready) {
  std::vector<ref<int>> refs;
  for (int i = 0; i < 1000; ++i) refs.push_back(i % 7 == 0 ? remote<fails>(i) : remote<id>(i));
  rota::wait(refs, {.count = refs.size()});
  std::vector<std::uint64_t> got;
  for (const ref<int>& r : rota::as_completed(refs)) got.push_back(r.id());
  EXPECT_EQ(got, ids(refs));
}

struct gate {
  int here() { return 1; }
  int pass(const std::string& path, int x) { return wait_for_note(path, x); }
};

TEST(as_completed, gives_what_comes_one_by_one_in_that_order) {
  note_folder notes;
  std::vector<rota::actor_handle<gate>> gates;
  std::vector<ref<int>> refs;
  std::vector<std::string> go;
  for (int i = 0; i < 5; ++i) {
    go.push_back(notes[std::to_string(i)]);
    gates.push_back(rota::actor<gate>());
    gates.back().call<&gate::here>().get();
  }
  for (std::size_t i = 0; i < gates.size(); ++i) {
    refs.push_back(gates[i].call<&gate::pass>(go[i], static_cast<int>(i)));
  }
  const std::vector<int> order{3, 0, 4, 2, 1};
  std::vector<int> got;
  write_note(go[3]);
  for (const ref<int>& r : rota::as_completed(refs)) {
    got.push_back(r.get());
    if (got.size() < order.size()) write_note(go[static_cast<std::size_t>(order[got.size()])]);
  }
  EXPECT_EQ(got, order);
}

// More refs than are looked at each time: the one that comes is far behind.
TEST(as_completed, finds_one_far_behind_those_that_are_pending) {
  note_folder notes;
  const std::string go = notes["go"];
  auto lone = rota::actor<gate>();
  lone.call<&gate::here>().get();
  auto held = remote<wait_for_note>(go, -1);
  std::vector<ref<int>> refs;
  for (int i = 0; i < 5000; ++i) refs.push_back(remote<[](int x, int) { return x; }>(i, held));
  refs[4321] = lone.call<&gate::here>();
  int count = 0;
  for (const ref<int>& r : rota::as_completed(refs)) {
    if (count++ == 0) {
      EXPECT_EQ(r.id(), refs[4321].id());
      write_note(go);
    }
  }
  EXPECT_EQ(count, 5000);
}

TEST(as_completed, refuses_a_ref_given_twice_and_an_empty_one) {
  const auto a = remote<id>(1), b = remote<id>(2);
  EXPECT_THROW(rota::as_completed(std::vector{a, b, a}), rota::config_error);
  EXPECT_THROW(rota::as_completed(std::vector{a, ref<int>()}), rota::config_error);
}

TEST(map, keeps_the_order_of_the_range) {
  EXPECT_TRUE(rota::map<id>(std::vector<int>()).empty());
  for (std::size_t chunk : {std::size_t{1}, std::size_t{7}, std::size_t{100'000}}) {
    const std::vector<int> values = rota::get(rota::map<id>(std::views::iota(0, 10'000), {.chunk = chunk}));
    ASSERT_EQ(values.size(), 10'000u);
    for (int i = 0; i < 10'000; ++i) ASSERT_EQ(values[static_cast<std::size_t>(i)], i);
  }
}

// Refs and values that are too large to travel inside the message, in a chunk with others.
TEST(map, takes_all_kinds_of_elements) {
  std::vector<ref<int>> refs;
  for (int i = 0; i < 1000; ++i) refs.push_back(i % 3 ? remote<id>(i) : rota::put(i));
  const std::vector<int> values = rota::get(rota::map<id>(refs));
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(values[static_cast<std::size_t>(i)], i);

  std::vector<std::string> texts;
  for (std::size_t i = 0; i < 300; ++i) texts.emplace_back(i % 50 == 0 ? 100'000 + i : i, 'x');
  const std::vector<std::size_t> sizes = rota::get(rota::map<size_of>(texts));
  for (std::size_t i = 0; i < 300; ++i) ASSERT_EQ(sizes[i], texts[i].size());
}

TEST(map, each_element_fails_alone) {
  const auto refs = rota::map<fails_for_odd>(std::views::iota(0, 600));
  for (int i = 0; i < 600; ++i) {
    const ref<int>& one = refs[static_cast<std::size_t>(i)];
    if (i % 2) {
      EXPECT_THROW(one.get(), rota::task_error);
    } else {
      EXPECT_EQ(one.get(), i);
    }
  }
}

TEST(map, inside_tasks) {
  EXPECT_EQ(remote<map_in_tasks>(5).get(), 1024);
  std::vector<ref<long>> sums;
  for (int i = 0; i < 4; ++i) sums.push_back(remote<map_many>(20'000));
  for (long sum : rota::get(sums)) EXPECT_EQ(sum, 20'000L * 19'999 / 2);
}

// Nobody asks for the results, and the refs go while the tasks run.
TEST(map, of_results_that_nobody_wants) {
  for (int i = 0; i < 20; ++i) rota::map<id>(std::views::iota(0, 5000));
  EXPECT_EQ(remote<id>(3).get(), 3);
}

}  // namespace
