// Many threads, many tasks, deep recursion, and tasks that wait for tasks.
#include <gtest/gtest.h>
#include <rota/detail/session_state.h>
#include <rota/rota.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/ranks/session_help.h"

namespace {

using namespace std::chrono_literals;
using namespace rota::tests;
using rota::ref;
using rota::remote;

// Read by init, which comes after it.
const bool offered = offer({{"ROTA_CPUS", "2"}});

int plus_one(int x) { return x + 1; }
int add(int a, int b) { return a + b; }

TEST(threads, eight_driver_threads_submit_and_get_at_once) {
  std::atomic<int> right = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        for (int round = 0; round < 20; ++round) {
          std::vector<ref<int>> refs;
          for (int i = 0; i < 50; ++i) refs.push_back(remote<plus_one>(100 * t + i));
          const auto values = rota::get(refs);
          for (int i = 0; i < 50; ++i) right += values[static_cast<std::size_t>(i)] == 100 * t + i + 1 ? 1 : 0;
          right += remote<add>(remote<plus_one>(t), rota::put(round)).get() == t + 1 + round ? 1 : 0;
        }
      });
    }
  }
  EXPECT_EQ(right, 8 * 20 * 51);
}

TEST(threads, several_threads_wait_for_one_ref) {
  note_folder notes;
  const std::string go = notes["go"];
  auto slow = remote<[](std::string until) {
    hold_slot_until(until);
    return 7;
  }>(go);
  std::atomic<int> got = 0, late = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        if (t % 2 == 0) {
          got += slow.get();
          return;
        }
        try {
          slow.get(20ms);
        } catch (const rota::get_timeout&) {
          ++late;
        }
      });
    }
    EXPECT_TRUE(eventually([&] { return late == 4; }));
    EXPECT_EQ(remote<plus_one>(1).get(), 2);
    write_note(go);
  }
  EXPECT_EQ(got, 4 * 7);
}

int deep(int n) { return n == 0 ? 0 : 1 + remote<deep>(n - 1).get(); }
int fib(int n) {
  if (n < 2) return n;
  auto a = remote<fib>(n - 1);
  auto b = remote<fib>(n - 2);
  return a.get() + b.get();
}

