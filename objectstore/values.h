#pragma once

#include <tsl/robin_map.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "objectstore/board.h"
#include "objectstore/heap.h"
#include "objectstore/pins.h"
#include "objectstore/spill_files.h"
#include "runtime/base/pool.h"

namespace rota::objectstore {

// Where a copy came from, and can be had again. no_rank: it is none.
struct origin {
  rank_t rank = no_rank;
  std::uint64_t place = 0;
};

// The values that lie in one rank's part of the store: where each is, in memory, on disk or on another node, and which
// of them were used least lately. Thread-compatible: the caller locks. It moves no bytes itself; what is to be written
// or read is handed to the caller, who reports back. A value may be freed at any time; what is under way with it is
// then undone when the report comes. A call that contradicts the books throws std::logic_error.
class values {
 public:
  // Cells and pins lie in books behind the pool: from where they begin, so many bytes. REQUIRES: `memory` outlives it.
  struct books {
    std::uint64_t start = 0, bytes = 0;
  };
  values(const node_memory& memory, std::size_t self, std::span<std::byte> ledger, books own);
  // Bytes of them for each of `ranks` ranks.
  static std::size_t books_for(std::size_t pool_bytes, std::size_t ranks);
  values(const values&) = delete;
  values& operator=(const values&) = delete;

  heap& memory() { return heap_; }

  struct room {
    std::byte* data = nullptr;
    std::uint64_t place = 0;  // of the value's cell
  };
  // Room for a value that is being made: it is not moved before seal(). nullopt: memory() needs an extent, or, where
  // lacks_cells(), the books do.
  std::optional<room> reserve(std::size_t bytes);
  bool lacks_cells();
  // Extents for more cells and pins. REQUIRES: granted and populated.
  void add_books(run granted);
  // Those that are not needed any more, to be given back.
  std::vector<run> take_idle_books() { return std::exchange(idle_books_, {}); }
  // Room in them, at a multiple of 64, for good.
  std::optional<std::uint64_t> take_for_pins(std::size_t bytes);

  // A copy is dropped rather than written.
  void seal(std::uint64_t place, origin from = {});
  // Nobody needs it any more. The disk's room, if it has any, is in `forget` for the caller to give back.
  void free(std::uint64_t place, std::vector<disk_place>& forget);

  enum class whereabouts { unknown, in_memory, on_its_way, away };
  whereabouts where(std::uint64_t place) const;
  std::uint64_t size_of(std::uint64_t place) const;
  // Its bytes, kept where they are until lend_over(). REQUIRES: in_memory.
  bytes_view lend(std::uint64_t place);
  // The same where it is on disk and not in memory: where it was written is kept. nullopt: it is not on disk.
  std::optional<disk_place> lend_from_disk(std::uint64_t place);
  void lend_over(std::uint64_t place, std::vector<disk_place>& forget);

  // Makes room: drops copies, then values that are on disk already, and picks what is to be written first: no more
  // than `most_to_write` bytes or, if that is not 0, one value. Least lately used first, nothing that is pinned or
  // lent. What is picked stays readable meanwhile.
  struct leaving {
    std::uint64_t place = 0;
    bytes_view data;
  };
  struct evicted {
    std::size_t bytes = 0;  // that are free now
    std::vector<leaving> to_write;
    std::size_t found = 0;  // both together
  };
  evicted evict(std::size_t bytes, std::size_t most_to_write);
  // Picks what evict() would pick to be written next, and drops nothing: for cleaned().
  evicted pick_ahead(std::size_t bytes);
  // They are on disk now: what nobody reads at this moment leaves memory. Returns the bytes that are free now.
  std::size_t written(std::span<const leaving> gone, std::span<const disk_place> where,
                      std::vector<disk_place>& forget);
  // They are on disk too now, and will be dropped before others when room is needed.
  void cleaned(std::span<const leaving> kept, std::span<const disk_place> where, std::vector<disk_place>& forget);
  void not_written(std::span<const leaving> kept);

