#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "objectstore/board.h"

namespace rota::objectstore {

// What one process reads of the node's store at this moment: while a value is pinned its owner does not move it. A pin
// is an entry in this process's own shared memory (a hazard pointer, Michael, IEEE TPDS 2004): the reader writes the
// entry, then looks at the cell; the owner empties the cell, then looks at the entries; one of them sees the other.
// Any thread. Entries stand on the board at first; grow() adds blocks in the pool, which stay.
class pins {
 public:
  pins(const node_memory& memory, std::size_t self);
  pins(const pins&) = delete;
  pins& operator=(const pins&) = delete;

  enum class outcome : std::uint8_t {
    pinned,
    away,  // the value is not in memory: its owner brings it back
    full,  // no entry is free: grow()
  };
  struct taken {
    outcome how = outcome::away;
    std::uint32_t slot = 0;
    const std::byte* data = nullptr;
  };
  taken take(std::uint64_t place);
  // After close() it does nothing.
  void give_back(std::uint32_t slot) noexcept;

  // No take() can succeed until one is given back, or grow().
  bool full() const;
  // To grow takes time; meanwhile other threads, which want the same, wait for this.
  std::unique_lock<std::mutex> growing() { return std::unique_lock(growing_); }
  // Bytes of the next block, at most an extent; 0: there can be no more.
  std::size_t next_block() const;
  // Takes next_block() bytes of the pool for good. REQUIRES: they are this rank's own; the caller has growing().
  void grow(std::uint64_t offset);

  // The memory goes; what is still pinned is forgotten.
  void close();
  std::size_t in_use() const;

  // use(place, now) for each entry of all ranks: pinned now, or (false) a short while ago.
  template <class F>
  static void each(const node_memory& memory, F&& use) {
    for (const board* b : memory.boards) {
      for (const auto& entry : b->pins) show(entry, use);
      for (std::size_t k = 0; k < board::most_pin_blocks; ++k) {
        const std::uint64_t block = b->pin_blocks[k].load(std::memory_order_acquire);  // pairs with grow
        if (block == 0) break;
        const auto* first = reinterpret_cast<const std::atomic<std::uint64_t>*>(memory.pool.data() + (block - 1));
        for (std::size_t i = 0; i < entries_of(k); ++i) show(first[i], use);
      }
    }
  }

 private:
  using entry = std::atomic<std::uint64_t>;
  static constexpr std::uint64_t valid = std::uint64_t{1} << 62;
  static constexpr std::uint64_t released = std::uint64_t{1} << 63;
  static constexpr std::size_t entries_of(std::size_t block) {
    return std::size_t{1024} << std::min<std::size_t>(block, 8);
  }

  template <class F>
  static void show(const entry& e, F& use) {
    const std::uint64_t value = e.load();  // seq_cst: see the class
    if (value & valid) use(value & ~(valid | released), !(value & released));
  }
  void add(entry& e);

  const node_memory& memory_;
  board& board_;
  std::mutex growing_;
  mutable std::mutex mutex_;
  std::deque<entry*> entries_;      // by slot
  std::deque<std::uint32_t> free_;  // the one that was given back longest ago first: the others tell what was read last
  std::size_t blocks_ = 0;
  bool closed_ = false;
};

}  // namespace rota::objectstore
