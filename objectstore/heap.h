#pragma once

#include <tsl/robin_map.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "objectstore/extents.h"

namespace rota::objectstore {

// One rank's allocator inside the extents of the node's pool that were granted to it. Thread-compatible: the caller
// locks. Its books are in private memory: it never reads or writes the pool itself, so objects take whole extents
// without a header, and a reader of the pool sees nothing but objects. In shared memory it writes only `ledger`, one
// bit an extent, from which others see what this rank owns (runs_in()).
// A call that contradicts the books (double free, unknown offset, extents it has or has not) throws std::logic_error
// and changes nothing.
class heap {
 public:
  // Owns no extent at first; clears the ledger. REQUIRES: ledger.size() * 8 >= pool.size() / extent_bytes; both
  // outlive the heap.
  heap(std::span<std::byte> pool, std::span<std::byte> ledger);
  heap(const heap&) = delete;
  heap& operator=(const heap&) = delete;

  // Room for `bytes` (0 too: a place of its own): its offset in the pool, a multiple of 64. nullopt when no stretch
  // of granted extents has it: ask for extents_for(bytes), add() them and call again.
  std::optional<std::size_t> allocate(std::size_t bytes);

  // Takes back what allocate() gave.
  void free(std::size_t offset);

  // The bytes that were asked for.
  std::size_t size_of(std::size_t offset) const;

  // Extents that hold an object of `bytes` whatever else the heap holds; saturates.
  static std::uint32_t extents_for(std::size_t bytes);

  // Granted and populated by the caller. Joins its neighbours: an object may lie across two grants.
  void add(run granted);

  // Granted, but not for objects, or no longer: only the ledger knows.
  void keep_aside(run extents, bool kept) { write_ledger(extents, kept); }

  // Takes wholly free extents out of the heap, except for keep_bytes of them (rounded up to extents), and returns
  // them for give_back, ascending. The caller releases their pages. Shortest free stretches go first: what stays warm
  // is the longest one, ready for the next large object. O(1) when nothing is to go.
  std::vector<run> trim(std::size_t keep_bytes);

  // used + free is always the size of all owned extents; objects count rounded up to 64 bytes, at least 64.
  std::size_t used_bytes() const { return used_bytes_; }
  std::size_t free_bytes() const { return free_bytes_; }
  std::size_t live_objects() const { return live_.size(); }

 private:
  using index = std::uint32_t;
  static constexpr index none = 0xffff'ffff;

  // A fence has no bytes and ends a stretch of neighbouring extents on either side, so that blocks always have
  // neighbours.
  enum class kind : std::uint8_t { unused, free, live, fence };
  struct block {
    std::size_t offset = 0;
    std::size_t bytes = 0;
    index prev = none;  // neighbours by address
    index next = none;
    index bin_prev = none;  // in the list of its bin; bin_next also chains unused records
    index bin_next = none;
    kind state = kind::unused;
    std::uint8_t slack = 0;  // bytes beyond what was asked for, 0 to 64
  };
  struct offset_hash {
    std::size_t operator()(std::size_t offset) const {
      const std::size_t mixed = (offset >> 6) * 0x9e37'79b9'7f4a'7c15;
      return mixed ^ (mixed >> 32);
    }
  };

  // Free blocks by size as in TLSF (Masmano et al., ECRTS 2004): exact sizes up to 4 KiB, then 32 bins a power of two.
  static constexpr std::size_t bin_words = 27;
  static std::size_t bin_of(std::size_t bytes);
  index first_in_bin_from(std::size_t bin) const;
  index fitting(std::size_t bytes) const;
  index fitting_in_bin(std::size_t bin, std::size_t bytes, std::size_t looks) const;
  void list(index at) noexcept;
  void unlist(index at) noexcept;

  void reserve_records(std::size_t count);
  index new_record(kind state, std::size_t offset, std::size_t bytes) noexcept;
  void recycle(index at) noexcept;
  void link(index left, index right) noexcept;
  void make_free(index at) noexcept;
  void cut(index at, run taken);
  void close(index neighbour, std::size_t border, bool left);

  index live_at(std::size_t offset, const char* call) const;
  bool owns(std::uint32_t extent) const;
  void write_ledger(run extents, bool owned);

  std::span<std::byte> pool_;
  std::span<std::byte> ledger_;
  std::vector<block> blocks_;
  index unused_ = none;
  std::size_t unused_count_ = 0;
  tsl::robin_map<std::size_t, index, offset_hash> live_;    // offset -> block
  std::unordered_map<std::uint32_t, index> starts_, ends_;  // extent where a stretch starts, or would go on -> fence
  std::array<index, bin_words * 64> bins_;
  std::array<std::uint64_t, bin_words> filled_{};  // a bit a bin that has blocks
  std::uint32_t filled_words_ = 0;                 // a bit a word of filled_ that is not 0
  std::size_t used_bytes_ = 0;
  std::size_t free_bytes_ = 0;
  std::size_t whole_free_ = 0;  // extents wholly inside free blocks
};

}  // namespace rota::objectstore
