#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "objectstore/values.h"

namespace rota::objectstore {
namespace {

constexpr std::size_t kibi = 1024, books = 64 * kibi, everything = std::size_t{1} << 40;
using whereabouts = values::whereabouts;

// One rank's part of a store of eight extents, all of them granted to it save two; a second rank reads.
class stored_values : public testing::Test {
 protected:
  stored_values() : ledger_(64) {
    void* memory = std::aligned_alloc(4096, 8 * extent_bytes + books);
    std::memset(memory, 0, 8 * extent_bytes + books);
    memory_.pool = {static_cast<std::byte*>(memory), 8 * extent_bytes};
    for (auto& one : pages_) memory_.boards.push_back(&board_at(one.bytes));
    values_.emplace(memory_, 0, ledger_, values::books{8 * extent_bytes, books});
    values_->memory().add({0, 6});
    reader_.emplace(memory_, 1);
  }
  ~stored_values() override { std::free(memory_.pool.data()); }

  std::uint64_t make(std::size_t bytes, origin from = {}) {
    const auto room = values_->reserve(bytes);
    if (!room) throw std::runtime_error("no room");
    values_->seal(room->place, from);
    return room->place;
  }
  bool readable(std::uint64_t place) {
    const auto taken = reader_->take(place);
    if (taken.how != pins::outcome::pinned) return false;
    reader_->give_back(taken.slot);
    return true;
  }
  std::vector<std::uint64_t> picked(const values::evicted& e) {
    std::vector<std::uint64_t> places;
    for (const values::leaving& one : e.to_write) places.push_back(one.place);
    return places;
  }
  std::size_t write(const values::evicted& e) {
    std::vector<disk_place> where;
    for (const values::leaving& one : e.to_write) where.push_back({1, 4096 * ++last_, one.data.size(), 0});
    return values_->written(e.to_write, where, forgotten_);
  }
  // Back into memory, at a fresh place.
  bool bring_back(std::uint64_t place) {
    values_->begin_return(place);
    return values_->returned(place, values_->memory().allocate(values_->size_of(place)).value(), forgotten_);
  }

