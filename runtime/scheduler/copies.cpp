// Copies of values in the stores of other nodes: one a node, however many ranks there read it. Readers on a node
// without one wait for the first of them to fetch it; each copy that is complete serves further nodes.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/scheduler/scheduler.h"
#include "runtime/wire/copy_messages.h"

namespace rota::scheduler {
namespace {

constexpr std::uint32_t fetches_at_once = 2;  // from one copy of a value

}  // namespace

node_copy* scheduler::find_copy(index e, std::uint32_t node) {
  auto found = copies_.find(e);
  if (found == copies_.end()) return nullptr;
  for (node_copy& c : found->second) {
    if (ranks_[c.rank].node == node) return &c;
  }
  return nullptr;
}

// The value of e as `rank` can read it; none where its node has no copy.
wire::value_view scheduler::value_for(index e, rank_t rank) {
  wire::value_view v = value_of(entries_[e]);
  const std::uint32_t node = ranks_[rank].node;
  if (v.kind != wire::value_kind::placed || !several_nodes_ || ranks_[v.owner].node == node) return v;
  const node_copy* here = find_copy(e, node);
  if (!here || !here->complete) return {};
  v.owner = here->rank;
  v.place = here->place;
  return v;
}

// What lies on another node is not moved before somebody asks: the submitter may never read it.
void scheduler::tell_submitter(rank_t submitter, index e) {
  if (!several_nodes_ || value_for(e, submitter).present()) return send_value(submitter, e, 0);
  wire::value_view elsewhere;
  elsewhere.kind = wire::value_kind::elsewhere;
  send_this(submitter, e, 0, elsewhere);
}

// `count` deliveries, or (0) a plain copy, are for `to`, on whose node the value does not lie.
void scheduler::want_copy(index e, rank_t to, std::uint32_t count) {
  node_copy* here = find_copy(e, ranks_[to].node);
  if (!here) {
    here = &copies_[e].emplace_back();
    here->rank = to;
  }
  here->waiting.push_back({to, count, count == 0 ? 1u : 0u});
  start_fetches(e);
}

void scheduler::start_fetches(index e) {
  std::vector<node_copy>& all = copies_[e];
  const wire::value_view v = value_of(entries_[e]);
  for (node_copy& next : all) {
    if (next.complete || next.source != no_rank) continue;
    rank_t best = no_rank;
    std::uint64_t place = 0;
    std::size_t least = fetches_at_once;
    auto consider = [&](rank_t rank, std::uint64_t where) {
      auto busy = static_cast<std::size_t>(
          std::count_if(all.begin(), all.end(), [&](const node_copy& c) { return !c.complete && c.source == rank; }));
      if (rank == next.avoid || busy >= least) return;
      least = busy;
      best = rank;
      place = where;
    };
    consider(v.owner, v.place);
    for (const node_copy& c : all) {
      if (c.complete) consider(c.rank, c.place);
    }
    if (best == no_rank) continue;
    next.source = best;
    wire::fetch_head head;
    head.from = best;
    head.object = entries_[e].id;
    head.place = place;
    head.size = v.size;
    out_.send(next.rank, wire::as_bytes(head));
  }
}

void scheduler::on_fetched(rank_t from, bytes_view record) {
  auto head = base::cursor(record).get<wire::fetched_head>();
  index e = by_id_.find(head.object);
  node_copy* made = e ? find_copy(e, ranks_[from].node) : nullptr;
  if (!made || made->rank != from || made->complete) {  // the value has gone meanwhile
    if (head.outcome == wire::fetch_outcome::whole) free_place(from, head.place);
    return;
  }
  std::vector<wire::serve> waiting = std::exchange(made->waiting, {});
  const rank_t source = std::exchange(made->source, no_rank);
  if (head.outcome == wire::fetch_outcome::broken) {
    made->avoid = source;
    made->waiting = std::move(waiting);
  } else if (head.outcome == wire::fetch_outcome::no_room) {
    std::erase_if(copies_[e], [&](const node_copy& c) { return c.rank == from; });
    base::buffer why = wire::encode(
        {wire::failure_kind::out_of_memory,
         fmt::format(
             "rank {} ({}) had no room in its node's store for a copy of {} bytes; raise --rota-store or let go "
             "of refs",
             from, ranks_[from].host, value_of(entries_[e]).size),
         {}});
    for (wire::serve to : waiting) send_this(to.rank, e, to.count, wire::failed_value(why.view()));
  } else {
    made->complete = true;
    made->place = head.place;
    for (wire::serve to : waiting) send_value(to.rank, e, to.count);
  }
  start_fetches(e);
}

// The value of e is not needed any more: neither are its copies.
void scheduler::free_copies(index e) {
  auto found = copies_.extract(e);
  if (found.empty()) return;
  for (const node_copy& c : found.mapped()) {
    if (c.complete) free_place(c.rank, c.place);
  }
}

void scheduler::free_place(rank_t owner, std::uint64_t place) {
  if (!ranks_[owner].alive) return;
  wire::free_place_head head;
  head.place = place;
  out_.send(owner, wire::as_bytes(head));
}

// The node that holds most bytes of the arguments of a task; nullopt where all is small.
std::optional<std::uint32_t> scheduler::node_of_arguments(index task) {
  std::vector<std::pair<std::uint32_t, std::uint64_t>> held;
  for (index a = entries_[task].arguments; a; a = edges_[a].next_argument) {
    const entry& object = entries_[edges_[a].object];
    if (edges_[a].kind != edge_dep || object.state != stage::done) continue;
    const wire::value_view v = value_of(object);
    if (v.kind != wire::value_kind::placed) continue;
    auto add = [&](std::uint32_t node) {
      auto known = std::find_if(held.begin(), held.end(), [&](const auto& one) { return one.first == node; });
      if (known == held.end()) known = held.insert(held.end(), {node, 0});
      known->second += v.size;
    };
    add(ranks_[v.owner].node);
    auto copies = copies_.find(edges_[a].object);
    if (copies == copies_.end()) continue;
    for (const node_copy& c : copies->second) {
      if (c.complete) add(ranks_[c.rank].node);
    }
  }
  auto most =
      std::max_element(held.begin(), held.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == held.end() ? std::nullopt : std::optional(most->first);
}

}  // namespace rota::scheduler
