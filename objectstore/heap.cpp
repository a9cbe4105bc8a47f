#include "objectstore/heap.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>
#include <stdexcept>
#include <string>

namespace rota::objectstore {
namespace {

constexpr std::size_t grain = 64;      // a cache line: two objects never share one
constexpr std::size_t short_look = 4;  // blocks of the same bin to try before splitting a larger one

constexpr std::size_t rounded(std::size_t bytes) {
  return (std::max<std::size_t>(bytes, 1) + grain - 1) / grain * grain;
}

constexpr std::size_t start_of(std::uint32_t extent) { return std::size_t{extent} * extent_bytes; }

// The extents that lie wholly inside [offset, offset + bytes).
run whole_extents(std::size_t offset, std::size_t bytes) {
  const std::size_t first = (offset + extent_bytes - 1) / extent_bytes;
  const std::size_t end = (offset + bytes) / extent_bytes;
  return {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(end > first ? end - first : 0)};
}

[[noreturn]] void fault(const char* call, const std::string& what) {
  throw std::logic_error("heap::" + std::string(call) + ": " + what);
}

}  // namespace

heap::heap(std::span<std::byte> pool, std::span<std::byte> ledger) : pool_(pool), ledger_(ledger) {
  const std::size_t extents = pool.size() / extent_bytes;
  if (extents > std::numeric_limits<std::uint32_t>::max()) fault("heap", "the pool has too many extents");
  if (ledger.size() < (extents + 7) / 8) fault("heap", "the ledger is too short for the pool");
  bins_.fill(none);
  for (std::byte& bits : ledger_) std::atomic_ref(bits).store(std::byte{0});
}

std::uint32_t heap::extents_for(std::size_t bytes) {
  const std::size_t extents =
      std::max<std::size_t>(bytes, 1) / extent_bytes + (bytes % extent_bytes != 0 || bytes == 0);
  return static_cast<std::uint32_t>(std::min<std::size_t>(extents, std::numeric_limits<std::uint32_t>::max()));
}

std::optional<std::size_t> heap::allocate(std::size_t bytes) {
  if (bytes > free_bytes_) return std::nullopt;
  const std::size_t need = rounded(bytes);
  const index found = fitting(need);
  if (found == none) return std::nullopt;

  reserve_records(1);
  const std::size_t rest = blocks_[found].bytes - need;
  // Small objects from the low end, large ones from the high end, so that small ones do not hold whole extents apart.
  const bool high = need >= extent_bytes / 2 && rest > 0;
  const std::size_t offset = blocks_[found].offset + (high ? rest : 0);
  const auto entry = live_.try_emplace(offset, found).first;  // From here on nothing throws.

  unlist(found);
  index taken = found;
  if (rest > 0) {
    const index right = new_record(kind::free, blocks_[found].offset + (high ? rest : need), high ? need : rest);
    blocks_[found].bytes = high ? rest : need;
    link(right, blocks_[found].next);
    link(found, right);
    taken = high ? right : found;
    list(high ? found : right);
  }
  entry.value() = taken;
  blocks_[taken].state = kind::live;
  blocks_[taken].slack = static_cast<std::uint8_t>(need - bytes);
  used_bytes_ += need;
  return offset;
}

void heap::free(std::size_t offset) {
  const index at = live_at(offset, "free");
  live_.erase(offset);
  used_bytes_ -= blocks_[at].bytes;
  make_free(at);
}

std::size_t heap::size_of(std::size_t offset) const {
  const block& found = blocks_[live_at(offset, "size_of")];
  return found.bytes - found.slack;
}

heap::index heap::live_at(std::size_t offset, const char* call) const {
  const auto found = live_.find(offset);
  if (found == live_.end()) fault(call, "no live object at offset " + std::to_string(offset));
  return found->second;
}

void heap::add(run granted) {
  const std::size_t extents = pool_.size() / extent_bytes;
  if (granted.first > extents || granted.count > extents - granted.first) fault("add", "extents outside of the pool");
  if (granted.count == 0) return;
  const std::uint32_t end = granted.first + granted.count;
  for (std::uint32_t extent = granted.first; extent < end; ++extent) {
    if (owns(extent)) fault("add", "extent " + std::to_string(extent) + " is in the heap already");
  }

  reserve_records(3);
  const index middle = new_record(kind::free, start_of(granted.first), start_of(granted.count));
  if (const auto before = ends_.find(granted.first); before != ends_.end()) {
    link(blocks_[before->second].prev, middle);
    recycle(before->second);
    ends_.erase(before);
  } else {
    const index fence = new_record(kind::fence, start_of(granted.first), 0);
    link(fence, middle);
    starts_.emplace(granted.first, fence);
  }
  if (const auto after = starts_.find(end); after != starts_.end()) {
    link(middle, blocks_[after->second].next);
    recycle(after->second);
    starts_.erase(after);
  } else {
    const index fence = new_record(kind::fence, start_of(end), 0);
    link(middle, fence);
    ends_.emplace(end, fence);
  }
  make_free(middle);
  write_ledger(granted, true);
}

std::vector<run> heap::trim(std::size_t keep_bytes) {
  const std::size_t keep = keep_bytes / extent_bytes + (keep_bytes % extent_bytes != 0);
  std::vector<run> taken;
  if (whole_free_ <= keep) return taken;
  std::size_t surplus = whole_free_ - keep;

  // Each cut changes its own block only, so the list of candidates stays good.
  std::vector<index> candidates;
  for (std::size_t bin = bin_of(extent_bytes); bin < bins_.size(); ++bin) {
    for (index at = bins_[bin]; at != none; at = blocks_[at].bin_next) candidates.push_back(at);
  }
  taken.reserve(candidates.size());
  for (const index at : candidates) {
    if (surplus == 0) break;
    const run whole = whole_extents(blocks_[at].offset, blocks_[at].bytes);
    if (whole.count == 0) continue;
    const auto count = static_cast<std::uint32_t>(std::min<std::size_t>(whole.count, surplus));
    // From the high end: with first-fit grants, low extents in use leave the node's free ones in one stretch.
    const run out{whole.first + whole.count - count, count};
    cut(at, out);
    write_ledger(out, false);
    taken.push_back(out);
    surplus -= count;
  }
  std::sort(taken.begin(), taken.end(), [](const run& a, const run& b) { return a.first < b.first; });
  return taken;
}

// Takes `taken` out of the free block `at`; the stretch of extents falls in two.
void heap::cut(index at, run taken) {
  reserve_records(3);
  const std::size_t start = start_of(taken.first);
  const std::size_t end = start + start_of(taken.count);
  const block whole = blocks_[at];
  unlist(at);
  index left = whole.prev;
  index right = whole.next;
  if (whole.offset < start) {
    blocks_[at].bytes = start - whole.offset;
    list(at);
    left = at;
  } else {
    recycle(at);
  }
  if (const std::size_t rest = whole.offset + whole.bytes - end; rest > 0) {
    const index after = new_record(kind::free, end, rest);
    link(after, right);
    list(after);
    right = after;
  }
  close(left, start, true);
  close(right, end, false);
}

// Ends the stretch beside a cut at `border` with a fence, or drops the stretch where nothing but a fence is left of
// it. `left`: the neighbour is below the cut.
void heap::close(index neighbour, std::size_t border, bool left) {
  const auto extent = static_cast<std::uint32_t>(border / extent_bytes);
  if (blocks_[neighbour].state == kind::fence) {
    (left ? starts_ : ends_).erase(extent);
    recycle(neighbour);
    return;
  }
  const index fence = new_record(kind::fence, border, 0);
  link(left ? neighbour : fence, left ? fence : neighbour);
  (left ? ends_ : starts_).emplace(extent, fence);
}

// Joins a block that is in no list with its free neighbours and lists the result.
void heap::make_free(index at) noexcept {
  blocks_[at].state = kind::free;
  if (const index next = blocks_[at].next; blocks_[next].state == kind::free) {
    unlist(next);
    blocks_[at].bytes += blocks_[next].bytes;
    link(at, blocks_[next].next);
    recycle(next);
  }
  if (const index prev = blocks_[at].prev; blocks_[prev].state == kind::free) {
    unlist(prev);
    blocks_[prev].bytes += blocks_[at].bytes;
    link(prev, blocks_[at].next);
    recycle(at);
    at = prev;
  }
  list(at);
}

void heap::link(index left, index right) noexcept {
  blocks_[left].next = right;
  blocks_[right].prev = left;
}

std::size_t heap::bin_of(std::size_t bytes) {
  const std::size_t units = bytes / grain;
  if (units < 32) return units;
  const auto power = static_cast<std::size_t>(std::bit_width(units)) - 1;
  return (power - 4) * 32 + ((units >> (power - 5)) & 31);
}

heap::index heap::first_in_bin_from(std::size_t bin) const {
  if (bin >= bins_.size()) return none;
  std::size_t word = bin / 64;
  std::uint64_t bits = filled_[word] & (~std::uint64_t{0} << (bin % 64));
  if (bits == 0) {
    const std::uint32_t words = filled_words_ & (~std::uint32_t{1} << word);
    if (words == 0) return none;
    word = static_cast<std::size_t>(std::countr_zero(words));
    bits = filled_[word];
  }
  return bins_[word * 64 + static_cast<std::size_t>(std::countr_zero(bits))];
}

heap::index heap::fitting_in_bin(std::size_t bin, std::size_t bytes, std::size_t looks) const {
  index best = none;
  for (index at = bins_[bin]; at != none && looks > 0; at = blocks_[at].bin_next, --looks) {
    if (blocks_[at].bytes < bytes || (best != none && blocks_[at].bytes >= blocks_[best].bytes)) continue;
    best = at;
    if (blocks_[at].bytes == bytes) break;
  }
  return best;
}

// A block of at least `bytes`: nearly the smallest. Only when all else fails is the whole bin of that size searched; a
// failure there costs a grant, which is dearer.
heap::index heap::fitting(std::size_t bytes) const {
  const std::size_t bin = bin_of(bytes);
  if (const index found = fitting_in_bin(bin, bytes, short_look); found != none) return found;
  if (const index found = first_in_bin_from(bin + 1); found != none) return found;
  return fitting_in_bin(bin, bytes, std::numeric_limits<std::size_t>::max());
}

void heap::list(index at) noexcept {
  block& added = blocks_[at];
  const std::size_t bin = bin_of(added.bytes);
  added.bin_prev = none;
  added.bin_next = bins_[bin];
  if (added.bin_next != none) blocks_[added.bin_next].bin_prev = at;
  bins_[bin] = at;
  filled_[bin / 64] |= std::uint64_t{1} << (bin % 64);
  filled_words_ |= std::uint32_t{1} << (bin / 64);
  free_bytes_ += added.bytes;
  whole_free_ += whole_extents(added.offset, added.bytes).count;
}

void heap::unlist(index at) noexcept {
  const block& gone = blocks_[at];
  const std::size_t bin = bin_of(gone.bytes);
  if (gone.bin_next != none) blocks_[gone.bin_next].bin_prev = gone.bin_prev;
  if (gone.bin_prev != none) {
    blocks_[gone.bin_prev].bin_next = gone.bin_next;
  } else {
    bins_[bin] = gone.bin_next;
  }
  if (bins_[bin] == none) {
    filled_[bin / 64] &= ~(std::uint64_t{1} << (bin % 64));
    if (filled_[bin / 64] == 0) filled_words_ &= ~(std::uint32_t{1} << (bin / 64));
  }
  free_bytes_ -= gone.bytes;
  whole_free_ -= whole_extents(gone.offset, gone.bytes).count;
}

void heap::reserve_records(std::size_t count) {
  while (unused_count_ < count) {
    if (blocks_.size() == none) fault("reserve_records", "too many objects");
    blocks_.emplace_back();
    recycle(static_cast<index>(blocks_.size() - 1));
  }
}

heap::index heap::new_record(kind state, std::size_t offset, std::size_t bytes) noexcept {
  const index at = unused_;
  unused_ = blocks_[at].bin_next;
  --unused_count_;
  blocks_[at] = block{.offset = offset, .bytes = bytes, .state = state};
  return at;
}

void heap::recycle(index at) noexcept {
  blocks_[at].state = kind::unused;
  blocks_[at].bin_next = unused_;
  unused_ = at;
  ++unused_count_;
}

bool heap::owns(std::uint32_t extent) const {
  return (ledger_[extent / 8] & (std::byte{1} << (extent % 8))) != std::byte{0};
}

// Atomic because a successor of the table's keeper may read while this rank writes.
void heap::write_ledger(run extents, bool owned) {
  for (std::uint32_t extent = extents.first; extent < extents.first + extents.count; ++extent) {
    const std::byte bit = std::byte{1} << (extent % 8);
    std::byte& bits = ledger_[extent / 8];
    std::atomic_ref(bits).store(owned ? bits | bit : bits & ~bit);
  }
}

}  // namespace rota::objectstore
