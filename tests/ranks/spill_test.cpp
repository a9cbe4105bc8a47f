// A store that is too small for its values: they leave memory, and come back.
#include <gtest/gtest.h>
#include <rota/detail/session_state.h>
#include <rota/rota.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/ranks/spill_help.h"

namespace {

using namespace std::chrono_literals;
using namespace rota::tests;
using rota::array;
using rota::ref;
using rota::remote;

// Read by init, which comes after it. The folder is the one that a rank takes by itself.
const bool small_store = offer({{"ROTA_STORE", "64M"}, {"ROTA_SPILL_QUOTA", "2G"}, {"ROTA_STORE_PATIENCE", "2"}});

bool are(const array<std::uint32_t>& a, const array<std::uint32_t>& b, std::uint32_t seed) {
  return is(a, seed) && is(b, seed + 1);
}

bool nothing_is_spilled() {
  return eventually([] { return rota::detail::spilled_bytes() == 0; });
}

TEST(spill, values_of_four_times_the_store_are_all_there) {
  {
    const refs kept = put_many(256, mebi);
    EXPECT_GT(rota::detail::spilled_bytes(), 150 * mebi);
    for (std::size_t i = 0; i < kept.size(); ++i) ASSERT_TRUE(is(kept[i].get(), static_cast<std::uint32_t>(i))) << i;
    for (std::size_t i = kept.size(); i-- > 0;) ASSERT_TRUE(is(kept[i].get(), static_cast<std::uint32_t>(i))) << i;
  }
  EXPECT_TRUE(nothing_is_spilled());
}

TEST(spill, what_is_read_in_order_is_read_ahead) {
  constexpr std::uint32_t read = 60;
  const refs kept = put_many(128, 2 * mebi);
  std::uint32_t ahead = 0;
  for (std::uint32_t i = 0; i < read; ++i) {
    try {
      EXPECT_TRUE(is(kept[i].get(0ms), i));
      ++ahead;
    } catch (const rota::get_timeout&) {
      EXPECT_TRUE(is(kept[i].get(), i));
    }
    std::this_thread::sleep_for(10ms);  // which is what another core would do meanwhile
  }
  EXPECT_GT(ahead, read / 2);
}

TEST(spill, results_and_arguments_of_tasks_on_all_ranks) {
  refs results;
  const auto ranks = workers();
  for (std::uint32_t i = 0; i < 128; ++i) {
    results.push_back(remote<made>.with({.where = rota::on_rank(ranks[i % ranks.size()])})(2 * mebi, i));
  }
  std::vector<ref<bool>> right;
  for (std::uint32_t i = 0; i + 1 < 128; ++i) {
    right.push_back(
        remote<are>.with({.where = rota::on_rank(ranks[i * 7 % ranks.size()])})(results[i], results[i + 1], i));
  }
  for (std::size_t i = 0; i < right.size(); ++i) ASSERT_TRUE(right[i].get()) << i;
  results.clear();
  right.clear();
  EXPECT_TRUE(nothing_is_spilled());
}

TEST(spill, values_of_half_the_store) {
  const refs kept = put_many(6, 32 * mebi);
  for (std::uint32_t i : {3u, 0u, 5u, 1u, 4u, 2u}) ASSERT_TRUE(is(kept[i].get(), i)) << i;
}

TEST(spill, a_view_stays_while_all_others_go) {
  auto first = rota::put(made(4 * mebi, 1000));
  const array<std::uint32_t> view = first.get();
  const std::uint32_t* at = view.data();
  const refs others = put_many(100, 2 * mebi);
  EXPECT_TRUE(is(view, 1000));
  EXPECT_EQ(first.get().data(), at) << "it has not moved";
  first = {};
  const refs more = put_many(50, 2 * mebi);
  EXPECT_TRUE(is(view, 1000)) << "the view keeps the object";
}

TEST(spill, more_views_at_once_than_fit_on_a_board) {
  const refs kept = put_many(3000, 5000);
  std::vector<array<std::uint32_t>> views = rota::get(kept);
  const refs others = put_many(100, 2 * mebi);
  for (std::size_t i = 0; i < views.size(); ++i) ASSERT_TRUE(is(views[i], static_cast<std::uint32_t>(i))) << i;
}

TEST(spill, threads_need_more_entries_at_once) {
  const refs kept = put_many(1000, 5000);
  constexpr int readers = 12, rounds = 4;
  std::barrier together(readers);
  std::atomic<int> wrong{0};
  std::vector<std::jthread> threads;
  for (int reader = 0; reader < readers; ++reader) {
    threads.emplace_back([&] {
      std::vector<array<std::uint32_t>> views;
      for (int round = 0; round < rounds; ++round) {
        together.arrive_and_wait();
        for (const auto& one : kept) views.push_back(one.get());
      }
      together.arrive_and_wait();
      for (std::size_t i = 0; i < views.size(); ++i)
        wrong += is(views[i], static_cast<std::uint32_t>(i % 1000)) ? 0 : 1;
    });
  }
  threads.clear();
  EXPECT_EQ(wrong, 0);
  for (std::size_t i = 0; i < kept.size(); ++i) ASSERT_TRUE(is(kept[i].get(), static_cast<std::uint32_t>(i))) << i;
}

// All that its rank holds is in views, and it goes on to put small values: it never has anything to move out.
std::size_t hold_and_put(const refs& kept, const std::string& begun, const std::string& over) {
  const std::vector<array<std::uint32_t>> views = rota::get(kept);
  write_note(begun);
  std::size_t right = 0;
  for (const auto until = std::chrono::steady_clock::now() + 60s; !exists(over);) {
    if (std::chrono::steady_clock::now() > until) throw std::runtime_error("nobody made " + over);
    right += is(rota::put(made(8192, 1)).get(), 1) ? 1 : 0;
  }
  return right;
}
TEST(spill, room_is_found_where_it_is_and_not_only_where_most_is_held) {
  const auto ranks = workers();
  if (ranks.size() < 2) GTEST_SKIP() << "needs two workers";
  const auto make_on = [&](unsigned rank, std::uint32_t i) {
    return remote<made>.with({.where = rota::on_rank(rank)})(4 * mebi, i);
  };
  note_folder notes;
  const std::string begun = notes["begun"], over = notes["over"];
  refs most, rest;
  for (std::uint32_t i = 0; i < 9; ++i) most.push_back(make_on(ranks[0], i));
  const auto puts = remote<hold_and_put>.with({.where = rota::on_rank(ranks[0])})(most, begun, over);
  EXPECT_TRUE(eventually([&] { return exists(begun); }));
  for (std::uint32_t i = 0; i < 20; ++i) rest.push_back(make_on(ranks[1], i));
  for (std::uint32_t i = 0; i < 20; ++i) {
    try {
      EXPECT_TRUE(is(rest[i].get(), i)) << i;
    } catch (const rota::error& e) {
      ADD_FAILURE() << i << ": " << e.what();
    }
  }
  write_note(over);
  EXPECT_GT(puts.get(), 0u);
}

TEST(spill, small_values_by_the_hundred_thousand) {
  {
    const refs kept = put_many(200'000, 4608);
    EXPECT_GT(rota::detail::spilled_bytes(), 800 * mebi);
    for (std::size_t i = 0; i < kept.size(); ++i) ASSERT_TRUE(is(kept[i].get(), static_cast<std::uint32_t>(i))) << i;
  }
  EXPECT_TRUE(nothing_is_spilled());
}

TEST(spill, other_kinds_of_values) {
  std::vector<ref<std::vector<std::string>>> kept;
  for (int i = 0; i < 100; ++i) kept.push_back(rota::put(std::vector<std::string>(20'000, std::to_string(i))));
  const refs others = put_many(64, 2 * mebi);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(kept[static_cast<std::size_t>(i)].get().at(19'999), std::to_string(i));
}

TEST(spill, writers_wait_until_views_are_let_go) {
  const refs kept = put_many(14, 4 * mebi);
  std::vector<array<std::uint32_t>> views = rota::get(kept);
  std::atomic<bool> let_go{false};
  const std::jthread later([&] {
    std::this_thread::sleep_for(300ms);
    let_go = true;
    views.clear();
  });
  EXPECT_EQ(made(40 * mebi, 1).size(), 10 * mebi);
  EXPECT_TRUE(let_go) << "before that there was no room";
}

TEST(spill, a_store_full_of_views_is_out_of_memory_in_time_and_tells_who_holds_it) {
  const refs kept = put_many(14, 4 * mebi);
  const std::vector<array<std::uint32_t>> views = rota::get(kept);
  const auto begin = std::chrono::steady_clock::now();
  const auto full = thrown_by<rota::out_of_memory>([] { made(40 * mebi, 1); });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 15s);
  EXPECT_TRUE(contains(full.what(), "it is held by rank 0 5")) << full.what();
  EXPECT_TRUE(contains(full.what(), "(largest: 4194304, 4194304")) << full.what();
  EXPECT_TRUE(contains(full.what(), "14 in views here")) << full.what();
  for (std::size_t i = 0; i < views.size(); ++i) EXPECT_TRUE(is(views[i], static_cast<std::uint32_t>(i)));
}

TEST(spill, get_with_a_limit_says_so_when_there_is_no_room_in_time) {
  const refs away = put_many(40, 4 * mebi);
  refs kept(away.begin() + 26, away.end());
  const std::vector<array<std::uint32_t>> views = rota::get(kept);  // nearly all of the store
  EXPECT_THROW(
      {
        for (std::size_t i = 0; i < 8; ++i) away[i].get(100ms);
        std::vector<array<std::uint32_t>> more;
        for (std::size_t i = 0; i < 8; ++i) more.push_back(away[i].get(100ms));
      },
      rota::get_timeout);
}

TEST(spill, threads_and_tasks_read_at_random_while_others_write) {
  const refs kept = put_many(96, 2 * mebi);
  std::atomic<bool> over{false};
  std::atomic<int> wrong{0}, read{0};
  std::vector<std::thread> readers;
  for (unsigned t = 0; t < 3; ++t) {
    readers.emplace_back([&, t] {
      std::mt19937 random(t);
      while (!over) {
        const std::uint32_t i = static_cast<std::uint32_t>(random() % kept.size());
        if (!is(kept[i].get(), i)) ++wrong;
        ++read;
      }
    });
  }
  std::mt19937 random(17);
  const auto until = std::chrono::steady_clock::now() + 3s;
  int rounds = 0;
  while (std::chrono::steady_clock::now() < until) {
    const std::uint32_t i = static_cast<std::uint32_t>(random() % (kept.size() - 1));
    auto fresh = remote<made>(mebi, i);
    EXPECT_TRUE(remote<are>(kept[i], kept[i + 1], i).get());
    EXPECT_TRUE(is(fresh.get(), i));
    ++rounds;
  }
  over = true;
  for (std::thread& one : readers) one.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(read, 10);
  EXPECT_GT(rounds, 3);
}

// Lost ones say so, and no other value is harmed.
void expect_lost_or_right(const refs& kept, const std::string& word) {
  std::size_t lost = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    try {
      ASSERT_TRUE(is(kept[i].get(), static_cast<std::uint32_t>(i))) << i;
    } catch (const rota::object_lost& e) {
      ++lost;
      EXPECT_TRUE(contains(e.what(), word)) << e.what();
      EXPECT_TRUE(contains(e.what(), "rank 0 (")) << e.what();
    }
  }
  EXPECT_GT(lost, 0u);
  EXPECT_LT(lost, kept.size());
  EXPECT_THROW(remote<is>(kept[0], 0u).get(), rota::object_lost);
  EXPECT_TRUE(is(rota::put(made(mebi, 5)).get(), 5));
}

TEST(spill_file, truncated_by_hand_gives_object_lost) {
  const refs kept = put_many(128, 2 * mebi);
  for (const std::string& path : spill_files()) ASSERT_EQ(truncate(path.c_str(), 5000), 0) << path;
  expect_lost_or_right(kept, "2097152 bytes");  // too few, or zeros where more was written behind
}

TEST(spill_file, changed_by_hand_gives_object_lost) {
  const refs kept = put_many(128, 2 * mebi);
  for (const std::string& path : spill_files()) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    for (std::size_t at = 777; at < 64 * mebi; at += mebi) {
      file.seekp(static_cast<std::streamoff>(at));
      file.put('x');
    }
  }
  expect_lost_or_right(kept, "checksum");
}

}  // namespace
