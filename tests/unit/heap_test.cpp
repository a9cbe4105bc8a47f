#include "objectstore/heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace rota::objectstore {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

// A pool that no test needs to write to: the heap itself must never touch it.
struct fixture {
  explicit fixture(std::uint32_t extents)
      : ledger((extents + 7) / 8, std::byte{0xff}),
        books({reinterpret_cast<std::byte*>(extent_bytes), extents * extent_bytes}, ledger) {}

  std::vector<run> owned() const { return runs_in(ledger, static_cast<std::uint32_t>(ledger.size() * 8)); }

  std::vector<std::byte> ledger;
  heap books;
};

TEST(heap, starts_with_nothing) {
  fixture f(10);
  EXPECT_TRUE(f.owned().empty());
  EXPECT_EQ(f.books.allocate(0), std::nullopt);
  EXPECT_EQ(f.books.allocate(1), std::nullopt);
  EXPECT_EQ(f.books.free_bytes(), 0u);
  EXPECT_TRUE(f.books.trim(0).empty());
}

TEST(heap, extents_for_rounds_up) {
  EXPECT_EQ(heap::extents_for(0), 1u);
  EXPECT_EQ(heap::extents_for(1), 1u);
  EXPECT_EQ(heap::extents_for(extent_bytes), 1u);
  EXPECT_EQ(heap::extents_for(extent_bytes + 1), 2u);
  EXPECT_EQ(heap::extents_for(64 * mib), 32u);
  EXPECT_EQ(heap::extents_for(SIZE_MAX), 0xffff'ffffu);
}

TEST(heap, objects_are_aligned_and_know_their_size) {
  fixture f(4);
  f.books.add({0, 4});
  for (const std::size_t bytes : {0ul, 1ul, 63ul, 64ul, 65ul, 5000ul, 2 * mib + 1}) {
    const auto offset = f.books.allocate(bytes);
    ASSERT_TRUE(offset);
    EXPECT_EQ(*offset % 64, 0u);
    EXPECT_EQ(f.books.size_of(*offset), bytes);
  }
  EXPECT_EQ(f.books.live_objects(), 7u);
  EXPECT_EQ(f.books.used_bytes() + f.books.free_bytes(), 8 * mib);
}

TEST(heap, empty_objects_have_places_of_their_own) {
  fixture f(1);
  f.books.add({0, 1});
  const auto one = f.books.allocate(0);
  const auto other = f.books.allocate(0);
  EXPECT_NE(one, other);
  f.books.free(*one);
  f.books.free(*other);
  EXPECT_EQ(f.books.used_bytes(), 0u);
}

TEST(heap, object_can_fill_all_extents_exactly) {
  fixture f(600);
  f.books.add({0, 512});
  const auto offset = f.books.allocate(1024 * mib);
  EXPECT_EQ(offset, 0u);
  EXPECT_EQ(f.books.free_bytes(), 0u);
  EXPECT_EQ(f.books.allocate(1), std::nullopt);
  f.books.free(*offset);
  EXPECT_EQ(f.books.trim(0), (std::vector<run>{{0, 512}}));
}

TEST(heap, object_lies_across_grants_that_touch) {
  for (const auto& order :
       {std::vector<run>{{2, 1}, {3, 1}, {4, 1}}, {{4, 1}, {3, 1}, {2, 1}}, {{2, 1}, {4, 1}, {3, 1}}}) {
    fixture f(8);
    for (const run& each : order) f.books.add(each);
    EXPECT_EQ(f.books.allocate(3 * extent_bytes), 2 * extent_bytes);
  }
}

TEST(heap, object_never_crosses_a_gap) {
  fixture f(8);
  f.books.add({0, 2});
  f.books.add({3, 2});
  EXPECT_EQ(f.books.allocate(2 * extent_bytes + 1), std::nullopt);
  EXPECT_TRUE(f.books.allocate(2 * extent_bytes));
  EXPECT_TRUE(f.books.allocate(2 * extent_bytes));
}

TEST(heap, finds_the_only_block_that_fits_among_many_of_its_bin) {
  fixture f(64);
  f.books.add({0, 64});
  // Holes of 100 KiB and one of 101 KiB, all in one bin, and nothing else free.
  std::vector<std::size_t> holes;
  for (int i = 0; i < 100; ++i) {
    holes.push_back(*f.books.allocate(i == 50 ? 101 * kib : 100 * kib));
    f.books.allocate(64);
  }
  const auto filler = f.books.allocate(f.books.free_bytes());
  ASSERT_TRUE(filler);
  for (const std::size_t each : holes) f.books.free(each);
  EXPECT_EQ(f.books.allocate(101 * kib), holes[50]);
  EXPECT_EQ(f.books.allocate(101 * kib), std::nullopt);
  EXPECT_TRUE(f.books.allocate(100 * kib));
}

TEST(heap, freed_neighbours_join_in_any_order) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    fixture f(4);
    f.books.add({0, 4});
    std::vector<std::size_t> places;
    while (const auto offset = f.books.allocate(64 * kib)) places.push_back(*offset);
    EXPECT_EQ(places.size(), 128u);
    std::shuffle(places.begin(), places.end(), std::mt19937(seed));
    for (const std::size_t each : places) f.books.free(each);
    EXPECT_EQ(f.books.allocate(4 * extent_bytes), 0u);
  }
}

