// What the scheduler keeps its entries and counts in.
#include "runtime/scheduler/entries.h"

#include <gtest/gtest.h>

#include <chrono>

#include "runtime/base/running_mean.h"

namespace {

using rota::make_id;
using rota::base::id_map;
using rota::scheduler::account_book;

rota::rank_t rank_of(std::uint64_t i) { return static_cast<rota::rank_t>(i % 3); }

// A task with many arguments made elsewhere: one rank is counted for each of as many entries in a row. If their keys
// fell together, each look would walk over all of them.
TEST(account_book, many_entries_of_one_rank_are_found_at_once) {
  constexpr std::uint32_t count = 50'000;
  account_book book;
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint32_t e = 1; e <= count; ++e) book.add(e, 3);
  for (std::uint32_t e = 1; e <= count; ++e) {
    ASSERT_TRUE(book.find(e, 3));
    ASSERT_FALSE(book.find(e, 4));
  }
  for (std::uint32_t e = 1; e <= count; ++e) book.erase(e, 3);
  EXPECT_EQ(book.size(), 0u);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));  // about 0.01 s, else half a minute
}

TEST(id_map, holds_what_was_set_and_not_erased) {
  id_map<int> map;
  for (std::uint64_t i = 1; i <= 1000; ++i) map.set(make_id(rank_of(i), i), static_cast<int>(i));
  for (std::uint64_t i = 1; i <= 1000; i += 2) map.erase(make_id(rank_of(i), i));
  EXPECT_EQ(map.size(), 500u);
  for (std::uint64_t i = 1; i <= 1000; ++i)
    EXPECT_EQ(map.find(make_id(rank_of(i), i)), i % 2 ? 0 : static_cast<int>(i));
  for (std::uint64_t i = 2; i <= 1000; i += 2) {
    EXPECT_EQ(map.find_or_add(make_id(rank_of(i), i), [] { return -1; }), std::make_pair(static_cast<int>(i), false));
    map.erase(make_id(rank_of(i), i));
  }
  EXPECT_EQ(map.size(), 0u);
  int left = 0;
  map.for_each([&](rota::object_id, int) { ++left; });
  EXPECT_EQ(left, 0);
}

// The page of the last one stays for the next, and goes for good once others are empty.
TEST(id_map, ids_that_come_and_go) {
  id_map<int> map;
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    EXPECT_EQ(map.find(make_id(1, i)), 0);
    EXPECT_EQ(map.find_or_add(make_id(1, i), [] { return 7; }), std::make_pair(7, true));
    EXPECT_EQ(map.find(make_id(1, i)), 7);
    map.erase(make_id(1, i));
    map.erase(make_id(1, i));
    EXPECT_EQ(map.find(make_id(1, i)), 0);
    EXPECT_EQ(map.size(), 0u);
  }
}

// A task that the kernel put aside must not pass for the rule; one that is long is known as such after a few runs.
TEST(running_mean, follows_but_does_not_jump) {
  float mean = 200;
  mean = rota::base::moved_mean(mean, 4e6f, 0.1f);
  EXPECT_LE(mean, 2'000);
  for (int i = 0; i < 60; ++i) mean = rota::base::moved_mean(mean, 200, 0.1f);
  EXPECT_LT(mean, 210);
  for (int i = 0; i < 5; ++i) mean = rota::base::moved_mean(mean, 1e9f, 0.1f);
  EXPECT_GT(mean, 50'000);
}

}  // namespace
