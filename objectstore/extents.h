#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/types.h"

namespace rota::objectstore {

// The unit in which a node's pool changes hands. The size of a huge page: one fault, one TLB entry where the kernel
// backs the window with them.
inline constexpr std::size_t extent_bytes = std::size_t{2} << 20;

// Bytes of a ledger with a bit for each extent, a multiple of a cache line.
constexpr std::size_t ledger_bytes(std::size_t extents) { return (extents + 511) / 512 * 64; }

// Neighbouring extents of a pool: numbers first .. first + count - 1.
struct run {
  std::uint32_t first = 0;
  std::uint32_t count = 0;

  friend bool operator==(const run&, const run&) = default;
};

// Who owns which extent of one node's pool. The node's lowest live rank keeps it; one thread at a time. It knows
// numbers only and touches no shared memory: owners write their own ledgers (heap.h), from which a successor rebuilds
// the table with runs_in() and claim().
// Calls that contradict the table throw std::logic_error and change nothing.
class extent_table {
 public:
  // A pool of `extents` extents, all free.
  explicit extent_table(std::uint32_t extents);

  // Gives `owner` the lowest `count` neighbouring free extents, or the highest; nullopt when no free run is that long.
  // REQUIRES: count > 0, owner != no_rank.
  enum class side : std::uint8_t { low, high };
  std::optional<run> grant(rank_t owner, std::uint32_t count, side from = side::low);

  // Records that `owner` already holds `held`. REQUIRES: all of it is free.
  void claim(rank_t owner, run held);

  // Frees `returned`, any part of what `owner` holds. REQUIRES: all of it is owned by `owner`.
  void give_back(rank_t owner, run returned);

  // Frees all that `owner` holds: it died, or left.
  void reclaim(rank_t owner);

  // What `owner` holds, ascending, neighbours joined. Looks at every extent of the pool: for failures and reports.
  std::vector<run> of(rank_t owner) const;

  std::uint32_t size() const { return static_cast<std::uint32_t>(owners_.size()); }
  std::uint32_t free() const { return free_; }
  std::uint32_t largest_free() const;

 private:
  // Throws unless `extents` is a run of this pool and all of it belongs to `owner` (no_rank: is free).
  void demand(rank_t owner, run extents, const char* call) const;

  std::vector<rank_t> owners_;                        // by extent; no_rank is free
  std::map<std::uint32_t, std::uint32_t> free_runs_;  // first -> count, no two adjacent
  std::uint32_t free_ = 0;
};

// The runs whose bits are set in the first `extents` bits of a ledger, ascending. Safe while the owner writes it.
// REQUIRES: ledger.size() * 8 >= extents.
std::vector<run> runs_in(std::span<const std::byte> ledger, std::uint32_t extents);

}  // namespace rota::objectstore