TEST(heap, bad_calls_throw_and_change_nothing) {
  fixture f(8);
  f.books.add({1, 4});
  const auto first = f.books.allocate(1000);
  const auto second = f.books.allocate(1000);
  f.books.free(*first);
  const std::size_t free_before = f.books.free_bytes();
  EXPECT_THROW(f.books.free(*first), std::logic_error);
  EXPECT_THROW(f.books.free(*second + 64), std::logic_error);
  EXPECT_THROW(f.books.free(*second + 1), std::logic_error);
  EXPECT_THROW(f.books.free(SIZE_MAX), std::logic_error);
  EXPECT_THROW(f.books.size_of(*first), std::logic_error);
  EXPECT_THROW(f.books.add({4, 2}), std::logic_error);
  EXPECT_THROW(f.books.add({7, 2}), std::logic_error);
  EXPECT_THROW(f.books.add({7, 0xffff'ffff}), std::logic_error);
  EXPECT_EQ(f.books.free_bytes(), free_before);
  EXPECT_EQ(f.owned(), (std::vector<run>{{1, 4}}));
  f.books.free(*second);
  EXPECT_EQ(f.books.trim(0), (std::vector<run>{{1, 4}}));
  std::vector<std::byte> short_ledger(1);
  EXPECT_THROW(heap({static_cast<std::byte*>(nullptr), 9 * extent_bytes}, short_ledger), std::logic_error);
}

TEST(heap, trim_keeps_warm_memory) {
  fixture f(32);
  f.books.add({0, 10});
  EXPECT_TRUE(f.books.trim(10 * extent_bytes).empty());
  EXPECT_EQ(f.books.trim(8 * extent_bytes - 1), (std::vector<run>{{8, 2}}));
  EXPECT_EQ(f.owned(), (std::vector<run>{{0, 8}}));
  EXPECT_EQ(f.books.free_bytes(), 8 * extent_bytes);
  EXPECT_TRUE(f.books.allocate(8 * extent_bytes));
  EXPECT_TRUE(f.books.trim(0).empty());
}

TEST(heap, trim_leaves_extents_in_use) {
  fixture f(16);
  f.books.add({0, 6});
  const auto low = f.books.allocate(100);
  const auto wide = f.books.allocate(3 * extent_bytes);
  ASSERT_EQ(*wide, 3 * extent_bytes);
  EXPECT_EQ(f.books.trim(0), (std::vector<run>{{1, 2}}));
  EXPECT_EQ(f.owned(), (std::vector<run>{{0, 1}, {3, 3}}));
  f.books.add({1, 1});
  EXPECT_EQ(f.books.trim(0), (std::vector<run>{{1, 1}}));
  f.books.free(*wide);
  f.books.free(*low);
  EXPECT_EQ(f.books.trim(0), (std::vector<run>{{0, 1}, {3, 3}}));
  EXPECT_TRUE(f.owned().empty());
  EXPECT_EQ(f.books.free_bytes(), 0u);
}

TEST(heap, trim_gives_short_stretches_back_first) {
  fixture f(64);
  f.books.add({0, 1});
  f.books.add({10, 40});
  f.books.add({60, 2});
  EXPECT_EQ(f.books.trim(38 * extent_bytes), (std::vector<run>{{0, 1}, {48, 2}, {60, 2}}));
  EXPECT_TRUE(f.books.allocate(38 * extent_bytes));
}

// What the keeper, two owners and their readers see under random use: no overlap, contents kept, no extent with two
// owners, ledgers that agree with the table, and everything back in one piece at the end.
class node {
 public:
  static constexpr std::uint32_t extents = 24;

  explicit node(unsigned seed) : random_(seed) {
    for (rank_t rank = 0; rank < 2; ++rank) {
      ledgers_.emplace_back(extents / 8);
      heaps_.push_back(std::make_unique<heap>(pool_, ledgers_[rank]));
    }
    objects_.resize(2);
  }

  void put(rank_t rank) {
    static constexpr std::size_t limits[] = {1, 200, 6 * kib, 300 * kib, 5 * mib};
    const std::size_t bytes = random_() % limits[random_() % 5];
    auto offset = heaps_[rank]->allocate(bytes);
    if (!offset) {
      const auto granted = table_.grant(rank, heap::extents_for(bytes));
      if (!granted) return;
      heaps_[rank]->add(*granted);
      offset = heaps_[rank]->allocate(bytes);
    }
    ASSERT_TRUE(offset);
    ASSERT_LE(*offset + bytes, pool_.size());
    const auto value = static_cast<unsigned char>(random_());
    std::memset(pool_.data() + *offset, value, bytes);
    ASSERT_TRUE(objects_[rank].emplace(*offset, object{bytes, value}).second);
  }

  void drop(rank_t rank) {
    if (objects_[rank].empty()) return;
    const auto victim = std::next(objects_[rank].begin(), static_cast<long>(random_() % objects_[rank].size()));
    const auto& [offset, facts] = *victim;
    ASSERT_EQ(heaps_[rank]->size_of(offset), facts.bytes);
    if (facts.bytes > 0) {
      const auto* const start = pool_.data() + offset;
      ASSERT_EQ(start[0], std::byte{facts.value});
      ASSERT_EQ(std::memcmp(start, start + 1, facts.bytes - 1), 0);  // all bytes equal
    }
    heaps_[rank]->free(offset);
    objects_[rank].erase(victim);
  }

  void trim(rank_t rank) {
    for (const run& each : heaps_[rank]->trim(random_() % 3 * extent_bytes)) table_.give_back(rank, each);
  }

  void check(rank_t rank) {
    ASSERT_EQ(runs_in(ledgers_[rank], extents), table_.of(rank));
    ASSERT_EQ(heaps_[rank]->live_objects(), objects_[rank].size());
    std::size_t owned = 0;
    for (const run& each : table_.of(rank)) owned += each.count * extent_bytes;
    ASSERT_EQ(heaps_[rank]->used_bytes() + heaps_[rank]->free_bytes(), owned);
  }

  void finish() {
    for (rank_t rank = 0; rank < 2; ++rank) {
      while (!objects_[rank].empty()) drop(rank);
      EXPECT_EQ(heaps_[rank]->used_bytes(), 0u);
      EXPECT_EQ(heaps_[rank]->live_objects(), 0u);
      for (const run& each : heaps_[rank]->trim(0)) table_.give_back(rank, each);
      check(rank);
    }
    EXPECT_EQ(table_.largest_free(), extents);
  }

  unsigned dice() { return static_cast<unsigned>(random_() % 100); }

 private:
  struct object {
    std::size_t bytes;
    unsigned char value;
  };
  std::mt19937 random_;
  std::vector<std::byte> pool_ = std::vector<std::byte>(extents * extent_bytes);
  extent_table table_{extents};
  std::vector<std::vector<std::byte>> ledgers_;
  std::vector<std::unique_ptr<heap>> heaps_;
  std::vector<std::map<std::size_t, object>> objects_;
};

TEST(heap, random_use_keeps_contents_and_leaks_nothing) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    node n(seed);
    for (int step = 0; step < 2400; ++step) {
      const rank_t rank = n.dice() % 2;
      // Alternate between filling and draining, so that both full and nearly empty pools are seen.
      const unsigned puts = step / 300 % 2 == 0 ? 65 : 30;
      if (const unsigned dice = n.dice(); dice < puts) {
        n.put(rank);
      } else if (dice < 95) {
        n.drop(rank);
      } else {
        n.trim(rank);
      }
      n.check(rank);
      if (testing::Test::HasFatalFailure()) return;
    }
    n.finish();
  }
}

}  // namespace
}  // namespace rota::objectstore
