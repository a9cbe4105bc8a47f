// Calls that this rank makes to actors.
#include <fmt/format.h>

#include "runtime/agent/agent.h"
#include "runtime/wire/actor_messages.h"

namespace rota::agent {
known_actor& agent::link_to(object& actor) {
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
  if (!s.name.empty()) head.flags = wire::call_named;
  head.function = s.function;
  head.actor = actor.id;
  head.id = result.id;
  head.caller = s.parent ? jobs_[s.parent].id : 0;
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
  if (!s.name.empty()) base::put_text(record, s.name);
  record.append(s.bytes);
  if (to.rank != no_rank) return send(to.rank, record.view());
  to.unsent.emplace_back();
  to.unsent.back().append(record.view());
  if (std::exchange(to.asked, true)) return;
  wire::id_head where;
  where.type = wire::message::where;
  where.id = actor.id;
  send_head(wire::as_bytes(where));
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
    for (const base::buffer& call : unsent) {
      object* result = find(base::cursor(call.view()).get<wire::call_head>().id);
      if (result) calls_[result->call].to = head.rank;
      send(to.rank, call.view());
    }
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
  if (fetch_result(from, head.id, v, record)) return;
  complete_call(*result, v, from, head.flags & wire::returned_settled);
}

// The call is over for whoever waits; its refs stay held until the other side is counted (drop_call).
void agent::complete_call(object& result, const wire::value_view& v, rank_t from, bool settled) {
  keep(result);
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
    head.token = fresh_token();
    settling_[head.token] = {from, result.id};
    send_head(wire::as_bytes(head));
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
    tell_blocked(head.blocked, head.blocked_cpus);
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
  unlend(result);
}

void agent::drop_call(index c) {
  for (object* o : calls_[c].refs) unhold(*o);
  call_of_.erase(calls_[c].id);
  calls_.erase(c);
}

void agent::on_settle(object_id id) {
  if (auto result = fetching_.results.find(id); result != fetching_.results.end()) {
    fetching_.by_number[result->second].settled = true;
    return;
  }
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
  send(to, wire::as_bytes(settle));
}

void agent::kill(object& actor) {
  wire::id_head head;
  head.type = wire::message::end_actor;
  head.flags = wire::end_now;
  head.id = actor.id;
  send_head(wire::as_bytes(head));
}

}  // namespace rota::agent