  struct alignas(64) page {
    std::byte bytes[sizeof(board)] = {};
  };
  std::array<page, 2> pages_;
  std::vector<std::byte> ledger_;
  node_memory memory_;
  std::optional<values> values_;
  std::optional<pins> reader_;
  std::vector<disk_place> forgotten_;
  std::uint64_t last_ = 0;
};

TEST_F(stored_values, what_left_after_one_that_comes_back_may_come_with_it) {
  const auto a = make(100 * kibi), b = make(100 * kibi), c = make(200 * kibi), d = make(100 * kibi);
  write(values_->evict(400 * kibi, everything));
  EXPECT_EQ(values_->where(d), whereabouts::in_memory);
  const values::backing back = values_->begin_return(a);
  ASSERT_EQ(back.next, b);
  const auto early = values_->begin_early_return(b, 100 * kibi);
  ASSERT_TRUE(early);
  EXPECT_EQ(values_->where(b), whereabouts::on_its_way);
  EXPECT_EQ(early->size, 100 * kibi);
  EXPECT_EQ(early->back.next, c);
  EXPECT_TRUE(values_->returned(b, early->offset, forgotten_));
  EXPECT_TRUE(readable(b));
  EXPECT_FALSE(values_->begin_early_return(b, everything)) << "it is here";
  EXPECT_FALSE(values_->begin_early_return(d, everything)) << "it never left";
  EXPECT_FALSE(values_->begin_early_return(c, 100 * kibi)) << "it is too large";
  while (values_->memory().allocate(100 * kibi)) {
  }
  EXPECT_FALSE(values_->begin_early_return(c, everything)) << "there is no room";
  EXPECT_EQ(values_->where(c), whereabouts::away);
  EXPECT_EQ(values_->begin_return(c).next, std::nullopt) << "the last";
}

TEST_F(stored_values, what_was_let_go_of_or_has_come_back_follows_nothing) {
  const auto a = make(100 * kibi), b = make(100 * kibi), c = make(100 * kibi), d = make(100 * kibi);
  write(values_->evict(400 * kibi, everything));
  values_->free(b, forgotten_);
  EXPECT_TRUE(bring_back(c));
  EXPECT_EQ(values_->begin_return(a).next, d);
  values_->not_returned(a, forgotten_);
  EXPECT_EQ(values_->begin_return(a).next, d) << "it is where it was";
}

TEST_F(stored_values, leave_in_the_order_in_which_they_were_made_and_come_back) {
  const auto a = make(100 * kibi), b = make(100 * kibi), c = make(100 * kibi);
  const auto e = values_->evict(150 * kibi, everything);
  EXPECT_EQ(picked(e), (std::vector{a, b}));
  EXPECT_EQ(e.bytes, 0u);
  EXPECT_TRUE(readable(a)) << "while it is written";
  EXPECT_EQ(write(e), 200 * kibi) << "also a, which was read meanwhile but is not pinned";
  EXPECT_EQ(values_->where(c), whereabouts::in_memory);
}

TEST_F(stored_values, that_are_away_are_found_by_nobody_until_they_are_back) {
  const auto a = make(100 * kibi);
  const std::size_t used = values_->memory().used_bytes();
  EXPECT_EQ(write(values_->evict(1, everything)), 100 * kibi);
  EXPECT_EQ(values_->where(a), whereabouts::away);
  EXPECT_FALSE(readable(a));
  EXPECT_EQ(values_->memory().used_bytes(), used - 100 * kibi);
  EXPECT_THROW(values_->lend(a), std::logic_error);
  const values::backing back = values_->begin_return(a);
  EXPECT_EQ(back.disk.size, 100 * kibi);
  EXPECT_EQ(values_->where(a), whereabouts::on_its_way);
  EXPECT_TRUE(values_->returned(a, values_->memory().allocate(100 * kibi).value(), forgotten_));
  EXPECT_TRUE(readable(a));
  const auto again = values_->evict(1, 0);
  EXPECT_EQ(again.bytes, 100 * kibi) << "it need not be written again";
  values_->free(a, forgotten_);
  EXPECT_EQ(forgotten_.size(), 1u);
  EXPECT_EQ(values_->count(), 0u);
}

TEST_F(stored_values, copies_leave_first_and_are_not_written) {
  const auto own = make(100 * kibi);
  const auto copy = make(100 * kibi, {7, 4711});
  const auto e = values_->evict(1, everything);
  EXPECT_EQ(e.bytes, 100 * kibi);
  EXPECT_TRUE(e.to_write.empty());
  EXPECT_EQ(values_->where(own), whereabouts::in_memory);
  const values::backing back = values_->begin_return(copy);
  EXPECT_EQ(back.from.rank, 7u);
  EXPECT_EQ(back.from.place, 4711u);
  values_->not_returned(copy, forgotten_);
  EXPECT_EQ(values_->where(copy), whereabouts::away);
}

TEST_F(stored_values, on_disk_leave_before_others_and_in_memory_alone_are_counted) {
  const auto first = make(100 * kibi), back = make(100 * kibi);
  const auto gone = values_->evict(200 * kibi, everything);
  EXPECT_EQ(write(gone), 200 * kibi);
  EXPECT_EQ(memory_.boards[0]->values.load(), 0u);
  EXPECT_EQ(memory_.boards[0]->left.load(), 200 * kibi);
  const auto never_written = make(100 * kibi);
  ASSERT_TRUE(bring_back(back));
  EXPECT_EQ(memory_.boards[0]->values.load(), 2u);
  const auto e = values_->evict(1, everything);
  EXPECT_EQ(e.bytes, 100 * kibi) << "there is room at once, though it came last";
  EXPECT_TRUE(e.to_write.empty());
  EXPECT_EQ(values_->where(back), whereabouts::away);
  EXPECT_EQ(values_->where(never_written), whereabouts::in_memory);
  values_->free(first, forgotten_);
  values_->free(never_written, forgotten_);
  EXPECT_EQ(memory_.boards[0]->values.load(), 0u);
}

TEST_F(stored_values, are_written_in_batches_however_much_room_is_needed) {
  const auto a = make(100 * kibi), b = make(100 * kibi), c = make(300 * kibi);
  EXPECT_EQ(picked(values_->evict(8 * extent_bytes, 150 * kibi)), (std::vector{a, b}));
  EXPECT_EQ(picked(values_->evict(8 * extent_bytes, 150 * kibi)), std::vector{c}) << "one at least";
}

TEST_F(stored_values, nothing_is_written_where_it_must_not_be) {
  make(100 * kibi);
  const auto e = values_->evict(1, 0);
  EXPECT_EQ(e.found, 0u);
  EXPECT_EQ(memory_.boards[0]->stuck.load(), 1u);
}

TEST_F(stored_values, what_is_pinned_or_lent_stays) {
  const auto pinned = make(100 * kibi), lent = make(100 * kibi), copy = make(100 * kibi, {7, 1}), other = make(kibi);
  const auto taken = reader_->take(pinned), taken_copy = reader_->take(copy);
  values_->lend(lent);
  auto e = values_->evict(8 * extent_bytes, everything);
  EXPECT_EQ(picked(e), std::vector{other});
  EXPECT_EQ(e.bytes, 0u);
  write(e);
  EXPECT_TRUE(readable(pinned) && readable(lent) && readable(copy) && !readable(other));
  reader_->give_back(taken.slot);
  reader_->give_back(taken_copy.slot);
  values_->lend_over(lent, forgotten_);
  e = values_->evict(8 * extent_bytes, everything);
  EXPECT_EQ(e.bytes, 100 * kibi);
  EXPECT_EQ(e.to_write.size(), 2u);
}

TEST_F(stored_values, that_are_pinned_while_they_are_written_stay_and_need_no_second_writing) {
  const auto a = make(100 * kibi);
  auto e = values_->evict(1, everything);
  const auto taken = reader_->take(a);
  EXPECT_EQ(write(e), 0u);
  EXPECT_TRUE(readable(a));
  reader_->give_back(taken.slot);
  e = values_->evict(1, 0);
  EXPECT_EQ(e.bytes, 100 * kibi);
}

TEST_F(stored_values, what_was_read_lately_is_passed_over_once) {
  const auto a = make(100 * kibi), b = make(100 * kibi), c = make(100 * kibi);
  EXPECT_TRUE(readable(a));
  const auto e = values_->evict(1, everything);
  EXPECT_EQ(picked(e), std::vector{b});
  EXPECT_EQ(picked(values_->evict(1, everything)), std::vector{c});
  EXPECT_EQ(picked(values_->evict(1, everything)), std::vector{a});
}

TEST_F(stored_values, that_cannot_be_written_stay) {
  const auto a = make(100 * kibi), b = make(100 * kibi);
  const auto e = values_->evict(8 * extent_bytes, everything);
  values_->free(b, forgotten_);
  values_->not_written(e.to_write);
  EXPECT_TRUE(readable(a));
  EXPECT_EQ(values_->count(), 1u);
  EXPECT_EQ(picked(values_->evict(1, everything)), std::vector{a});
}

TEST_F(stored_values, may_be_freed_at_any_stage) {
  const std::size_t used = values_->memory().used_bytes();
  const auto open = values_->reserve(100).value().place;
  values_->free(open, forgotten_);
  const auto leaving = make(100);
  const auto e = values_->evict(1, everything);
  values_->free(leaving, forgotten_);
  EXPECT_THROW(values_->free(leaving, forgotten_), std::logic_error);
  EXPECT_EQ(values_->where(leaving), whereabouts::unknown);
  write(e);
  EXPECT_EQ(forgotten_.size(), 1u);
  const auto away = make(100);
  write(values_->evict(1, everything));
  values_->free(away, forgotten_);
  EXPECT_EQ(forgotten_.size(), 2u);
  const auto returning = make(100);
  write(values_->evict(1, everything));
  values_->begin_return(returning);
  values_->free(returning, forgotten_);
  EXPECT_FALSE(values_->returned(returning, values_->memory().allocate(100).value(), forgotten_));
  const auto lost = make(100);
  write(values_->evict(1, everything));
  values_->begin_return(lost);
  values_->free(lost, forgotten_);
  values_->not_returned(lost, forgotten_);
  const auto lent = make(100);
  values_->lend(lent);
  values_->free(lent, forgotten_);
  EXPECT_EQ(values_->count(), 1u);
  values_->lend_over(lent, forgotten_);
  EXPECT_EQ(values_->count(), 0u);
  EXPECT_EQ(forgotten_.size(), 4u);
  EXPECT_EQ(values_->memory().used_bytes(), used);
  EXPECT_EQ(memory_.boards[0]->held.load(), 0u);
}

TEST_F(stored_values, that_are_away_are_lent_from_disk_and_keep_their_place_there) {
  const auto a = make(100), b = make(100), c = make(100);
  EXPECT_THROW(values_->lend_from_disk(a), std::logic_error);
  write(values_->evict(extent_bytes, everything));
  const auto from = values_->lend_from_disk(a);
  ASSERT_TRUE(from);
  values_->free(a, forgotten_);
  EXPECT_TRUE(forgotten_.empty()) << "it is being read";
  values_->lend_over(a, forgotten_);
  EXPECT_EQ(forgotten_, std::vector{*from});
  for (const bool freed_last : {false, true}) {
    const auto place = freed_last ? b : c;
    values_->begin_return(place);
    EXPECT_TRUE(values_->lend_from_disk(place)) << "on its way";
    if (!freed_last) values_->free(place, forgotten_);
    EXPECT_TRUE(values_->returned(place, values_->memory().allocate(100).value(), forgotten_)) << "lent: it stays";
    if (freed_last) values_->free(place, forgotten_);
    values_->lend_over(place, forgotten_);
    EXPECT_EQ(values_->where(place), whereabouts::unknown);
  }
  EXPECT_EQ(values_->count(), 0u);
  EXPECT_EQ(forgotten_.size(), 3u);
  const auto copy = make(100, {7, 4711});
  values_->evict(1, everything);
  EXPECT_FALSE(values_->lend_from_disk(copy));
}

TEST_F(stored_values, as_many_as_there_are_books_for_and_then_with_an_extent_more) {
  std::vector<std::uint64_t> places;
  while (!values_->lacks_cells()) places.push_back(make(0));
  EXPECT_EQ(places.size(), board::cells_here + books / sizeof(cell));
  EXPECT_FALSE(values_->reserve(1));
  values_->add_books({7, 1});
  EXPECT_EQ(runs_in(ledger_, 8), (std::vector<run>{{0, 6}, {7, 1}}));
  for (int i = 0; i < 1000; ++i) places.push_back(make(64));
  for (std::uint64_t place : places) EXPECT_TRUE(readable(place));
  EXPECT_TRUE(values_->take_idle_books().empty());
  for (std::uint64_t place : places) values_->free(place, forgotten_);
  EXPECT_EQ(values_->take_idle_books(), (std::vector<run>{{7, 1}})) << "it goes back";
  EXPECT_EQ(runs_in(ledger_, 8), (std::vector<run>{{0, 6}}));
  EXPECT_TRUE(readable(make(10)));
}

TEST_F(stored_values, extents_with_pins_stay) {
  while (!values_->lacks_cells()) make(0);
  values_->add_books({7, 1});
  const auto last = make(0);
  EXPECT_EQ(values_->take_for_pins(8192).value() % 64, 0u);
  EXPECT_FALSE(values_->take_for_pins(extent_bytes));
  values_->free(last, forgotten_);
  EXPECT_TRUE(values_->take_idle_books().empty());
}

TEST_F(stored_values, misuse_is_refused) {
  EXPECT_THROW(values_->free(8, forgotten_), std::logic_error);
  EXPECT_THROW(values_->seal(8), std::logic_error);
  const auto a = make(1);
  EXPECT_THROW(values_->seal(a), std::logic_error);
  EXPECT_THROW(values_->begin_return(a), std::logic_error);
}

TEST_F(stored_values, the_largest_are_told) {
  make(10);
  make(3000);
  make(200);
  EXPECT_EQ(values_->largest(2), (std::vector<std::uint64_t>{3000, 200}));
  EXPECT_EQ(values_->largest(10).size(), 3u);
  EXPECT_EQ(memory_.boards[0]->held.load(), 3210u);
  EXPECT_EQ(memory_.boards[0]->values.load(), 3u);
}

}  // namespace
}  // namespace rota::objectstore
