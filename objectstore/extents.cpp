#include "objectstore/extents.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <stdexcept>
#include <string>

namespace rota::objectstore {

extent_table::extent_table(std::uint32_t extents) : owners_(extents, no_rank), free_(extents) {
  if (extents > 0) free_runs_.emplace(0, extents);
}

void extent_table::demand(rank_t owner, run extents, const char* call) const {
  const bool inside = extents.count > 0 && extents.first < owners_.size() && extents.count <= size() - extents.first;
  const auto first = owners_.begin() + extents.first;
  if (inside && std::all_of(first, first + extents.count, [&](rank_t each) { return each == owner; })) return;
  const std::string of = owner == no_rank ? "are not all free" : "do not all belong to rank " + std::to_string(owner);
  throw std::logic_error("extent_table::" + std::string(call) + ": extents " + std::to_string(extents.first) + " + " +
                         std::to_string(extents.count) + " of a pool of " + std::to_string(size()) + " " + of);
}

std::optional<run> extent_table::grant(rank_t owner, std::uint32_t count, side from) {
  if (count == 0 || owner == no_rank) throw std::logic_error("extent_table::grant: no extents or no owner asked for");
  if (count > free_) return std::nullopt;
  const auto fits = [&](const auto& each) { return each.second >= count; };
  run granted{0, count};
  if (from == side::low) {
    const auto found = std::find_if(free_runs_.begin(), free_runs_.end(), fits);
    if (found == free_runs_.end()) return std::nullopt;
    granted.first = found->first;
  } else {
    const auto found = std::find_if(free_runs_.rbegin(), free_runs_.rend(), fits);
    if (found == free_runs_.rend()) return std::nullopt;
    granted.first = found->first + found->second - count;
  }
  claim(owner, granted);
  return granted;
}

void extent_table::claim(rank_t owner, run held) {
  demand(no_rank, held, "claim");
  auto around = std::prev(free_runs_.upper_bound(held.first));
  const std::uint32_t before = held.first - around->first;
  const std::uint32_t after = around->second - before - held.count;
  if (after > 0) free_runs_.emplace(held.first + held.count, after);
  if (before > 0) {
    around->second = before;
  } else {
    free_runs_.erase(around);
  }
  std::fill_n(owners_.begin() + held.first, held.count, owner);
  free_ -= held.count;
}

void extent_table::give_back(rank_t owner, run returned) {
  if (owner == no_rank) throw std::logic_error("extent_table::give_back: no owner");
  demand(owner, returned, "give_back");
  auto at = free_runs_.emplace(returned.first, returned.count).first;
  if (const auto next = std::next(at); next != free_runs_.end() && next->first == at->first + at->second) {
    at->second += next->second;
    free_runs_.erase(next);
  }
  if (at != free_runs_.begin()) {
    const auto before = std::prev(at);
    if (before->first + before->second == at->first) {
      before->second += at->second;
      free_runs_.erase(at);
    }
  }
  std::fill_n(owners_.begin() + returned.first, returned.count, no_rank);
  free_ += returned.count;
}

void extent_table::reclaim(rank_t owner) {
  for (const run& each : of(owner)) give_back(owner, each);
}

std::vector<run> extent_table::of(rank_t owner) const {
  std::vector<run> held;
  for (auto at = owners_.begin();;) {
    at = std::find(at, owners_.end(), owner);
    if (at == owners_.end()) return held;
    const auto end = std::find_if(at, owners_.end(), [&](rank_t each) { return each != owner; });
    held.push_back({static_cast<std::uint32_t>(at - owners_.begin()), static_cast<std::uint32_t>(end - at)});
    at = end;
  }
}

std::uint32_t extent_table::largest_free() const {
  std::uint32_t largest = 0;
  for (const auto& [first, count] : free_runs_) largest = std::max(largest, count);
  return largest;
}

std::vector<run> runs_in(std::span<const std::byte> ledger, std::uint32_t extents) {
  std::vector<run> held;
  for (std::uint32_t extent = 0; extent < extents; ++extent) {
    // atomic_ref takes no const; nothing is written.
    const std::byte bits = std::atomic_ref(const_cast<std::byte&>(ledger[extent / 8])).load();
    if ((bits & (std::byte{1} << (extent % 8))) == std::byte{0}) continue;
    if (!held.empty() && held.back().first + held.back().count == extent) {
      ++held.back().count;
    } else {
      held.push_back({extent, 1});
    }
  }
  return held;
}

}  // namespace rota::objectstore
