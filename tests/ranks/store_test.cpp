// A full object store: out_of_memory, and the program goes on.
#include <gtest/gtest.h>
#include <rota/rota.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "tests/ranks/session_help.h"

namespace {

using namespace rota::tests;
using rota::array;
using rota::ref;
using rota::remote;

// Read by init, which comes after it.
const bool small_store = offer({{"ROTA_STORE", "64M"}, {"ROTA_SPILL_QUOTA", "0"}, {"ROTA_STORE_PATIENCE", "300ms"}});

constexpr std::size_t mebi = std::size_t{1} << 20;

array<char> made(std::size_t size, char value) {
  auto bytes = rota::make_array<char>(size);
  std::fill(bytes.begin(), bytes.end(), value);
  return bytes;
}
std::vector<char> vector_of(std::size_t size, char value) { return std::vector<char>(size, value); }
std::size_t size_of(const array<char>& a) { return a.size(); }
int plus_one(int x) { return x + 1; }

bool all_are(const array<char>& a, char value) {
  return std::all_of(a.begin(), a.end(), [&](char c) { return c == value; });
}

// Puts arrays until there is no room.
std::vector<ref<array<char>>> fill_up() {
  std::vector<ref<array<char>>> kept;
  for (int i = 0; i < 200; ++i) {
    try {
      kept.push_back(rota::put(made(mebi, static_cast<char>(i))));
    } catch (const rota::out_of_memory&) {
      break;
    }
  }
  return kept;
}

TEST(full_store, put_throws_and_what_is_there_stays) {
  for (int round = 0; round < 2; ++round) {
    const auto kept = fill_up();
    EXPECT_GT(kept.size(), 30u);
    EXPECT_LT(kept.size(), 65u);
    const auto full = thrown_by<rota::out_of_memory>([] { rota::make_array<char>(8 * mebi); });
    EXPECT_TRUE(contains(full.what(), "rank 0 (") && contains(full.what(), "8388608 bytes")) << full.what();
    EXPECT_TRUE(contains(full.what(), "of 67108864 bytes")) << full.what();
    EXPECT_THROW(rota::put(std::vector<char>(8 * mebi)), rota::out_of_memory);
    EXPECT_EQ(remote<plus_one>(1).get(), 2);  // small values need no room
    for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(all_are(kept[i].get(), static_cast<char>(i)));
  }
}

TEST(full_store, a_result_that_does_not_fit_fails_its_task_only) {
  auto kept = fill_up();
  EXPECT_THROW(remote<vector_of>(8 * mebi, 'v').get(), rota::out_of_memory);
  EXPECT_THROW(remote<made>(8 * mebi, 'm').get(), rota::error);  // thrown inside the function
  EXPECT_EQ(remote<plus_one>(1).get(), 2);
  kept.clear();
  EXPECT_TRUE(eventually([] {
    try {
      return remote<made>(8 * mebi, 'm').get().size() == 8 * mebi;
    } catch (const rota::error&) {
      return false;
    }
  }));
  EXPECT_EQ(remote<vector_of>(8 * mebi, 'v').get().size(), 8 * mebi);
}

TEST(full_store, a_large_argument_that_does_not_fit_is_refused_at_the_call) {
  auto kept = fill_up();
  const std::vector<char> large(8 * mebi);
  EXPECT_THROW(remote<[](const std::vector<char>& v) { return v.size(); }>(large), rota::out_of_memory);
  kept.clear();
  EXPECT_TRUE(eventually([&] {
    try {
      return remote<[](const std::vector<char>& v) { return v.size(); }>(large).get() == large.size();
    } catch (const rota::out_of_memory&) {
      return false;
    }
  }));
}

TEST(full_store, a_value_larger_than_the_store_is_refused_with_the_sizes) {
  const auto full = thrown_by<rota::out_of_memory>([] { rota::make_array<char>(std::size_t{1} << 40); });
  EXPECT_TRUE(contains(full.what(), "1099511627776 bytes")) << full.what();
  EXPECT_TRUE(contains(full.what(), "of 67108864 bytes")) << full.what();
  EXPECT_THROW(rota::make_array<char>(65 * mebi), rota::out_of_memory);
  EXPECT_EQ(size_of(made(mebi, 'x')), mebi);
}

TEST(full_store, an_array_of_absurd_length_is_refused_with_the_sizes) {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  const auto full = thrown_by<rota::out_of_memory>([] { rota::make_array<double>(most); });
  EXPECT_TRUE(contains(full.what(), "rank 0 (") && contains(full.what(), "of 67108864 bytes")) << full.what();
  EXPECT_TRUE(contains(full.what(), "18446744073709551615 values of 8 bytes")) << full.what();
  for (const std::size_t n : {most / 8, most / 8 + 1, most / 2}) {  // the first is a number of bytes
    EXPECT_THROW(rota::make_array<double>(n), rota::out_of_memory) << n;
  }
  EXPECT_THROW(rota::make_array<char>(most), rota::out_of_memory);
  EXPECT_THROW((remote<[](std::size_t n) { return rota::make_array<double>(n); }>(most).get()), rota::out_of_memory);
  EXPECT_EQ(size_of(made(mebi, 'x')), mebi);
}

TEST(full_store, room_that_one_rank_gave_back_serves_another) {
  for (unsigned rank : workers()) {
    for (int i = 0; i < 10; ++i) {
      auto bytes = remote<made>.with({.where = rota::on_rank(rank)})(30 * mebi, 'r');
      EXPECT_EQ(remote<size_of>(bytes).get(), 30 * mebi);
      bytes = {};
      EXPECT_TRUE(eventually([] {
        try {
          return rota::put(made(30 * mebi, 'd')).get().size() == 30 * mebi;
        } catch (const rota::out_of_memory&) {
          return false;
        }
      }));
    }
  }
}

}  // namespace