  // Brings back a value that is away: its bytes are to be put at an offset of the pool that memory() gave.
  struct backing {
    origin from;  // no_rank: on disk
    disk_place disk;
    std::optional<std::uint64_t> next;  // of those on disk: what left memory after it and is still away
  };
  backing begin_return(std::uint64_t place);
  // The same for a value that nobody has asked for, with room for it. nullopt: it is larger than `most` bytes, memory()
  // has no room at once, or it is not away on disk.
  struct early_return {
    backing back;
    std::uint64_t offset = 0, size = 0;
  };
  std::optional<early_return> begin_early_return(std::uint64_t place, std::size_t most);
  // False: it was freed meanwhile; then the offset is free again too.
  bool returned(std::uint64_t place, std::uint64_t offset, std::vector<disk_place>& forget);
  void not_returned(std::uint64_t place, std::vector<disk_place>& forget);

  std::size_t count() const { return records_.live(); }
  std::vector<std::uint64_t> largest(std::size_t most) const;  // sizes in memory, largest first; looks at all

 private:
  using index = std::uint32_t;
  enum class stage : std::uint8_t { open, here, leaving, away, returning };
  struct record {
    std::uint64_t place = 0, offset = 0, size = 0;
    origin from;
    disk_place disk;
    index prev = 0, next = 0;  // in its list
    std::uint32_t lent = 0;
    stage at = stage::open;
    bool on_disk = false;
    bool freed = false;   // while it leaves, returns or is lent
    bool spared = false;  // it was passed over, once in its stay in memory, for it had been read lately
    bool looked_at = false, pinned = false;  // during evict() and written()
  };
  struct list {
    index first = 0, last = 0;
  };
  struct place_hash {
    std::size_t operator()(std::uint64_t place) const {
      const std::uint64_t mixed = place * 0x9e37'79b9'7f4a'7c15;
      return static_cast<std::size_t>(mixed ^ (mixed >> 32));
    }
  };

  struct area {                       // of cells: on the board, behind the pool, in extents
    run extents;                      // else none
    std::uint64_t next = 0, end = 0;  // not used yet
    std::uint64_t populated = 0;      // up to here
    std::vector<std::uint64_t> free;  // cells
    std::size_t live = 0;             // cells
    bool pins = false;
  };
  area* find_in_books(std::size_t bytes);
  area* with_cell();
  void drop_cell(std::uint64_t place);
  record& known(std::uint64_t place, const char* call);
  list& list_of(const record& r) {
    if (r.at == stage::away) return gone_;
    return r.from.rank != no_rank ? copies_ : r.on_disk ? clean_ : own_;
  }
  void enlist(index i);  // as used last
  void enlist_first(index i);
  void delist(index i);
  void show(const record& r) { memory_.at(r.place).store(r.offset + 1); }  // seq_cst: pairs with pins::take
  void hide(const record& r) { memory_.at(r.place).store(0); }             // seq_cst: pairs with pins::take
  static std::size_t footprint(std::uint64_t size) { return std::max<std::size_t>(64, size); }
  void evict_from(list& l, std::size_t bytes, evicted& out);
  void mark_pinned();
  void leave_memory(index i);
  void erase(index i, std::vector<disk_place>& forget);
  void count_in(std::uint64_t size);
  void count_out(std::uint64_t size);

  const node_memory& memory_;
  board& board_;
  heap heap_;
  base::pool<record> records_;
  tsl::robin_map<std::uint64_t, index, place_hash> by_place_;
  list copies_, clean_, own_;  // in memory and not being moved, least lately used first; clean: on disk too
  list gone_;                  // away, in the order in which they left
  std::vector<area> areas_;    // few: the first with a free cell is looked for
  std::vector<run> idle_books_;
};

}  // namespace rota::objectstore
