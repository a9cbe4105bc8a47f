#include "runtime/worker/rooms.h"

#include <fmt/format.h>

#include <algorithm>

namespace rota::detail {
namespace {

using clock = std::chrono::steady_clock;

constexpr auto pause = std::chrono::milliseconds(2);
constexpr auto pause_of_asking = std::chrono::milliseconds(10);
constexpr std::size_t holders_told = 4;
constexpr int most_patience = 10;  // times

}  // namespace

rooms::rooms(store_link& store, const objectstore::node_memory& memory, disk_thread& disk, spiller& own,
             wire::outbox& out, site where, std::chrono::nanoseconds patience)
    : store_(store),
      memory_(memory),
      disk_(disk),
      own_(own),
      out_(out),
      site_(std::move(where)),
      // Ten times that fits.
      patience_(std::min<std::chrono::nanoseconds>(patience, std::chrono::hours(24 * 365))) {}

rooms::search rooms::begin(std::size_t bytes) const {
  search s;
  s.bytes = bytes;
  s.until = clock::now() + patience_;
  s.last = s.until;  // the first step knows better
  return s;
}

std::uint64_t rooms::held() const {
  std::uint64_t all = 0;
  for (const objectstore::board* b : memory_.boards) all += b->held.load(std::memory_order_relaxed);  // a number
  return all;
}

std::uint64_t rooms::left() const {
  std::uint64_t all = 0;
  for (const objectstore::board* b : memory_.boards) all += b->left.load(std::memory_order_relaxed);  // a number
  return all;
}

// Ranks of the node with values in memory, those that hold most first; `stuck_too`: also where nothing can be moved
// out.
std::vector<std::size_t> rooms::holders(bool stuck_too) const {
  std::vector<std::pair<std::uint64_t, std::size_t>> found;
  for (std::size_t r = 0; r < site_.node_ranks.size(); ++r) {
    const objectstore::board& b = *memory_.boards[r];
    const std::uint64_t holds = b.held.load(std::memory_order_relaxed);  // relaxed, both: hints
    if (holds > 0 && (stuck_too || b.stuck.load(std::memory_order_relaxed) == 0)) found.emplace_back(holds, r);
  }
  std::sort(found.begin(), found.end(), std::greater<>());
  std::vector<std::size_t> ranks;
  ranks.reserve(found.size());
  for (const auto& one : found) ranks.push_back(one.second);
  return ranks;
}

bool rooms::writing() const {
  return std::any_of(memory_.boards.begin(), memory_.boards.end(), [](const objectstore::board* b) {
    return b->writing.load(std::memory_order_relaxed) != 0;  // a hint
  });
}

rooms::look rooms::step(search& s) {
  const std::uint32_t extents = objectstore::heap::extents_for(s.bytes);
  if (extents > store_.extents()) return look::hopeless;
  const auto now = clock::now();
  if (s.request != 0) {
    const std::optional<grant_head> answer = store_.answer(s.request);
    if (!answer) return look::again;
    s.request = 0;
    s.longest = answer->largest;
    s.granted = {answer->first, answer->count};
    if (s.granted.count > 0) return look::granted;
    ask_others(s);
    s.again = now + pause;
    return look::again;
  }
  const std::uint64_t all = held();
  if (all < s.least_held) s.last = now + most_patience * patience_;
  const std::uint64_t gone = left();
  if (gone != std::exchange(s.left, gone) || writing()) s.until = now + patience_;
  s.least_held = std::min(s.least_held, all);
  if (now > std::min(s.until, s.last)) {
    s.starved = now <= s.until;
    return look::hopeless;
  }
  if (now < s.again) return look::again;
  // What this rank keeps free does not fit: in the keeper's hands it may join other free extents.
  if (extents > 1) store_.give_back_all(out_);
  using side = objectstore::extent_table::side;
  s.for_books = s.books_only || store_.books([](objectstore::values& v) { return v.lacks_cells(); });
  // What stays lies at the end, where it parts nobody's room in two.
  s.request = s.for_books ? store_.request(1, side::high, out_) : store_.request(extents, side::low, out_);
  return step(s);
}

void rooms::adopted(search& s, bool good) {
  s.no_memory = !good;
  if (good) return;
  store_.give_back(s.granted, out_);
  ask_others(s);
  s.again = clock::now() + pause;
}

// Others may keep free memory for later; and what is used least lately can leave.
void rooms::ask_others(search& s) {
  const auto now = clock::now();
  if (now < s.asked + pause_of_asking) return;
  s.asked = now;
  store_.give_back_all(out_);
  grant_head kept;
  kept.type = wire::message::give_back;
  const std::uint64_t bytes = std::uint64_t{objectstore::heap::extents_for(s.bytes)} * objectstore::extent_bytes;
  auto make_room = [&](std::size_t node_rank) {
    if (node_rank == site_.node_rank) return own_.make_room(bytes, {.returning = s.returning}, out_);
    wire::make_room_head head;
    head.returning = s.returning;
    head.bytes = bytes;
    out_.send(site_.node_ranks[node_rank], wire::as_bytes(head));
  };
  for (std::size_t r = 0; r < site_.node_ranks.size(); ++r) {
    if (r != site_.node_rank) out_.send(site_.node_ranks[r], wire::as_bytes(kept));
  }
  const std::vector<std::size_t> some = holders(false);
  const std::size_t ask = s.asks++;
  // Every other time one of the rest in turn: what the first holds may all be in use.
  const std::size_t whom = ask % 2 == 0 || some.size() < 2 ? 0 : 1 + ask / 2 % (some.size() - 1);
  if (!some.empty()) return make_room(some[whom]);
  for (std::size_t r = 0; r < site_.node_ranks.size(); ++r) make_room(r);  // all are stuck: something may have changed
}

std::string rooms::why(const search& s) {
  std::string text;
  if (objectstore::heap::extents_for(s.bytes) > store_.extents()) {
    text = "it is larger than the whole store";
  } else if (s.no_memory) {
    text = "the machine has no memory left for it: something else fills /dev/shm or the memory";
  } else {
    text = fmt::format("it is full, the longest free run is {} bytes, and {} for {:g} s",
                       std::size_t{s.longest} * objectstore::extent_bytes,
                       s.starved ? "others took what left it" : "nothing left it",
                       std::chrono::duration<double>(patience_).count() * (s.starved ? most_patience : 1));
    if (!own_.why_full().empty()) text += "; " + own_.why_full();
  }
  std::string held_by;
  std::size_t told = 0;
  for (std::size_t r : holders(true)) {
    const objectstore::board& b = *memory_.boards[r];
    held_by += fmt::format("{} rank {} {} bytes in {} values", held_by.empty() ? "" : ",", site_.node_ranks[r],
                           b.held.load(std::memory_order_relaxed),     // numbers, both
                           b.values.load(std::memory_order_relaxed));  //
    if (r == site_.node_rank) {
      const auto largest = store_.books([](objectstore::values& v) { return v.largest(holders_told); });
      if (!largest.empty()) held_by += fmt::format(" (largest: {})", fmt::join(largest, ", "));
      if (const std::size_t pinned = store_.pins().in_use()) held_by += fmt::format(" ({} in views here)", pinned);
    }
    if (++told == holders_told) break;
  }
  return held_by.empty() ? text : text + "; it is held by" + held_by;
}

void rooms::find(std::size_t bytes, std::function<bool()> take, std::function<void(const search&)> gave_up) {
  if (take()) return;
  search s = begin(bytes);
  s.returning = true;
  open_.push_back({std::move(s), std::move(take), std::move(gave_up)});
  tend();
}

// One search that has ended, if any: what it calls may change the list.
bool rooms::tend_once() {
  for (auto at = open_.begin(); at != open_.end(); ++at) {
    open_search& one = *at;
    if (one.adopting) continue;
    bool taken = one.take();
    const look seen = taken ? look::again : step(one.s);
    if (seen == look::again && !taken) taken = one.take();  // what could be dropped is room at once
    if (seen == look::granted) adopt_apart(one);
    if (!taken && seen != look::hopeless) continue;
    end(one.s);
    const open_search ended = std::move(one);
    open_.erase(at);
    if (!taken) ended.gave_up(ended.s);
    return true;
  }
  return false;
}

bool rooms::tend() {
  if (std::exchange(tending_, true)) return false;  // called by what it calls
  bool any = false;
  while (tend_once()) any = true;
  tending_ = false;
  return any;
}

void rooms::adopt_apart(open_search& one) {
  one.adopting = true;
  auto good = std::make_shared<bool>(false);
  disk_.now([this, &one, good] { *good = adopt(one.s); },
            [this, &one, good] {
              one.adopting = false;
              adopted(one.s, *good);
              tend();
            });
}

}  // namespace rota::detail
