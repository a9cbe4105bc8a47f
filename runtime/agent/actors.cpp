// Actors that live on this rank, and the calls that come to them.
#include <algorithm>

#include "runtime/agent/agent.h"
#include "runtime/wire/actor_messages.h"

namespace rota::agent {
index agent::host_of(object_id actor) {
  if (index known = actor_of_.find(actor)) return known;
  index a = hosted_.add();
  hosted_[a].id = actor;
  actor_of_.set(actor, a);
  return a;
}

void agent::push(job_list& list, index j) {
  jobs_[j].next = 0;
  (list.last ? jobs_[list.last].next : list.first) = j;
  list.last = j;
}

// REQUIRES: the list is not empty.
index agent::pop(job_list& list) {
  index j = list.first;
  list.first = std::exchange(jobs_[j].next, 0);
  if (!list.first) list.last = 0;
  return j;
}

void agent::on_call(rank_t from, bytes_view record) {
  base::cursor cursor(record);
  auto head = cursor.get<wire::call_head>();
  bytes_view deps = cursor.take(head.deps * sizeof(object_id));
  bytes_view held = cursor.take(head.held * sizeof(object_id));
  const std::string_view name = head.flags & wire::call_named ? base::get_text_view(cursor) : std::string_view();
  index a = host_of(head.actor);  // the call may come before the head's ASSIGN
  if (!hosted_[a].failure.empty()) return return_failed(from, head.id, hosted_[a].failure.view());
  index j = make_job(head.deps, head.held, name, cursor.take(head.bytes));
  job& made = jobs_[j];
  made.kind = job_kind::call;
  made.function = head.function;
  made.id = head.id;
  made.mask = head.mask;
  made.actor = a;
  made.caller = from;
  made.calling_task = head.caller;
  made.head_sends = head_sends_;
  made.missing = 1;
  for (std::uint32_t i = 0; i < head.deps; ++i) {
    object& o = find_or_make(wire::id_at(deps, i));
    ++o.loans;
    made.dep_array()[i] = &o;
    if (o.has_value()) continue;
    ++made.missing;
    add_waiter(o, j, true);
    want(o);
  }
  for (std::uint32_t i = 0; i < head.held; ++i) {
    object& o = find_or_make(wire::id_at(held, i));
    ++o.loans;
    made.held_array()[i] = &o;
  }
  hosted& h = hosted_[a];
  bool waits = made.missing > 1 || h.stalled.contains({from, head.caller});
  push(waits ? h.stalled[{from, head.caller}] : h.calls, j);
  if (--made.missing == 0) call_ready(j);
}

// Calls of one caller start in the order in which they came; those of others need not wait for its arguments, which
// may come from them.
void agent::call_ready(index j) {
  jobs_[j].ready = true;
  index a = jobs_[j].actor;
  hosted& h = hosted_[a];
  auto stalled = h.stalled.find({jobs_[j].caller, jobs_[j].calling_task});
  if (stalled != h.stalled.end()) {
    job_list& list = stalled->second;
    while (list.first && jobs_[list.first].ready) push(h.calls, pop(list));
    if (!list.first) h.stalled.erase(stalled);
  }
  list_actor(a);
}

// Each call starts when the one before has returned.
void agent::list_actor(index a) {
  hosted& h = hosted_[a];
  if (h.state != hosted::alive || h.busy || h.listed) return;
  if (!h.calls.first) return;
  if (failed_dep(h.calls.first)) return failing_calls_.push_back(a);
  h.listed = true;
  ready_actors_.push_back(a);
}

// The next call cannot run: one of its arguments failed.
void agent::answer_failed(index a) {
  hosted& h = hosted_[a];
  if (h.state != hosted::alive || h.busy || h.listed || !h.calls.first) return;
  if (const object* failed = failed_dep(h.calls.first)) {
    base::buffer copy;
    copy.append(failed->bytes());
    made_value v;
    v.value = wire::failed_value(copy.view());
    answer(pop(h.calls), v);
  }
  list_actor(a);
}

void agent::unlist_actor(index a) {
  if (!std::exchange(hosted_[a].listed, false)) return;
  ready_actors_.erase(std::find(ready_actors_.begin(), ready_actors_.end(), a));
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
    if (took) capacity_ += needs.cpus;
  } else {
    h.held = std::move(needs);
  }
  finish_task(j, told, nanoseconds);
  if (failed) {
    h.state = hosted::over;
    if (h.failure.empty()) h.failure = std::move(failure);
    return fail_calls(a);
  }
  h.state = hosted::alive;
  if (h.ending) return end_hosted(a);
  list_actor(a);
}

