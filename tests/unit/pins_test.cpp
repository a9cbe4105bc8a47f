#include "objectstore/pins.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <thread>
#include <vector>

namespace rota::objectstore {
namespace {

// A node of two ranks, in private memory.
struct node {
  node() : pool(std::size_t{4} << 20) {
    memory.pool = pool;
    for (auto& one : pages) memory.boards.push_back(&board_at(one.bytes));
  }

  struct alignas(64) page {
    std::byte bytes[sizeof(board)] = {};
  };
  std::vector<std::byte> pool;
  std::array<page, 2> pages;
  node_memory memory;
};

using seen = std::map<std::uint64_t, std::vector<bool>>;  // place -> pinned now, of each entry
seen entries(const node_memory& memory) {
  seen all;
  pins::each(memory, [&](std::uint64_t place, bool now) { all[place].push_back(now); });
  return all;
}

TEST(pins, a_pinned_value_is_seen_by_all_and_one_that_was_read_for_a_while) {
  node n;
  pins reader(n.memory, 1);
  const std::uint64_t place = node_memory::place_on_board(0, 5);
  EXPECT_EQ(reader.take(place).how, pins::outcome::away);
  n.memory.at(place).store(1 + 640);
  const auto taken = reader.take(place);
  ASSERT_EQ(taken.how, pins::outcome::pinned);
  EXPECT_EQ(taken.data, n.pool.data() + 640);
  EXPECT_EQ(reader.in_use(), 1u);
  const auto again = reader.take(place);
  auto of_value = entries(n.memory)[place];
  EXPECT_EQ(std::count(of_value.begin(), of_value.end(), true), 2);
  reader.give_back(again.slot);
  reader.give_back(taken.slot);
  of_value = entries(n.memory)[place];
  EXPECT_EQ(of_value, std::vector<bool>(of_value.size(), false)) << "read lately, and not pinned";
  EXPECT_FALSE(of_value.empty());
  EXPECT_EQ(reader.in_use(), 0u);
}

TEST(pins, places_on_boards_and_in_the_pool_are_told_apart) {
  node n;
  pins reader(n.memory, 0);
  for (const std::uint64_t place : {std::uint64_t{0}, std::uint64_t{8}, node_memory::place_on_board(0, 0),
                                    node_memory::place_on_board(1, 0), node_memory::place_on_board(1, 127)}) {
    n.memory.at(place).store(1 + 64 * (place + 1));
  }
  for (const std::uint64_t place : {std::uint64_t{0}, std::uint64_t{8}, node_memory::place_on_board(0, 0),
                                    node_memory::place_on_board(1, 0), node_memory::place_on_board(1, 127)}) {
    const auto taken = reader.take(place);
    ASSERT_EQ(taken.how, pins::outcome::pinned);
    EXPECT_EQ(taken.data, n.pool.data() + 64 * (place + 1));
    EXPECT_EQ(entries(n.memory)[place], std::vector<bool>{true});
  }
}

TEST(pins, grow_when_all_are_taken) {
  node n;
  pins reader(n.memory, 0);
  const std::uint64_t place = node_memory::place_on_board(1, 3);
  n.memory.at(place).store(1);
  std::vector<std::uint32_t> slots;
  std::uint64_t offset = 4096;
  for (std::size_t wanted = 0; wanted < 5000; ++wanted) {
    auto taken = reader.take(place);
    if (taken.how == pins::outcome::full) {
      reader.grow(offset);
      offset += reader.next_block();
      taken = reader.take(place);
    }
    ASSERT_EQ(taken.how, pins::outcome::pinned);
    slots.push_back(taken.slot);
  }
  EXPECT_EQ(entries(n.memory)[place].size(), 5000u);
  std::sort(slots.begin(), slots.end());
  EXPECT_EQ(std::unique(slots.begin(), slots.end()), slots.end());
  for (std::uint32_t slot : slots) reader.give_back(slot);
  EXPECT_EQ(reader.in_use(), 0u);
}

TEST(pins, touch_nothing_once_closed) {
  node n;
  pins reader(n.memory, 0);
  const std::uint64_t place = node_memory::place_on_board(1, 3);
  n.memory.at(place).store(1);
  const auto taken = reader.take(place);
  reader.close();
  reader.give_back(taken.slot);
  EXPECT_EQ(entries(n.memory)[place], std::vector<bool>{true});
}

// An owner moves a value between two places, writing over the one that it left; readers of two ranks must never see
// that.
TEST(pins, a_value_does_not_move_under_its_readers) {
  node n;
  pins own(n.memory, 0), other(n.memory, 1);
  const std::uint64_t place = node_memory::place_on_board(0, 0);
  constexpr std::size_t words = 64;
  const auto fill = [&](std::uint64_t at, std::uint64_t with) {
    for (std::size_t i = 0; i < words; ++i) {
      std::atomic_ref(*reinterpret_cast<std::uint64_t*>(n.pool.data() + at + 8 * i))
          .store(with, std::memory_order_relaxed);
    }
  };
  fill(0, 7);
  n.memory.at(place).store(1);
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> wrong{0}, read{0};
  std::vector<std::jthread> readers;
  for (pins* mine : {&own, &other}) {
    readers.emplace_back([&, mine] {
      while (!over) {
        const auto taken = mine->take(place);
        if (taken.how != pins::outcome::pinned) continue;
        for (std::size_t i = 0; i < words; ++i) {
          auto* word = reinterpret_cast<std::uint64_t*>(const_cast<std::byte*>(taken.data) + 8 * i);
          if (std::atomic_ref(*word).load(std::memory_order_relaxed) != 7) ++wrong;
        }
        mine->give_back(taken.slot);
        ++read;
      }
    });
  }
  std::uint64_t moved = 0, at = 0;
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(700);
  while (std::chrono::steady_clock::now() < until || read < 100 || moved < 100) {
    cell& c = n.memory.at(place);
    c.store(0);
    bool pinned = false;
    pins::each(n.memory, [&](std::uint64_t of, bool now) { pinned |= of == place && now; });
    if (!pinned) {
      const std::uint64_t to = 4096 - at;
      fill(to, 7);
      fill(at, 666);
      at = to;
      ++moved;
    }
    c.store(1 + at);
    std::this_thread::yield();
  }
  over = true;
  readers.clear();
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace rota::objectstore
