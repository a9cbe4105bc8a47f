// Which task goes to which rank. Every choice is by lane (tasks that are alike) and by load order or node, never by a
// walk over tasks; a walk over ranks is bounded by `probes`.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/scheduler/scheduler.h"

namespace rota::scheduler {
namespace {

constexpr std::uint32_t probes = 64;
constexpr float depth_ns = 200'000;  // as much work is handed out ahead as hides a round trip many times over
constexpr std::uint32_t most_depth = 2048;
constexpr std::uint32_t most_small = 4096;  // as many threads as a rank makes
// A rank that makes an argument is preferred to an idle one while its load is within this of the least loaded.
constexpr std::uint32_t locality_slack = 512;

}  // namespace

void scheduler::join(rank_t rank, rank_offer offer) {
  if (ranks_.size() <= rank) ranks_.resize(rank + 1);
  rank_state& r = ranks_[rank];
  r.joined = r.alive = true;
  r.node = offer.node;
  several_nodes_ |= r.node != ranks_[0].node;
  r.host = std::move(offer.host);
  r.total = r.room = std::move(offer.total);
  r.deep = depth(r);
  if (r.total.cpus > 0) {
    order_.add(rank, 0);
    nodes_[r.node].all.push_back(rank);
  }
  for (std::uint32_t i = 1; i < lanes_.size(); ++i) lanes_[i].possible = ever_feasible(lanes_[i]);
  refill(rank);
  settle();
}

std::uint32_t scheduler::intern(const shape_key& key, const wire::resources& needs, std::uint8_t code) {
  auto [at, fresh] = lane_ids_.emplace(key, static_cast<std::uint32_t>(lanes_.size()));
  if (!fresh) return at->second;
  lane made;
  made.needs = needs;
  made.needs_code = code;
  made.priority = key.priority;
  made.where = key.where;
  made.target = key.target;
  made.simple = needs.cpus <= wire::resources::unit && needs.others.empty();
  made.possible = ever_feasible(made);
  lanes_.push_back(made);
  return at->second;
}

bool scheduler::feasible(const lane& l, rank_t rank) const {
  const rank_state& r = ranks_[rank];
  if (!r.alive || r.total.cpus == 0) return false;
  if (l.where == wire::where_kind::on_rank && l.target != rank) return false;
  if (l.where == wire::where_kind::on_node && l.target != r.node) return false;
  return l.simple || l.needs.fits_in(r.total);
}

bool scheduler::ever_feasible(const lane& l) const {
  if (l.where == wire::where_kind::on_rank) return l.target < ranks_.size() && feasible(l, rank_t(l.target));
  if (l.simple && l.where != wire::where_kind::on_node) return order_.most().has_value();
  for (rank_t r = 0; r < ranks_.size(); ++r) {
    if (feasible(l, r)) return true;
  }
  return false;
}

std::string scheduler::why_infeasible(const lane& l) const {
  if (l.where == wire::where_kind::on_rank) {
    if (l.target >= ranks_.size() || !ranks_[l.target].joined)
      return fmt::format("it asks for rank {}, and there are ranks 0 to {}", l.target, ranks_.size() - 1);
    const rank_state& r = ranks_[l.target];
    return fmt::format("it asks for {} on rank {} ({}), which {}", describe(l.needs), l.target, r.host,
                       r.alive ? "offers " + describe(r.total) : "is lost");
  }
  // The one that comes nearest to what is asked for.
  auto share = [](std::int64_t offered, std::int64_t wanted) {
    return wanted <= offered ? 1.0 : static_cast<double>(offered) / static_cast<double>(wanted);
  };
  auto fitness = [&](const wire::resources& offered) {
    double sum = share(offered.cpus, l.needs.cpus);
    for (const auto& [name, wanted] : l.needs.others) sum += share(offered.amount(name), wanted);
    return sum;
  };
  const rank_state* largest = nullptr;
  bool node_known = false;
  for (const rank_state& r : ranks_) {
    if (l.where == wire::where_kind::on_node && r.node != l.target) continue;
    node_known = true;
    if (r.alive && (!largest || fitness(r.total) > fitness(largest->total))) largest = &r;
  }
  if (!node_known) return fmt::format("it asks for node {}, which does not exist", l.target);
  if (!largest) return "no rank is left";
  return fmt::format("it asks for {}, and the largest rank{} offers {}", describe(l.needs),
                     l.where == wire::where_kind::on_node ? fmt::format(" of node {}", l.target) : "",
                     describe(largest->total));
}

void scheduler::ready(index e) { ready_.push_back(e); }

// What was handed to a rank has come back: those who counted on it as handed out wait again.
void scheduler::hand_back(index e) {
  const entry& at = entries_[e];
  if (at.state == stage::assigned) unlist_task(e);
  for (index d = at.dependents; d; d = edges_[d].next_dependent) {
    if (edges_[d].kind != edge_dep) continue;
    index task = edges_[d].task;
    if (entries_[task].state == stage::queued) unqueue(task);  // all its arguments were handed out
    if (entries_[task].state == stage::waiting) ++entries_[task].unmet;
  }
}

// Placing a task lets its dependents become ready, whose placing...: a loop instead of a recursion as deep as a chain.
void scheduler::settle() {
  if (settling_) return;
  settling_ = true;
  while (!ready_.empty() || !handed_.empty()) {
    if (!ready_.empty()) {
      index e = ready_.back();
      ready_.pop_back();
      place(e);
      continue;
    }
    index e = handed_.back();
    handed_.pop_back();
    for (index at = entries_[e].dependents; at; at = edges_[at].next_dependent) {
      if (edges_[at].kind != edge_dep) continue;
      entry& task = entries_[edges_[at].task];
      if (task.state == stage::waiting && task.unmet > 0 && --task.unmet == 0) ready(edges_[at].task);
    }
  }
  settling_ = false;
}

// A task that waited at `rank` for arguments that are not done has got them all, and is not there any more.
void scheduler::note_used(index e, rank_t rank) {
  for (index a = entries_[e].arguments; a; a = edges_[a].next_argument) {
    if (edges_[a].kind != edge_dep || entries_[edges_[a].object].state == stage::done) continue;
    index used = edges_.add();
    edges_[used].object = edges_[a].object;
    edges_[used].task = rank;
    edges_[used].kind = edge_used;
    link_dependent(edges_[a].object, used);
  }
}

// The deliveries that finished tasks used were those of a maker that is lost: the next one does not count them.
void scheduler::forget_used(index e) {
  for (index d = entries_[e].dependents; d; d = edges_[d].next_dependent) {
    if (edges_[d].kind == edge_used) edges_[d].kind = edge_dead;
  }
}

// Back to the start: ready once the makers of all arguments have been handed out.
void scheduler::wait_for_makers(index e) {
  entry& at = entries_[e];
  at.state = stage::waiting;
  at.rank = no_rank;
  at.unmet = 0;
  for (index a = at.arguments; a; a = edges_[a].next_argument) {
    if (edges_[a].kind == edge_dep && !known_place(entries_[edges_[a].object])) ++at.unmet;
  }
  if (at.unmet == 0) ready(e);
}

void scheduler::place(index e) {
  entry& at = entries_[e];
  if (at.state != stage::waiting || at.unmet > 0) return;  // it became ready twice, or a producer came back since
  std::uint32_t awaited = 0;
  for (index a = at.arguments; a; a = edges_[a].next_argument) {
    const entry& object = entries_[edges_[a].object];
    if (edges_[a].kind != edge_dep) continue;
    if (object.state != stage::done) {
      ++awaited;
      continue;
    }
    wire::value_view value = value_of(object);
    if (value.kind == wire::value_kind::failed) {
      scratch_serves_.clear();
      return commit(e, value);
    }
  }
  at.unmet = awaited;
  if (!lanes_[at.lane].possible) return fail_impossible(e);
  bool early = awaited > 0 && reserves(e);
  bool behind = list_of(e).first != 0;  // others like it wait already: no rank has room
  if (std::optional<rank_t> rank = early || behind ? std::nullopt : choose(e, lanes_[at.lane])) return assign(e, *rank);
  enqueue(e, at.attempt > 0);
}

// It takes something of a rank for itself when it is handed out, so that it must not be before its arguments are done:
// what makes them could need just that.
bool scheduler::reserves(index e) const {
  const entry& at = entries_[e];
  const wire::resources& needs = lanes_[at.lane].needs;
  return !needs.others.empty() || ((at.flags & is_actor) && needs.cpus > 0);
}

void scheduler::fail_impossible(index e) {
  const lane& l = lanes_[entries_[e].lane];
  bool lost = l.where == wire::where_kind::on_rank && l.target < ranks_.size() && ranks_[l.target].joined &&
              !ranks_[l.target].alive;
  fail(e, lost ? wire::failure_kind::rank_lost : wire::failure_kind::infeasible,
       fmt::format("{} can never run: {}", title(entries_[e]), why_infeasible(l)));
}

std::uint32_t scheduler::depth(const rank_state& r) const {
  auto slots = static_cast<std::uint32_t>((r.total.cpus + wire::resources::unit - 1) / wire::resources::unit);
  float ahead = depth_ns / std::max(r.task_ns, 50.0f) * static_cast<float>(slots);
  return slots + 1 + std::min(static_cast<std::uint32_t>(ahead), most_depth);
}

// Ripe: the task could start at once. So it may go to any rank with an idle slot, however many tasks wait there for
// arguments: one of them may wait for this one.
bool scheduler::has_room(const lane& l, rank_t rank, bool ripe) const {
  const rank_state& r = ranks_[rank];
  if (!feasible(l, rank)) return false;
  const std::int64_t busy = r.cpu_load - r.blocked_cpus - (ripe ? r.waiting_load : 0);
  if (l.simple && l.needs.cpus <= r.room.cpus) {
    // More small tasks than slots run at once, each on a thread.
    const bool beside = l.needs.cpus < wire::resources::unit && r.outstanding < most_small;
    return has_simple_room(r, ripe) || (beside && busy + l.needs.cpus <= r.total.cpus);
  }
  return l.needs.fits_in(r.room) && busy < r.total.cpus;
}

// Where the object that a task wants to be near is made or lies; no_rank where that says nothing.
rank_t scheduler::place_of_near(const entry& task) const {
  bytes_view bytes = task.task.view();
  index o = by_id_.find(wire::id_at(bytes.last(sizeof(object_id)), 0));
  if (!o) return no_rank;
  const entry& object = entries_[o];
  if (object.state != stage::done) return object.rank;
  wire::value_view value = value_of(object);
  return value.kind == wire::value_kind::placed ? value.owner : object.rank;
}

// Of the ranks of a node with room, the one with the least load: of `probes` that follow on the last that was taken.
std::optional<rank_t> scheduler::choose_on(std::uint32_t node, const lane& l, bool ripe) {
  node_ranks& there = nodes_[node];
  const std::size_t first = there.next, count = std::min<std::size_t>(there.all.size(), probes);
  std::optional<rank_t> found;
  for (std::size_t i = first; i < first + count; ++i) {
    const rank_t rank = there.all[i % there.all.size()];
    if (!has_room(l, rank, ripe) || (found && ranks_[rank].load() >= ranks_[*found].load())) continue;
    found = rank;
    there.next = (i + 1) % there.all.size();
    if (ranks_[rank].load() == 0) break;
  }
  if (!found && count > 0) there.next = (first + count) % there.all.size();
  return found;
}

std::optional<rank_t> scheduler::choose(index e, const lane& l) {
  bool ripe = entries_[e].unmet == 0;
  if (l.where == wire::where_kind::on_rank) {
    auto rank = static_cast<rank_t>(l.target);
    return has_room(l, rank, ripe) ? std::optional(rank) : std::nullopt;
  }
  if (entries_[e].flags & has_near) {
    rank_t beside = place_of_near(entries_[e]);
    if (beside != no_rank && has_room(l, beside, ripe)) return beside;
  } else if (l.where == wire::where_kind::anywhere) {
    for (index a = entries_[e].arguments; a; a = edges_[a].next_argument) {
      const entry& object = entries_[edges_[a].object];
      rank_t maker = object.state == stage::assigned ? object.rank : no_rank;
      if (edges_[a].kind != edge_dep || maker == no_rank) continue;
      const rank_state& r = ranks_[maker];
      bool light = r.outstanding <= by_load().least_load() + locality_slack;
      if (light && has_room(l, maker, ripe)) return maker;
      break;
    }
  }
  if (std::optional<std::uint32_t> node; several_nodes_ && ripe && (node = node_of_arguments(e))) {
    if (std::optional<rank_t> there = choose_on(*node, l, ripe)) return there;
  }
  std::optional<rank_t> found;
  by_load().from_least(
      [&](rank_t rank) {
        if (!has_room(l, rank, ripe)) return false;
        found = rank;
        return true;
      },
      probes);
  return found;
}

void scheduler::assign(index e, rank_t rank) {
  entry& at = entries_[e];
  at.rank = rank;
  at.state = stage::assigned;
  list_task(e, rank);
  if (!lanes_[at.lane].simple || (at.flags & is_actor)) take_needs(e, rank);
  ++counters_.assigned;
  send_assign(e, rank);
  handed_.push_back(e);
  if ((at.flags & is_actor) && !where_asked_.empty()) {
    auto asked = where_asked_.extract(at.id);
    if (!asked.empty()) {
      for (rank_t r : asked.mapped()) tell_where(r, e);
    }
  }
}

void scheduler::send_assign(index e, rank_t rank) {
  const entry& at = entries_[e];
  base::cursor rest(at.task.view());
  auto fixed = rest.get<spawned_rest>();
  wire::assign_head head;
  const lane& l = lanes_[at.lane];
  head.flags = static_cast<std::uint8_t>(((at.flags & is_actor) ? wire::spawn_actor : 0) |
                                         ((at.flags & wants_push) ? wire::assign_to_submitter : 0));
  head.attempt = at.attempt;
  head.needs = l.needs_code;
  head.function = at.function;
  head.priority = l.priority;
  head.id = at.id;
  head.parent = fixed.parent;
  head.mask = fixed.mask;
  head.name = fixed.name;
  head.bytes = fixed.bytes;
  scratch_.clear();
  scratch_.put(head);
  std::vector<index> fetches;  // arguments that lie on other nodes
  for (index a = at.arguments; a; a = edges_[a].next_argument) {
    if (edges_[a].kind != edge_dep) continue;
    const entry& object = entries_[edges_[a].object];
    ++head.deps;
    scratch_.put(object.id);
    if (object.state == stage::done) {
      const wire::value_view v = value_for(edges_[a].object, rank);
      if (v.present()) {
        wire::put_value(scratch_, v);
        continue;
      }
      fetches.push_back(edges_[a].object);
    }
    wire::value_view awaited;
    const bool done = object.state == stage::done;
    awaited.kind = object.rank == rank && !done ? wire::value_kind::awaited_here : wire::value_kind::awaited;
    wire::put_value(scratch_, awaited);
    if (object.rank == rank || done) continue;
    wire::route_head route;
    route.rank = rank;
    route.object = object.id;
    route.attempt = object.attempt;
    out_.send(object.rank, wire::as_bytes(route));
  }
  for (index a = at.arguments; a; a = edges_[a].next_argument) {
    if (edges_[a].kind != edge_held) continue;
    ++head.held;
    scratch_.put(entries_[edges_[a].object].id);
  }
  if (at.dependents) {
    collect_consumers(e, scratch_consumers_);
    head.serves = static_cast<std::uint32_t>(scratch_consumers_.size());
    scratch_.append(scratch_consumers_.data(), scratch_consumers_.size() * sizeof(wire::serve));
  }
  if (l.needs_code == wire::explicit_needs) wire::put_resources(scratch_, l.needs);
  scratch_.append(rest.take(fixed.name + std::size_t{fixed.bytes}));
  std::memcpy(scratch_.data(), &head, sizeof(head));
  out_.send(rank, scratch_.view());
  for (index object : fetches) want_copy(object, rank, 1);
}

}  // namespace rota::scheduler