TEST(nested, ten_thousand_levels) { EXPECT_EQ(remote<deep>(10'000).get(), 10'000); }

TEST(nested, several_recursions_at_once) {
  std::vector<ref<int>> refs;
  for (int i = 0; i < 8; ++i) refs.push_back(remote<deep>(1000));
  EXPECT_EQ(rota::get(refs), std::vector<int>(8, 1000));
}

// fib(n), and the most threads that a rank had meanwhile.
std::pair<int, std::size_t> fib_and_threads(int n) {
  const std::size_t here = rota::detail::runtime_threads();
  if (n < 2) return {n, here};
  auto a = remote<fib_and_threads>(n - 1);
  auto b = remote<fib_and_threads>(n - 2);
  const auto left = a.get(), right = b.get();
  return {left.first + right.first, std::max({left.second, right.second, rota::detail::runtime_threads(), here})};
}

TEST(nested, fib_by_tasks_that_get_their_children) {
  EXPECT_EQ(remote<fib>(16).get(), 987);
  const auto [value, threads] = remote<fib_and_threads>(16).get();
  EXPECT_EQ(value, 987);
  EXPECT_GT(threads, 2u);
  EXPECT_LE(threads, 64u + 2);
}

// A task whose child must run elsewhere, or asks for all slots: it cannot run on its parent's stack.
int hop(int n, std::vector<unsigned> ranks) {
  if (n == 0) return 0;
  const unsigned next = ranks[static_cast<std::size_t>(n) % ranks.size()];
  return 1 + remote<hop>.with({.where = rota::on_rank(next)})(n - 1, ranks).get();
}
int wide_child(int n) { return n == 0 ? 0 : 1 + remote<wide_child>.with({.cpus = 2})(n - 1).get(); }

TEST(nested, across_ranks_and_with_all_slots) {
  EXPECT_EQ(remote<hop>(100, workers()).get(), 100);
  EXPECT_EQ(remote<wide_child>(50).get(), 50);
}

int get_of(ref<int> r) { return r.get(); }
int get_of_all(std::vector<ref<int>> refs) {
  const auto values = rota::get(refs);
  return std::accumulate(values.begin(), values.end(), 0);
}

TEST(blocked, all_slots_wait_in_get_for_tasks_that_come_later) {
  note_folder notes;
  const std::string go = notes["go"];
  auto gate = remote<[](std::string until) {
    hold_slot_until(until);
    return 5;
  }>(go);
  std::vector<ref<int>> waiting;
  for (int i = 0; i < 40; ++i) waiting.push_back(remote<get_of>(gate));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(remote<plus_one>(i).get(20s), i + 1);  // slots are free meanwhile
  write_note(go);
  EXPECT_EQ(rota::get(waiting), std::vector<int>(40, 5));
}

TEST(blocked, tasks_wait_for_each_other_across_submissions) {
  ref<int> last = rota::put(1);
  for (int i = 0; i < 60; ++i) last = remote<get_of_all>(std::vector{last, remote<plus_one>(i - 1)});
  EXPECT_EQ(last.get(), 1 + 59 * 60 / 2);
}

int nap() {
  std::this_thread::sleep_for(5ms);
  return 1;
}

// Tasks of which far more are submitted than ranks are handed at a time, and a last one that leaves a note.
std::vector<ref<int>> naps_and_a_note(const std::string& path) {
  std::vector<ref<int>> refs;
  for (int i = 0; i < 100; ++i) refs.push_back(remote<nap>());
  refs.push_back(remote<[](std::vector<ref<int>> all, std::string note) {
    rota::get(all);
    write_note(note);
    return 0;
  }>(refs, path));
  return refs;
}

TEST(reachable, while_the_driver_computes_after_a_get_in_vain) {
  note_folder notes;
  const std::string go = notes["go"], end = notes["end"];
  auto gate = remote<[](std::string until) {
    hold_slot_until(until);
    return 1;
  }>(go);
  const auto refs = naps_and_a_note(end);
  std::this_thread::sleep_for(20ms);  // the helper thread takes over the rank
  EXPECT_THROW(gate.get(200us), rota::get_timeout);
  EXPECT_TRUE(eventually([&] { return exists(end); }));  // makes no call
  write_note(go);
  EXPECT_EQ(gate.get(), 1);
}

TEST(reachable, while_the_driver_submits_without_end) {
  note_folder notes;
  const std::string end = notes["end"];
  const auto refs = naps_and_a_note(end);
  EXPECT_TRUE(eventually([&] {
    remote<plus_one>(1);
    return exists(end);
  }));
}

int wait_for_note(const std::string& until) {
  hold_slot_until(until);
  return 1;
}
int pass_or_wait(int x, const std::string& until) {
  if (!until.empty()) hold_slot_until(until);
  return x + 1;
}

// The function is known to be short, so the head is not woken for the first result, whose consumer runs long. The other
// slot of that rank is free, so that its thread sleeps on the doorbell; or it is busy, and the helper does.
TEST(reachable, a_result_comes_though_its_consumer_runs_long) {
  note_folder notes;
  for (unsigned rank : workers()) {
    const auto there = remote<pass_or_wait>.with({.where = rota::on_rank(rank)});
    ref<int> chain = there(0, "");
    for (int i = 0; i < 200; ++i) chain = there(chain, "");
    EXPECT_EQ(chain.get(), 201);
    for (int round = 0; round < 6; ++round) {
      const std::string name = std::to_string(rank) + "." + std::to_string(round);
      const std::string begin = notes["begin" + name], end = notes["end" + name];
      ref<int> other_slot;
      if (round % 2) other_slot = remote<wait_for_note>.with({.where = rota::on_rank(rank)})(end);
      const ref<int> gate = remote<wait_for_note>.with({.where = rota::on_rank(rank)})(begin);
      const ref<int> first = there(gate, "");
      const ref<int> second = there(first, end);
      std::jthread opens([&] {
        std::this_thread::sleep_for(20ms);  // meanwhile all that can sleep sleeps
        write_note(begin);
      });
      const auto asked = std::chrono::steady_clock::now();
      EXPECT_EQ(first.get(5s), 2);
      EXPECT_LT(std::chrono::steady_clock::now() - asked, 2s);
      write_note(end);
      EXPECT_EQ(second.get(), 3);
      if (other_slot) {
        EXPECT_EQ(other_slot.get(), 1);
      }
    }
  }
}

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

TEST(idle, threads_that_looked_for_work_together_all_sleep) {
  std::vector<ref<int>> refs;
  for (int i = 0; i < 64; ++i) refs.push_back(remote<nap>());
  rota::get(refs);
  std::vector<double> before;
  for (unsigned rank : workers()) before.push_back(remote<cpu_seconds>.with({.where = rota::on_rank(rank)})().get());
  std::this_thread::sleep_for(1s);
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_LT(remote<cpu_seconds>.with({.where = rota::on_rank(workers()[i])})().get() - before[i], 0.2);
  }
}

std::vector<ref<int>> as_given(std::vector<ref<int>> refs) { return refs; }

