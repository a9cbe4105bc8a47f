// Actors: those that live on this rank, and the calls that this rank makes to others'.
#include <fmt/format.h>

#include "runtime/agent/agent.h"

namespace rota::agent {
namespace {

template <class Head>
bytes_view as_bytes(const Head& head) {
  return {reinterpret_cast<const std::byte*>(&head), sizeof(head)};
}

}  // namespace

// -- the caller's side -----------------------------------------------------------------------------------------------

agent::known_actor& agent::link_to(object& actor) {
  actor.flags |= object::known_actor;
  return links_[actor.id];
}

void agent::call(object& result, object& actor, const submission& s) {
  objects_.set(result.id, &result);
  result.flags |= object::local | object::calling;
  known_actor& to = link_to(actor);
  if (!to.failure.empty()) {
    result.flags &= static_cast<std::uint16_t>(~object::calling);
    return set_value(result, wire::failed_value(to.failure.view()), true);
  }
  publish_all(s.deps);
  publish_all(s.held);
  index c = calls_.add();
  pending_call& pending = calls_[c];
  pending.id = result.id;
  pending.to = to.rank;
  pending.result = &result;
  pending.actor = &actor;
  hold(actor);
  result.call = c;
  for (object* o : s.deps) pending.refs.push_back(o);
  for (object* o : s.held) pending.refs.push_back(o);
  for (object* o : pending.refs) hold(*o);

  wire::call_head head;
  head.function = s.function;
  head.actor = actor.id;
  head.id = result.id;
  head.mask = s.mask;
  head.sequence = to.sequence++;
  head.incarnation = to.incarnation;
  head.deps = static_cast<std::uint32_t>(s.deps.size());
  head.held = static_cast<std::uint32_t>(s.held.size());
  head.bytes = static_cast<std::uint32_t>(s.bytes.size());
  base::buffer& record = scratch_;
  record.clear();
  record.put(head);
  for (object* o : s.deps) record.put(o->id);
  for (object* o : s.held) record.put(o->id);
  record.append(s.bytes);
  if (to.rank != no_rank) return send(to.rank, record.view());
  to.unsent.emplace_back();
  to.unsent.back().append(record.view());
  if (std::exchange(to.asked, true)) return;
  wire::id_head where;
  where.type = wire::message::where;
  where.id = actor.id;
  send_head(as_bytes(where));
}

void agent::on_actor_at(bytes_view record) {
  base::cursor cursor(record);
  auto head = cursor.get<wire::actor_at_head>();
  wire::value_view v = wire::get_value(cursor);
  auto found = links_.find(head.actor);
  if (found == links_.end()) return;
  known_actor& to = found->second;
  to.asked = false;
  std::vector<base::buffer> unsent = std::move(to.unsent);
  to.unsent.clear();
  if (v.kind != wire::value_kind::failed && !lost_.contains(head.rank)) {
    to.rank = head.rank;
    to.incarnation = head.incarnation;
    for (const base::buffer& call : unsent) send(to.rank, call.view());
    return;
  }
  if (v.kind == wire::value_kind::failed) to.failure.append(v.data);
  for (const base::buffer& call : unsent) {
    auto sent = base::cursor(call.view()).get<wire::call_head>();
    object* result = find(sent.id);
    if (result) complete_call(*result, v, no_rank, true);
  }
}

void agent::on_returned(rank_t from, bytes_view record) {
  base::cursor cursor(record);
  auto head = cursor.get<wire::returned_head>();
  wire::value_view v = wire::get_value(cursor);
  object* result = find(head.id);
  if (!result || !(result->flags & object::calling)) return;
  complete_call(*result, v, from, head.flags & wire::returned_settled);
}

// The call is over for whoever waits; its refs stay held until the other side is counted (drop_call).
void agent::complete_call(object& result, const wire::value_view& v, rank_t from, bool settled) {
  pin(result);
  index c = result.call;
  set_value(result, v, true);
  // Refs inside the value are this rank's own now: the actor's rank holds them until the head knows.
  bool counted_any = false;
  for (std::uint32_t i = 0; i < result.contained; ++i) {
    object& inside = *result.contains[i];
    if (!(inside.flags & (object::counted | object::local))) count_plus(inside);
    counted_any = true;
  }
  if (counted_any && from != no_rank) {
    wire::count_head head;
    head.token = ++next_token_;
    settling_[head.token] = {from, result.id};
    send_head(as_bytes(head));
  }
  result.flags &= static_cast<std::uint16_t>(~object::calling);
  served_.clear();
  bool published = !(result.flags & object::local);
  if (published) {
    wire::value_view value = view_of(result);
    send_routes(result, value, served_);
    wire::done_head head;
    head.id = result.id;
    head.served = static_cast<std::uint32_t>(served_.size());
    head.blocked = blocked_;
    scratch_.clear();
    scratch_.put(head);
    scratch_.append(served_.data(), served_.size() * sizeof(wire::serve));
    wire::put_value(scratch_, value);
    send_head(scratch_.view());
    std::uint32_t own = 0;
    for (wire::serve to : served_) own += to.rank == self_ ? to.count : 0;
    if (own > 0) deliver(result, own);
  }
  calls_[c].returned = true;
  calls_[c].to = from;
  calls_[c].result = nullptr;
  unhold(*std::exchange(calls_[c].actor, nullptr));
  if (settled || calls_[c].refs.empty()) {
    drop_call(c);
  } else {
    call_of_.set(result.id, c);
  }
  unpin(result);
}

void agent::drop_call(index c) {
  for (object* o : calls_[c].refs) unhold(*o);
  call_of_.erase(calls_[c].id);
  calls_.erase(c);
}

void agent::on_settle(object_id id) {
  if (index c = call_of_.find(id)) drop_call(c);
  auto loan = loans_.extract(id);
  if (loan.empty()) return;
  for (object* o : loan.mapped()) unhold(*o);
}

void agent::on_counted(bytes_view record) {
  auto head = base::cursor(record).get<wire::counted_head>();
  auto found = settling_.extract(head.token);
  if (found.empty()) return;
  auto [to, id] = found.mapped();
  wire::id_head settle;
  settle.type = wire::message::settle;
  settle.id = id;
  send(to, as_bytes(settle));
}

void agent::kill(object& actor) {
  wire::id_head head;
  head.type = wire::message::end_actor;
  head.flags = wire::end_now;
  head.id = actor.id;
  send_head(as_bytes(head));
}

// -- the actor's side ------------------------------------------------------------------------------------------------

agent::index agent::host_of(object_id actor) {
  if (index known = actor_of_.find(actor)) return known;
  index a = hosted_.add();
  hosted_[a].id = actor;
  actor_of_.set(actor, a);
  return a;
}

void agent::on_call(rank_t from, bytes_view record) {
  base::cursor cursor(record);
  auto head = cursor.get<wire::call_head>();
  bytes_view deps = cursor.take(head.deps * sizeof(object_id));
  bytes_view held = cursor.take(head.held * sizeof(object_id));
  index a = host_of(head.actor);  // the call may come before the head's ASSIGN
  if (hosted_[a].state == hosted::over) return return_failed(from, head.id, hosted_[a].failure.view());
  index j = make_job(head.deps, head.held, {}, cursor.take(head.bytes));
  job& made = jobs_[j];
  made.kind = job_kind::call;
  made.function = head.function;
  made.id = head.id;
  made.mask = head.mask;
  made.actor = a;
  made.caller = from;
  made.head_sends = head_sends_;
  made.missing = 1;
  for (std::uint32_t i = 0; i < head.deps; ++i) {
    object& o = find_or_make(wire::id_at(deps, i));
    pin(o);
    made.dep_array()[i] = &o;
    if (o.has_value()) continue;
    ++made.missing;
    add_waiter(o, j);
    // Every wait takes a delivery of its own, also where the value will come for other reasons.
    --o.claims;
    wire::id_head pull;
    pull.id = o.id;
    send_head(as_bytes(pull));
  }
  for (std::uint32_t i = 0; i < head.held; ++i) {
    object& o = find_or_make(wire::id_at(held, i));
    pin(o);
    made.held_array()[i] = &o;
  }
  hosted_[a].calls.push_back(j);
  if (--made.missing == 0) {
    made.ready = true;
    list_actor(a);
  }
}

// Calls start in the order in which they came, each when the one before has returned.
void agent::list_actor(index a) {
  hosted& h = hosted_[a];
  if (h.state != hosted::alive || h.busy || h.listed) return;
  while (!h.calls.empty() && jobs_[h.calls.front()].ready) {
    index j = h.calls.front();
    const object* failed = failed_dep(j);
    if (!failed) {
      h.listed = true;
      ready_actors_.push_back(a);
      return;
    }
    h.calls.pop_front();
    base::buffer copy;
    copy.append(failed->bytes());
    made_value v;
    v.value = wire::failed_value(copy.view());
    finish_call(j, v);
  }
}

void agent::finish_construct(index j, const made_value& v, std::uint32_t nanoseconds) {
  index a = jobs_[j].actor;
  hosted& h = hosted_[a];
  bool failed = v.value.kind == wire::value_kind::failed;
  wire::resources needs = classes_[jobs_[j].queue].needs;
  bool took = jobs_[j].started;
  base::buffer failure;
  made_value told = v;
  if (failed) {
    wire::failure why = wire::decode_failure(v.value.data);
    if (why.kind == wire::failure_kind::task) why.kind = wire::failure_kind::actor_died;
    failure = wire::encode(why);
    told.value = wire::failed_value(failure.view());
    if (took) needs.give_back_to(free_);
  } else {
    h.held = std::move(needs);
  }
  object_id id = h.id;
  finish_task(j, told, nanoseconds);
  if (failed) {
    h.state = hosted::over;
    h.failure = std::move(failure);
    fail_calls(h);
    if (h.ending) {
      actor_of_.erase(id);
      hosted_.erase(a);
    }
    return;
  }
  h.state = hosted::alive;
  if (h.ending) return end_hosted(a);
  list_actor(a);
}

void agent::finish_call(index j, const made_value& v) {
  job& at = jobs_[j];
  index a = at.actor;
  publish_all(v.contains);
  put_contains(v.contains, scratch_ids_);
  wire::value_view value = v.value;
  value.contains = scratch_ids_.view();
  wire::returned_head head;
  head.id = at.id;
  rank_t caller = at.caller;
  bool had_refs = at.deps + at.held > 0;
  // The refs that came with the call end here, or are counted as this rank's own. Whatever the head was told since the
  // call came must have reached it before the caller may give up its hold.
  std::uint64_t sent = at.head_sends;
  std::vector<object*> lent(v.contains.begin(), v.contains.end());
  bool gone = lost_.contains(caller);
  if (!lent.empty() && !gone) {
    for (object* o : lent) hold(*o);
    loans_[at.id] = std::move(lent);
  }
  object_id id = at.id;
  at.started = false;
  drop_job(j);
  bool told = head_sends_ != sent || !plus_.empty();
  if (!had_refs || !told) head.flags |= wire::returned_settled;
  base::buffer record;
  record.put(head);
  wire::put_value(record, value);
  send(caller, record.view());
  if (had_refs && told) {
    wire::count_head barrier;
    barrier.token = ++next_token_;
    settling_[barrier.token] = {caller, id};
    send_head(as_bytes(barrier));
  }
  hosted& h = hosted_[a];
  if (h.id == 0) return;
  h.busy = false;
  if (h.ending) return end_hosted(a);
  list_actor(a);
}

void agent::return_failed(rank_t caller, object_id id, bytes_view failure) {
  wire::returned_head head;
  head.id = id;
  head.flags = wire::returned_settled;
  base::buffer record;
  record.put(head);
  wire::put_value(record, wire::failed_value(failure));
  send(caller, record.view());
}

// All handles are gone, or somebody killed it.
void agent::on_end_actor(bytes_view record) {
  auto head = base::cursor(record).get<wire::id_head>();
  index a = actor_of_.find(head.id);
  if (!a) return;
  hosted& h = hosted_[a];
  if (head.flags == wire::end_forgotten) {
    if (h.state == hosted::over) {
      actor_of_.erase(h.id);
      hosted_.erase(a);
    } else {
      h.failure.clear();
      h.ending = true;  // what is left of it goes without a trace
    }
    return;
  }
  if (head.flags == wire::end_now && h.failure.empty()) {
    h.failure = wire::encode({wire::failure_kind::actor_died, "the actor was killed", {}});
    fail_calls(h);
  }
  h.ending = true;
  if (h.state == hosted::alive && !h.busy) end_hosted(a);
}

// Its destructor is a job of its own, after the call that runs.
void agent::end_hosted(index a) {
  hosted& h = hosted_[a];
  if (h.state != hosted::alive) return;
  h.state = hosted::over;
  h.busy = true;
  if (h.listed) std::erase(ready_actors_, a);
  h.listed = true;
  index j = make_job(0, 0, {}, {});
  jobs_[j].kind = job_kind::destroy;
  jobs_[j].actor = a;
  h.calls.push_front(j);
  ready_actors_.push_back(a);
}

void agent::finish_destroy(index j) {
  index a = jobs_[j].actor;
  drop_job(j);
  hosted& h = hosted_[a];
  h.held.give_back_to(free_);
  h.held = {};
  h.instance = nullptr;
  wire::id_head head;
  head.type = wire::message::end_actor;
  head.id = h.id;
  bool remember = !h.failure.empty();
  if (!remember) {
    actor_of_.erase(h.id);
    hosted_.erase(a);
  }
  send_head(as_bytes(head));
}

void agent::fail_calls(hosted& h) {
  if (h.listed) {
    for (auto at = ready_actors_.begin(); at != ready_actors_.end(); ++at) {
      if (hosted_[*at].id != h.id) continue;
      ready_actors_.erase(at);
      break;
    }
    h.listed = false;
  }
  std::deque<index> calls = std::move(h.calls);
  h.calls.clear();
  for (index j : calls) {
    if (jobs_[j].missing > 0) {
      jobs_[j].orphan = true;  // its values are still on their way
      return_failed(jobs_[j].caller, jobs_[j].id, h.failure.view());
      continue;
    }
    return_failed(jobs_[j].caller, jobs_[j].id, h.failure.view());
    drop_job(j);
  }
}

// The session ends: what has not started is dropped, and every actor gets its destructor.
void agent::close() {
  closing_ = true;
  base::buffer cancelled =
      wire::encode({wire::failure_kind::cancelled, "dropped: the session ended before it started", {}});
  for (std::uint32_t c : class_order_) {
    while (index j = classes_[c].first) {
      unlist_ready(j);
      fail_job(j, cancelled.view());
    }
  }
  std::vector<index> here;
  actor_of_.for_each([&](object_id, index a) { here.push_back(a); });
  for (index a : here) {
    hosted& h = hosted_[a];
    if (h.state == hosted::over) continue;
    if (h.failure.empty()) {
      h.failure = wire::encode({wire::failure_kind::actor_died, "the session ends", {}});
    }
    fail_calls(h);
    h.ending = true;
    if (h.state == hosted::alive && !h.busy) end_hosted(a);
  }
}

}  // namespace rota::agent
