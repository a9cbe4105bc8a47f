// Copies of values in the stores of other nodes: one a node, however many ranks there read it. Readers on a node
// without one wait for the first of them to fetch it; each copy that is complete serves further nodes.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/scheduler/scheduler.h"
#include "runtime/wire/copy_messages.h"

namespace rota::scheduler {
namespace {

constexpr std::uint32_t fetches_at_once = 2;  // from one copy of a value
constexpr std::uint8_t most_breaks = 3;       // then its readers fail
constexpr std::size_t copies_looked_at = 8;   // when a task is placed

}  // namespace

node_copy* scheduler::find_copy(index e, std::uint32_t node) {
  auto found = copies_.find(e);
  if (found == copies_.end()) return nullptr;
  for (node_copy& c : found->second.all) {
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
  const bool fresh = !here;
  if (fresh) {
    here = &copies_[e].all.emplace_back();
    here->rank = to;
  }
  here->waiting.push_back({to, count, count == 0 ? 1u : 0u});
  if (fresh) start_fetches(e);
}

// Each copy that is complete serves as many fetches as it may, those that serve least first. One that could not be read
// is read again only where there is no other. The value stays until the answer: what is being read must not be freed.
void scheduler::start_fetches(index e) {
  struct source {
    rank_t rank;
    std::uint64_t place;
    std::uint32_t* serves;
  };
  value_copies& copies = copies_[e];
  const wire::value_view v = value_of(entries_[e]);
  std::vector<source> open = {{v.owner, v.place, &copies.owner_serves}};
  for (node_copy& c : copies.all) {
    if (c.complete) open.push_back({c.rank, c.place, &c.serves});
  }
  const bool single = open.size() == 1;
  std::erase_if(open, [](const source& s) { return *s.serves >= fetches_at_once; });
  std::stable_sort(open.begin(), open.end(), [](const source& a, const source& b) { return *a.serves < *b.serves; });
  std::size_t first = 0;
  for (node_copy& next : copies.all) {
    if (first == open.size()) break;
    if (next.complete || next.source != no_rank) continue;
    const auto from = open.begin() + static_cast<std::ptrdiff_t>(first);
    const auto found = std::find_if(from, open.end(), [&](const source& s) {
      return next.from_home ? s.serves == &copies.owner_serves : single || s.rank != next.avoid;
    });
    if (found == open.end()) continue;
    std::rotate(from, found, found + 1);
    const source best = open[first++];
    if (++*best.serves < fetches_at_once) open.push_back(best);
    next.source = best.rank;
    ++entries_[e].holds;
    wire::fetch_head head;
    head.from = best.rank;
    head.object = entries_[e].id;
    head.place = best.place;
    head.size = v.size;
    head.home = v.owner;
    head.home_place = v.place;
    out_.send(next.rank, wire::as_bytes(head));
  }
}

void scheduler::on_fetched(rank_t from, bytes_view record) {
  auto head = base::cursor(record).get<wire::fetched_head>();
  index e = by_id_.find(head.object);
  node_copy* made = e ? find_copy(e, ranks_[from].node) : nullptr;
  if (!made || made->rank != from || made->source == no_rank) {
    throw std::logic_error(fmt::format("rank {} fetched object {:#x}, which it was not told to", from, head.object));
  }
  std::vector<wire::serve> waiting = std::exchange(made->waiting, {});
  const rank_t source = std::exchange(made->source, no_rank);
  value_copies& copies = copies_[e];
  const auto lender = std::find_if(copies.all.begin(), copies.all.end(),
                                   [&](const node_copy& c) { return c.complete && c.rank == source; });
  --(lender != copies.all.end() ? lender->serves : copies.owner_serves);
  const auto give_up = [&](wire::failure_kind kind, std::string what) {
    std::erase_if(copies.all, [&](const node_copy& c) { return c.rank == from; });
    const base::buffer why = wire::encode({kind, std::move(what), {}});
    for (wire::serve to : waiting) send_this(to.rank, e, to.count, wire::failed_value(why.view()));
  };
  const std::uint64_t size = value_of(entries_[e]).size;
  if (head.outcome == wire::fetch_outcome::no_room) {
    give_up(wire::failure_kind::out_of_memory,
            fmt::format("rank {} ({}) had no room in its node's store for a copy of {} bytes; raise --rota-store or "
                        "let go of refs",
                        from, ranks_[from].host, size));
  } else if (head.outcome == wire::fetch_outcome::lost) {
    give_up(
        wire::failure_kind::object_lost,
        fmt::format("rank {} ({}) could not read a value of {} bytes from rank {} ({}), which cannot read back what "
                    "it had spilled to disk",
                    from, ranks_[from].host, size, source, ranks_[source].host));
  } else if (head.outcome == wire::fetch_outcome::broken && ++made->breaks == most_breaks) {
    give_up(wire::failure_kind::object_lost,
            fmt::format("rank {} ({}) could not read a value of {} bytes from rank {} ({}): {} transfers "
                        "broke; check the network between the two",
                        from, ranks_[from].host, size, source, ranks_[source].host, most_breaks));
  } else if (head.outcome != wire::fetch_outcome::whole) {
    made->avoid = source;
    made->from_home |= head.outcome == wire::fetch_outcome::away;
    made->waiting = std::move(waiting);
  } else {
    made->complete = true;
    made->place = head.place;
    for (wire::serve to : waiting) send_value(to.rank, e, to.count);
  }
  start_fetches(e);
  release(e);
}

// The value of e is not needed any more: neither are its copies.
void scheduler::free_copies(index e) {
  auto found = copies_.extract(e);
  if (found.empty()) return;
  for (const node_copy& c : found.mapped().all) {
    if (c.complete) free_place(c.rank, c.place);
  }
}

void scheduler::free_place(rank_t owner, std::uint64_t place) {
  if (!ranks_[owner].alive) return;
  wire::free_place_head head;
  head.place = place;
  out_.send(owner, wire::as_bytes(head));
}

// The node that holds most bytes of a task's arguments; nullopt where all is small. Looks at an argument's own place
// and its first few copies: what has more lies nearly everywhere, and each task that reads it would pay for the walk.
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
    const std::vector<node_copy>& all = copies->second.all;
    for (std::size_t i = 0; i < std::min(all.size(), copies_looked_at); ++i) {
      if (all[i].complete) add(ranks_[all[i].rank].node);
    }
  }
  auto most =
      std::max_element(held.begin(), held.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == held.end() ? std::nullopt : std::optional(most->first);
}

}  // namespace rota::scheduler
