#include "runtime/scheduler/lanes.h"

#include <algorithm>

namespace rota::scheduler {

void load_order::add(rank_t rank, std::uint32_t load) {
  if (links_.size() <= rank) links_.resize(rank + 1);
  load = std::min(load, most_load);
  link& at = links_[rank];
  bucket& to = buckets_[load];
  at = {to.last, none, load};
  if (to.last != none) links_[to.last].next = rank;
  to.last = rank;
  if (to.first == none) to.first = rank;
  low_ = std::min(low_, load);
  high_ = std::max(high_, load);
}

void load_order::remove(rank_t rank) {
  if (rank >= links_.size() || links_[rank].load == none) return;
  link& at = links_[rank];
  bucket& from = buckets_[at.load];
  if (at.previous != none) links_[at.previous].next = at.next;
  if (at.next != none) links_[at.next].previous = at.previous;
  if (from.first == rank) from.first = at.next;
  if (from.last == rank) from.last = at.previous;
  at = {};
}

void load_order::relink(rank_t rank, std::uint32_t load) {
  remove(rank);
  add(rank, load);
}

std::uint32_t load_order::lowest() const {
  while (low_ <= most_load && buckets_[low_].first == none) ++low_;
  std::uint32_t found = low_;
  if (low_ > most_load) low_ = most_load;
  return found;
}

std::uint32_t load_order::highest() const {
  while (high_ > 0 && buckets_[high_].first == none) --high_;
  return high_;
}

std::optional<rank_t> load_order::most() const {
  const bucket& top = buckets_[highest()];
  if (top.first == none) return std::nullopt;
  return top.first;
}

}  // namespace rota::scheduler
