#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace rota::objectstore {

// Where the bytes of one stored value are now: 0 when they are not in memory, else 1 + their offset in the pool. A
// value is named by the place of its cell, which stays while its bytes move. Written by the value's owner alone.
using cell = std::atomic<std::uint64_t>;

// One rank's page in the node's window, written by that rank alone and read by all. Zero at first.
struct board {
  static constexpr std::size_t cells_here = 128, pins_here = 352, most_pin_blocks = 16;

  std::atomic<std::uint64_t> held;     // bytes of its values in memory
  std::atomic<std::uint64_t> values;   // their number, in memory
  std::atomic<std::uint64_t> spilled;  // bytes of its values on disk
  std::atomic<std::uint64_t> stuck;    // 1: it found nothing to move out when it last looked
  std::atomic<std::uint64_t> writing;  // 1: values are on their way to the disk, which took the last ones
  std::atomic<std::uint64_t> left;     // bytes that have left memory, ever
  std::array<std::atomic<std::uint64_t>, 2> spare;
  std::array<std::atomic<std::uint64_t>, most_pin_blocks> pin_blocks;  // 1 + offset in the pool; 0: none
  std::array<cell, cells_here> cells;                                  // the first; further ones lie in the pool
  std::array<std::atomic<std::uint64_t>, pins_here> pins;              // the first; see pins.h
  std::array<std::atomic<std::uint64_t>, 8> rest;
};
static_assert(sizeof(board) == 4096 && cell::is_always_lock_free);
inline board& board_at(std::byte* page) { return *reinterpret_cast<board*>(page); }

// What the ranks of a node share of their store: the pool, and a board for each, by node rank.
struct node_memory {
  std::span<std::byte> pool;
  std::vector<board*> boards;

  // Places are multiples of 8 in the pool; of cells on boards, odd numbers.
  static std::uint64_t place_on_board(std::size_t node_rank, std::size_t i) {
    return (std::uint64_t{node_rank} << 16 | i) << 1 | 1;
  }
  cell& at(std::uint64_t place) const {
    if (place & 1) return boards[place >> 17]->cells[(place >> 1) & 0xffff];
    return *reinterpret_cast<cell*>(pool.data() + place);
  }
};

}  // namespace rota::objectstore
