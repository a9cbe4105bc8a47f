#include "objectstore/extents.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <stdexcept>
#include <vector>

namespace rota::objectstore {

TEST(ledger, has_a_bit_for_each_extent) {
  using rota::objectstore::ledger_bytes;
  EXPECT_EQ(ledger_bytes(0), 0u);
  EXPECT_EQ(ledger_bytes(1), 64u);
  EXPECT_EQ(ledger_bytes(512), 64u);
  EXPECT_EQ(ledger_bytes(513), 128u);
  for (std::size_t more = 0; more < 1030; ++more) {
    const std::size_t extents = 32768 + more;  // 64 GiB and more
    EXPECT_GE(ledger_bytes(extents) * 8, extents);
    EXPECT_LT(ledger_bytes(extents) * 8, extents + 512);
    EXPECT_EQ(ledger_bytes(extents) % 64, 0u);
  }
}

TEST(extents, grants_lowest_run_that_fits) {
  extent_table table(10);
  EXPECT_EQ(table.grant(1, 2), (run{0, 2}));
  EXPECT_EQ(table.grant(2, 3), (run{2, 3}));
  EXPECT_EQ(table.grant(1, 1), (run{5, 1}));
  table.give_back(1, {0, 2});
  EXPECT_EQ(table.grant(3, 3), (run{6, 3}));
  EXPECT_EQ(table.grant(3, 1), (run{0, 1}));
  EXPECT_EQ(table.free(), 2u);
  EXPECT_EQ(table.largest_free(), 1u);
  EXPECT_EQ(table.grant(4, 2), std::nullopt);
  EXPECT_EQ(table.grant(4, 100), std::nullopt);
  EXPECT_EQ(table.of(3), (std::vector<run>{{0, 1}, {6, 3}}));
}

TEST(extents, whole_pool_can_be_one_run) {
  extent_table table(1000);
  EXPECT_EQ(table.grant(7, 1000), (run{0, 1000}));
  EXPECT_EQ(table.free(), 0u);
  EXPECT_EQ(table.largest_free(), 0u);
  EXPECT_EQ(table.grant(7, 1), std::nullopt);
  table.reclaim(7);
  EXPECT_EQ(table.largest_free(), 1000u);
}

TEST(extents, pool_without_extents_grants_nothing) {
  extent_table table(0);
  EXPECT_EQ(table.grant(0, 1), std::nullopt);
  EXPECT_EQ(table.largest_free(), 0u);
}

TEST(extents, part_of_a_run_can_be_given_back) {
  extent_table table(8);
  table.grant(1, 8);
  table.give_back(1, {3, 2});
  EXPECT_EQ(table.of(1), (std::vector<run>{{0, 3}, {5, 3}}));
  EXPECT_EQ(table.largest_free(), 2u);
  table.give_back(1, {2, 1});
  table.give_back(1, {5, 1});
  EXPECT_EQ(table.largest_free(), 4u);
}

TEST(extents, contradiction_throws_and_changes_nothing) {
  extent_table table(8);
  table.grant(1, 2);
  table.grant(2, 2);
  EXPECT_THROW(table.give_back(1, {1, 2}), std::logic_error);
  EXPECT_THROW(table.give_back(1, {4, 1}), std::logic_error);
  EXPECT_THROW(table.give_back(1, {7, 2}), std::logic_error);
  EXPECT_THROW(table.give_back(1, {1, 0xffff'ffff}), std::logic_error);
  EXPECT_THROW(table.give_back(no_rank, {4, 1}), std::logic_error);
  EXPECT_THROW(table.give_back(1, {0, 0}), std::logic_error);
  EXPECT_THROW(table.claim(3, {3, 2}), std::logic_error);
  EXPECT_THROW(table.grant(1, 0), std::logic_error);
  EXPECT_THROW(table.grant(no_rank, 1), std::logic_error);
  table.give_back(1, {0, 2});
  EXPECT_THROW(table.give_back(1, {0, 2}), std::logic_error);
  EXPECT_EQ(table.free(), 6u);
  EXPECT_EQ(table.of(2), (std::vector<run>{{2, 2}}));
}

TEST(extents, grants_highest_run_where_asked) {
  extent_table table(10);
  using side = extent_table::side;
  EXPECT_EQ(table.grant(1, 1, side::high), (run{9, 1}));
  EXPECT_EQ(table.grant(2, 2, side::high), (run{7, 2}));
  EXPECT_EQ(table.grant(3, 3), (run{0, 3}));
  table.give_back(1, {9, 1});
  EXPECT_EQ(table.grant(3, 2, side::high), (run{5, 2}));
  EXPECT_EQ(table.grant(3, 3, side::high), std::nullopt);
  EXPECT_EQ(table.grant(3, 1, side::high), (run{9, 1}));
}

TEST(extents, ledger_bits_are_runs) {
  std::array<std::byte, 3> ledger{std::byte{0b1000'0110}, std::byte{0b0000'0001}, std::byte{0b1111'0000}};
  EXPECT_EQ(runs_in(ledger, 22), (std::vector<run>{{1, 2}, {7, 2}, {20, 2}}));
  EXPECT_EQ(runs_in(ledger, 0), std::vector<run>{});
}

TEST(extents, successor_rebuilds_the_table) {
  extent_table successor(16);
  successor.claim(1, {0, 3});
  successor.claim(2, {5, 2});
  successor.claim(1, {15, 1});
  EXPECT_EQ(successor.free(), 10u);
  EXPECT_EQ(successor.largest_free(), 8u);
  EXPECT_EQ(successor.of(1), (std::vector<run>{{0, 3}, {15, 1}}));
  EXPECT_EQ(successor.grant(3, 3), (run{7, 3}));
}

TEST(extents, random_use_agrees_with_a_plain_array) {
  constexpr std::uint32_t extents = 300;
  std::mt19937 random(42);
  const auto below = [&](std::uint32_t end) { return static_cast<std::uint32_t>(random() % end); };
  extent_table table(extents);
  std::vector<rank_t> model(extents, no_rank);
  const auto lowest_fit = [&](std::uint32_t count) -> std::optional<run> {
    for (std::uint32_t first = 0, length = 0; first + length < extents;) {
      if (model[first + length] != no_rank) {
        first += length + 1;
        length = 0;
      } else if (++length == count) {
        return run{first, count};
      }
    }
    return std::nullopt;
  };
  for (int step = 0; step < 20'000; ++step) {
    const rank_t owner = below(5);
    const auto held = table.of(owner);
    if (const auto dice = below(100); dice < 55) {
      const std::uint32_t count = 1 + below(12);
      const auto expected = lowest_fit(count);
      ASSERT_EQ(table.grant(owner, count), expected) << "step " << step;
      if (expected) std::fill_n(model.begin() + expected->first, count, owner);
    } else if (dice < 99 && !held.empty()) {
      const run whole = held[below(static_cast<std::uint32_t>(held.size()))];
      const std::uint32_t skip = below(whole.count);
      const run part{whole.first + skip, 1 + below(whole.count - skip)};
      table.give_back(owner, part);
      std::fill_n(model.begin() + part.first, part.count, no_rank);
    } else {
      table.reclaim(owner);
      std::replace(model.begin(), model.end(), owner, no_rank);
    }
    ASSERT_EQ(table.free(), std::count(model.begin(), model.end(), no_rank));
    const std::uint32_t largest = table.largest_free();
    ASSERT_TRUE(largest == 0 || lowest_fit(largest));
    ASSERT_FALSE(lowest_fit(largest + 1));
  }
  for (rank_t owner = 0; owner < 5; ++owner) table.reclaim(owner);
  EXPECT_EQ(table.largest_free(), extents);
}

}  // namespace rota::objectstore