// The last handle goes while the task runs, so that its result is not pushed; the ref comes back in a value.
TEST(blocked, a_ref_that_went_and_came_back_brings_its_value) {
  note_folder notes;
  const std::string go = notes["go"];
  ref<int> r = remote<[](std::string until) {
    hold_slot_until(until);
    return 9;
  }>(go);
  auto back = remote<as_given>(std::vector{r});
  rota::wait(std::vector{back});
  r = {};
  std::this_thread::sleep_for(20ms);  // the head hears of it
  write_note(go);
  std::this_thread::sleep_for(20ms);  // the task ends
  EXPECT_EQ(back.get().at(0).get(20s), 9);
}

TEST(many, a_hundred_thousand_tasks_that_nobody_asks_for) {
  for (int i = 0; i < 100'000; ++i) remote<plus_one>(i);
  EXPECT_EQ(remote<plus_one>(1).get(), 2);
  rota::map<plus_one>(std::views::iota(0, 100'000));
  EXPECT_EQ(remote<plus_one>(2).get(), 3);
}

TEST(many, a_hundred_thousand_tasks_kept_and_got) {
  std::vector<ref<int>> refs;
  for (int i = 0; i < 100'000; ++i) refs.push_back(remote<plus_one>(i));
  const auto values = rota::get(refs);
  for (int i = 0; i < 100'000; ++i) ASSERT_EQ(values[static_cast<std::size_t>(i)], i + 1);
}

TEST(many, fan_out_fan_in_and_chains) {
  auto source = rota::put(3);
  std::vector<ref<int>> leaves;
  for (int i = 0; i < 8192; ++i) leaves.push_back(remote<add>(source, i % 2));
  EXPECT_EQ(remote<get_of_all>(leaves).get(), 8192 * 3 + 4096);
  while (leaves.size() > 1) {
    std::vector<ref<int>> sums;
    for (std::size_t i = 0; i < leaves.size(); i += 2) sums.push_back(remote<add>(leaves[i], leaves[i + 1]));
    leaves = std::move(sums);
  }
  EXPECT_EQ(leaves[0].get(), 8192 * 3 + 4096);
  ref<int> chain = rota::put(0);
  const auto ranks = workers();
  for (int i = 0; i < 5000; ++i) chain = remote<plus_one>(chain);
  for (int i = 0; i < 5000; ++i) {
    chain = remote<plus_one>.with({.where = rota::on_rank(ranks[static_cast<std::size_t>(i) % ranks.size()])})(chain);
  }
  EXPECT_EQ(chain.get(), 10'000);
}

std::string large_text(int i) { return std::string(static_cast<std::size_t>(20'000 + i), 'x'); }

TEST(many, large_values_in_every_direction_at_once) {
  std::vector<ref<std::string>> texts;
  for (int i = 0; i < 2000; ++i) texts.push_back(remote<large_text>(i));
  std::vector<ref<std::size_t>> sizes;
  for (auto& text : texts) {
    sizes.push_back(remote<[](const std::string& a, const std::string& b) { return a.size() + b.size(); }>(
        text, std::string(5000, 'y')));
  }
  for (int i = 0; i < 2000; ++i)
    EXPECT_EQ(sizes[static_cast<std::size_t>(i)].get(), static_cast<std::size_t>(25'000 + i));
  const auto inline_results = rota::get(rota::map<[](int n) { return std::string(static_cast<std::size_t>(n), 'z'); }>(
      std::views::iota(0, 4096)));  // more than any ring holds
  for (std::size_t i = 0; i < 4096; ++i) ASSERT_EQ(inline_results[i].size(), i);
}

int forks(int how) {
  const pid_t child = fork();
  if (child == 0) {
    if (how == 1) execlp("true", "true", nullptr);
    if (how == 2) std::exit(3);
    _exit(how == 0 ? 3 : 4);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

TEST(fork, a_task_may_fork) {
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(remote<forks>(0).get(), 3);
    EXPECT_EQ(remote<forks>(1).get(), 0);
    EXPECT_EQ(remote<plus_one>(i).get(), i + 1);
  }
}

TEST(fork, a_child_that_leaves_by_exit_does_not_end_the_session) {
  EXPECT_EQ(remote<forks>(2).get(20s), 3);
  EXPECT_EQ(remote<plus_one>(1).get(20s), 2);
}

TEST(session, a_second_init_is_refused) {
  int argc = 0;
  char** argv = nullptr;
  const auto e = thrown_by<rota::config_error>([&] { auto second = rota::init(argc, argv); });
  EXPECT_TRUE(contains(e.what(), "init")) << e.what();
  EXPECT_TRUE(contains(remote<[] {
                         try {
                           int count = 0;
                           char** none = nullptr;
                           auto second = rota::init(count, none);
                           return std::string("nothing was thrown");
                         } catch (const rota::config_error& refused) {
                           return std::string(refused.what());
                         }
                       }>()
                           .get(),
                       "init"));
}

}  // namespace
