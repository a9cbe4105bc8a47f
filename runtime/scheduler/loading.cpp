// What each rank has been handed, and what waits for it: lists, loads, refilling, recalling.
#include <algorithm>

#include "runtime/scheduler/scheduler.h"

namespace rota::scheduler {
namespace {

// Whether a rank has room for such tasks depends on more than how many it has.
bool is_special(const lane& l) { return !l.simple || l.needs.cpus < wire::resources::unit; }

}  // namespace

void scheduler::list_task(index e, rank_t rank) {
  rank_state& r = ranks_[rank];
  entry& at = entries_[e];
  at.previous = r.last;
  at.next = 0;
  (r.last ? entries_[r.last].next : r.first) = e;
  r.last = e;
  ++r.outstanding;
  ++outstanding_;
  r.cpu_load += lanes_[at.lane].needs.cpus;
  if (at.unmet > 0) {
    ++r.waiting;
    r.waiting_load += lanes_[at.lane].needs.cpus;
  }
  update_load(rank);
}

void scheduler::unlist_task(index e) {
  entry& at = entries_[e];
  rank_state& r = ranks_[at.rank];
  (at.previous ? entries_[at.previous].next : r.first) = at.next;
  (at.next ? entries_[at.next].previous : r.last) = at.previous;
  at.previous = at.next = 0;
  --r.outstanding;
  --outstanding_;
  r.cpu_load -= lanes_[at.lane].needs.cpus;
  if (at.unmet > 0) {
    --r.waiting;
    r.waiting_load -= lanes_[at.lane].needs.cpus;
  }
  at.unmet = 0;
  update_load(at.rank);
}

// One of the arguments of a task that has been placed is done.
void scheduler::argument_done(index e) {
  entry& at = entries_[e];
  if (at.state == stage::queued && at.unmet == 1) {
    unqueue(e);
    ready(e);  // it may go where an unripe one may not
  } else if (at.state == stage::queued) {
    --at.unmet;
  } else if (at.state == stage::assigned && at.unmet > 0 && --at.unmet == 0) {
    rank_state& r = ranks_[at.rank];
    --r.waiting;
    r.waiting_load -= lanes_[at.lane].needs.cpus;
  }
}

lane::list& scheduler::list_of(index e) {
  lane& l = lanes_[entries_[e].lane];
  return entries_[e].unmet == 0 ? l.ripe : l.unripe;
}

// Custom needs are taken from the rank's room while a task runs; an actor holds all its needs, CPUs too, for life.
void scheduler::take_needs(index e, rank_t rank) {
  entry& at = entries_[e];
  const wire::resources& needs = lanes_[at.lane].needs;
  if (!reserves(e)) return;
  at.flags |= holds_needs;
  if (at.flags & is_actor) return needs.take_from(ranks_[rank].room);
  wire::resources custom{0, needs.others};
  custom.take_from(ranks_[rank].room);
}

void scheduler::give_needs(index e, rank_t rank) {
  entry& at = entries_[e];
  if (!(at.flags & holds_needs)) return;
  at.flags &= static_cast<std::uint8_t>(~holds_needs);
  const wire::resources& needs = lanes_[at.lane].needs;
  if (at.flags & is_actor) return needs.give_back_to(ranks_[rank].room);
  wire::resources custom{0, needs.others};
  custom.give_back_to(ranks_[rank].room);
}

load_order& scheduler::by_load() {
  for (rank_t rank : load_changed_) {
    rank_state& r = ranks_[rank];
    r.load_changed = false;
    order_.move(rank, r.load());
  }
  load_changed_.clear();
  return order_;
}

// A rank without any work, while there may be some elsewhere.
bool scheduler::someone_is_idle() {
  if (!open_lanes_.empty() && special_lanes_ == 0) return false;  // it would have been handed those
  return by_load().least_load() == 0;
}

// Where the lanes with tasks of this kind are listed, by priority.
std::vector<std::uint32_t>& scheduler::listed_with(const lane& l) {
  if (l.where == wire::where_kind::on_rank) return ranks_[l.target].pinned;
  if (l.where == wire::where_kind::on_node) return node_lanes_[l.target];
  return open_lanes_;
}

// Only lanes with tasks are listed: a program may use a priority for each of its steps.
void scheduler::list_lane(std::uint32_t id) {
  auto higher = [this](std::uint32_t a, std::uint32_t b) { return lanes_[a].priority > lanes_[b].priority; };
  std::vector<std::uint32_t>& list = listed_with(lanes_[id]);
  list.insert(std::upper_bound(list.begin(), list.end(), id, higher), id);
  special_lanes_ += is_special(lanes_[id]) ? 1 : 0;
}

void scheduler::unlist_lane(std::uint32_t id) {
  std::erase(listed_with(lanes_[id]), id);
  special_lanes_ -= is_special(lanes_[id]) ? 1 : 0;
}

void scheduler::enqueue(index e, bool front) {
  entry& at = entries_[e];
  if (lanes_[at.lane].empty()) list_lane(at.lane);
  lane::list& l = list_of(e);
  at.state = stage::queued;
  at.age = next_age_++;
  ++queued_;
  if (front) {
    at.previous = 0;
    at.next = l.first;
    (l.first ? entries_[l.first].previous : l.last) = e;
    l.first = e;
  } else {
    at.next = 0;
    at.previous = l.last;
    (l.last ? entries_[l.last].next : l.first) = e;
    l.last = e;
  }
}

void scheduler::unqueue(index e) {
  entry& at = entries_[e];
  lane::list& l = list_of(e);
  (at.previous ? entries_[at.previous].next : l.first) = at.next;
  (at.next ? entries_[at.next].previous : l.last) = at.previous;
  at.previous = at.next = 0;
  at.state = stage::waiting;
  at.unmet = 0;  // all its arguments have been handed out
  --queued_;
  if (lanes_[at.lane].empty()) unlist_lane(at.lane);
}

// The rank has room: hands it what waits for it, best priority first.
void scheduler::refill(rank_t rank) {
  if (!ranks_[rank].alive || ranks_[rank].total.cpus == 0) return;
  while (queued_ > 0) {
    index e = next_for(rank);
    if (!e) break;
    std::uint32_t awaited = entries_[e].unmet;
    unqueue(e);
    entries_[e].unmet = awaited;
    assign(e, rank);
  }
  // Dry while others have a line of tasks: ask the longest line for some.
  rank_state& r = ranks_[rank];
  if (queued_ > 0 || outstanding_ == r.outstanding || r.cpu_load >= r.total.cpus) return;
  std::optional<rank_t> victim = by_load().most();
  if (victim && *victim != rank) ask_recall(*victim);
}

// The best queued task for the rank: by priority, then by age. 0: none, or a wide one must have the rank drained first.
index scheduler::next_for(rank_t rank) const {
  const rank_state& r = ranks_[rank];
  if (special_lanes_ == 0) {
    if (!has_simple_room(r, true)) return 0;
    if (open_lanes_.size() == 1 && r.pinned.empty() && node_lanes_.empty()) {  // what is most common is short
      const lane& l = lanes_[open_lanes_.front()];
      if (l.ripe.first && l.needs.cpus <= r.room.cpus) return l.ripe.first;
    }
  }
  const std::vector<std::uint32_t>* sources[] = {&r.pinned, nullptr, &open_lanes_};
  if (!node_lanes_.empty()) {
    auto node = node_lanes_.find(r.node);
    if (node != node_lanes_.end()) sources[1] = &node->second;
  }
  index best = 0;
  std::int32_t priority = 0;
  bool blocked = false;
  for (const auto* source : sources) {
    if (!source) continue;
    for (std::uint32_t id : *source) {
      const lane& l = lanes_[id];
      if (best && l.priority < priority) break;
      if (l.empty()) continue;
      bool ripe = l.ripe.first != 0;
      bool room = has_room(l, rank, ripe);
      // A wide task waits for the rank to drain: younger ones must not keep it busy for ever.
      bool drains = !room && ripe && !l.simple && feasible(l, rank) && l.needs.fits_in(ranks_[rank].room);
      if (!room && !drains) continue;
      index e = ripe ? l.ripe.first : l.unripe.first;
      if (!ripe && reserves(e)) continue;
      bool later =
          best && l.priority == priority && static_cast<std::int32_t>(entries_[best].age - entries_[e].age) < 0;
      if (later) continue;
      best = e;
      priority = l.priority;
      blocked = drains;
    }
  }
  return blocked ? 0 : best;
}

void scheduler::ask_recall(rank_t victim) {
  rank_state& v = ranks_[victim];
  auto slots = static_cast<std::uint32_t>(v.total.cpus / wire::resources::unit);
  std::uint32_t busy = v.load();
  if (v.recalling || busy <= std::max(slots, 1u)) return;
  if (v.recall_pause > 0) {
    --v.recall_pause;
    return;
  }
  v.recalling = true;
  wire::recall_head head;
  head.count = std::min((busy - slots + 1) / 2, 64u);
  out_.send(victim, wire::as_bytes(head));
}
}  // namespace rota::scheduler
