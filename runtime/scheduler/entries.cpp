// Objects and their counts: who names an object, and when it goes.
#include "runtime/scheduler/scheduler.h"

namespace rota::scheduler {

index scheduler::touch(object_id id) {
  auto [e, fresh] = by_id_.find_or_add(id, [this] { return entries_.add(); });
  if (!fresh) return e;
  entries_[e].id = id;
  rank_t origin = origin_of(id);
  if (origin < ranks_.size() && ranks_[origin].gone) {  // what would have made it known never comes
    base::buffer bytes = wire::encode(loss_of(id)), value;
    wire::put_value(value, wire::failed_value(bytes.view()));
    entries_[e].value = blob(value.view());
    entries_[e].state = stage::done;
    entries_[e].unmet = no_rank;
  }
  return e;
}

// True once consumers may be handed out: the maker is known, or the value.
bool scheduler::known_place(const entry& e) const { return e.state >= stage::assigned; }

void scheduler::add_edge(index task, object_id object, edge_kind kind) {
  index o = touch(object);
  index at = edges_.add();
  edge& made = edges_[at];
  made.object = o;
  made.task = task;
  made.kind = kind;
  made.next_argument = entries_[task].arguments;
  entries_[task].arguments = at;
  ++entries_[o].holds;
  if (kind != edge_dep || entries_[o].state == stage::done) return;
  link_dependent(o, at);
  if (!known_place(entries_[o])) ++entries_[task].unmet;
}

void scheduler::link_dependent(index object, index at) {
  edges_[at].next_dependent = entries_[object].dependents;
  entries_[object].dependents = at;
}

// The task is over: its arguments are released. Edges still in the list of an object without a value stay there: a
// task that ran at `used_at` used a delivery of each.
void scheduler::drop_edges(index task, rank_t used_at) {
  index at = std::exchange(entries_[task].arguments, 0);
  while (at) {
    index next = edges_[at].next_argument;
    index object = edges_[at].object;
    bool listed = edges_[at].kind == edge_dep && entries_[object].state != stage::done;
    if (listed) {
      edges_[at].kind = used_at == no_rank ? edge_dead : edge_used;
      edges_[at].task = used_at;
    } else {
      edges_.erase(at);
    }
    release(object);
    at = next;
  }
}

void scheduler::add_account(index e, rank_t rank) {
  entry& at = entries_[e];
  if (at.first_rank == rank) {
    ++at.first_count;
  } else if (at.accounts == 0) {
    at.first_rank = rank;
    at.first_count = 1;
    at.accounts = 1;
  } else if (std::uint32_t* count = accounts_.find(e, rank)) {
    ++*count;
  } else {
    accounts_.add(e, rank);
    ++at.accounts;
  }
}

void scheduler::drop_account(index e, rank_t rank) {
  entry& at = entries_[e];
  if (at.first_rank == rank) {
    if (--at.first_count > 0) return;
    at.first_rank = no_rank;
    --at.accounts;
  } else if (std::uint32_t* count = accounts_.find(e, rank)) {
    if (--*count > 0) return;
    accounts_.erase(e, rank);
    --at.accounts;
  } else {
    throw std::logic_error("a rank gives up a ref that it was not counted for");
  }
  maybe_free(e);
}

void scheduler::hold_contained(const wire::value_view& value) {
  for (std::size_t i = 0; i < wire::id_count(value.contains); ++i) {
    ++entries_[touch(wire::id_at(value.contains, i))].holds;
  }
}

void scheduler::release(index object) {
  --entries_[object].holds;
  maybe_free(object);
}

void scheduler::maybe_free(index e) {
  const entry& at = entries_[e];
  if (at.accounts > 0 || at.holds > 0) return;
  if ((at.flags & is_actor) && !(at.flags & actor_over)) {
    if (at.state == stage::done) end_actor(e, false, "its last handle is gone");
    return;
  }
  if (at.state != stage::done || at.rank != no_rank) return;
  freeing_.push_back(e);
  if (freeing_.size() > 1) return;  // the loop below, in an outer call, takes it
  for (std::size_t i = 0; i < freeing_.size(); ++i) free_now(freeing_[i]);
  freeing_.clear();
}

// Values that contain refs to values that contain refs... are worked off in maybe_free's loop, not by recursion.
void scheduler::free_now(index e) {
  entry& at = entries_[e];
  if (at.id == 0) return;
  if (several_nodes_) free_copies(e);
  blob value = std::move(at.value);
  by_id_.erase(at.id);
  if (at.flags & actor_over) forget_actor(at.id);
  entries_.erase(e);
  if (!value) return;
  base::cursor from(value.view());
  wire::value_view v = wire::get_value(from);
  if (v.kind == wire::value_kind::placed) free_place(v.owner, v.place);
  for (std::size_t i = 0; i < wire::id_count(v.contains); ++i) {
    index contained = by_id_.find(wire::id_at(v.contains, i));
    if (contained) release(contained);
  }
}

// Nobody names it any more: its rank need not remember why calls to it fail.
void scheduler::forget_actor(object_id actor) {
  auto dead = dead_.extract(actor);
  if (dead.empty()) return;
  rank_t home = dead.mapped().second;
  if (home == no_rank || !ranks_[home].alive) return;
  wire::id_head head;
  head.type = wire::message::end_actor;
  head.flags = wire::end_forgotten;
  head.id = actor;
  out_.send(home, wire::as_bytes(head));
}

std::uint32_t scheduler::account_of(object_id id, rank_t rank) const {
  index e = by_id_.find(id);
  if (!e) return 0;
  const entry& at = entries_[e];
  if (at.first_rank == rank) return at.first_count;
  const std::uint32_t* count = const_cast<account_book&>(accounts_).find(e, rank);
  return count ? *count : 0;
}

bool scheduler::covered(object_id id) const {
  index e = by_id_.find(id);
  return e && (entries_[e].accounts > 0 || entries_[e].holds > 0);
}

}  // namespace rota::scheduler