void agent::finish_call(index j, const made_value& v) {
  index a = jobs_[j].actor;
  answer(j, v);
  hosted_[a].busy = false;
  if (hosted_[a].ending) return end_hosted(a);
  list_actor(a);
}

// The call is over: its result goes to the caller, its job goes.
void agent::answer(index j, const made_value& v) {
  job& at = jobs_[j];
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
    barrier.token = fresh_token();
    settling_[barrier.token] = {caller, id};
    send_head(wire::as_bytes(barrier));
  }
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
  if (head.flags == wire::end_forgotten) return forget_hosted(a);
  hosted& h = hosted_[a];
  if (head.flags == wire::end_now && h.failure.empty()) {
    h.failure = wire::encode({wire::failure_kind::actor_died, "the actor was killed", {}});
    fail_calls(a);
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
  fail_calls(a);
  index j = make_job(0, 0, {}, {});
  jobs_[j].kind = job_kind::destroy;
  jobs_[j].actor = a;
  push(h.calls, j);
  h.listed = true;
  ready_actors_.push_back(a);
}

void agent::finish_destroy(index j) {
  index a = jobs_[j].actor;
  drop_job(j);
  hosted& h = hosted_[a];
  h.held.give_back_to(free_);
  capacity_ += h.held.cpus;
  h.held = {};
  h.instance = nullptr;
  h.busy = false;
  wire::id_head head;
  head.type = wire::message::end_actor;
  head.id = h.id;
  // Killed: calls may still come, until the head says that nobody can name it any more.
  if (h.failure.empty()) forget_hosted(a);
  send_head(wire::as_bytes(head));
}

void agent::forget_hosted(index a) {
  actor_of_.erase(hosted_[a].id);
  hosted_.erase(a);
}

// Answers whatever waits here. Where no reason is noted, only callers that are lost have calls left.
void agent::fail_calls(index a) {
  hosted& h = hosted_[a];
  unlist_actor(a);
  base::buffer reason;
  reason.append(h.failure.view());
  if (reason.empty()) reason = wire::encode({wire::failure_kind::actor_died, "the actor has ended", {}});
  made_value v;
  v.value = wire::failed_value(reason.view());
  for (auto& [caller, list] : std::exchange(h.stalled, {})) {
    while (list.first) push(h.calls, pop(list));
  }
  while (h.calls.first) {
    index j = pop(h.calls);
    const job& at = jobs_[j];
    for (std::uint32_t i = 0; i < at.deps && at.missing > 0; ++i) forget_waiter(*at.dep_array()[i], j);
    answer(j, v);
  }
}

// The session ends: what has not started is dropped, and every actor gets its destructor.
void agent::close() {
  closing_ = true;
  base::buffer cancelled =
      wire::encode({wire::failure_kind::cancelled, "dropped: the session ended before it started", {}});
  while (!class_order_.empty()) {
    index j = classes_[class_order_.front()].first;
    unlist_ready(j);
    fail_job(j, cancelled.view());
  }
  std::vector<index> here;
  actor_of_.for_each([&](object_id, index a) { here.push_back(a); });
  for (index a : here) {
    hosted& h = hosted_[a];
    if (h.state == hosted::over) continue;
    if (h.failure.empty()) {
      h.failure = wire::encode({wire::failure_kind::actor_died, "the session ends", {}});
    }
    fail_calls(a);
    h.ending = true;
    if (h.state == hosted::alive && !h.busy) end_hosted(a);
  }
  work_off_failing();
}

}  // namespace rota::agent
