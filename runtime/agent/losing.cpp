// Messages in, and what a rank does when another is lost.
#include <fmt/format.h>

#include "runtime/agent/agent.h"

namespace rota::agent {

bool agent::receive(rank_t from, bytes_view record) {
  if (lost_.contains(from)) return true;
  switch (wire::type_of(record)) {
    case wire::message::assign:
      on_assign(record);
      return true;
    case wire::message::value:
      on_value(from, record);
      return true;
    case wire::message::route:
      on_route(record);
      return true;
    case wire::message::recall:
      on_recall(record);
      return true;
    case wire::message::call:
      on_call(from, record);
      return true;
    case wire::message::returned:
      on_returned(from, record);
      return true;
    case wire::message::settle:
      on_settle(base::cursor(record).get<wire::id_head>().id);
      return true;
    case wire::message::counted:
      on_counted(record);
      return true;
    case wire::message::actor_at:
      on_actor_at(record);
      return true;
    case wire::message::end_actor:
      on_end_actor(record);
      return true;
    case wire::message::free_place:
      free_place(base::cursor(record).get<wire::free_place_head>().place);
      return true;
    case wire::message::reply: {
      base::cursor cursor(record);
      auto head = cursor.get<wire::query_head>();
      replies_[head.number].append(cursor.rest());
      news_ = true;
      return true;
    }
    case wire::message::lost:
      on_lost(record);
      return true;
    default:
      return false;
  }
}

// Everything from the lost rank has been taken in. From here on nothing more is: its place in the protocol is closed.
void agent::on_lost(bytes_view record) {
  auto head = base::cursor(record).get<wire::lost_head>();
  lost_.insert(head.rank);

  // Refs on loan from it: its account covers them no longer.
  for (index j = 1; j < jobs_.end(); ++j) {
    const job& at = jobs_[j];
    if (at.id == 0 || at.kind != job_kind::call || at.caller != head.rank) continue;
    for (std::uint32_t i = 0; i < at.deps + at.held; ++i) {
      object& o = *at.dep_array()[i];
      if (!(o.flags & (object::counted | object::local))) count_plus(o);
    }
  }
  // Refs lent to it in results of calls that it made.
  std::vector<object_id> lent;
  for (const auto& [id, refs] : loans_) {
    if (origin_of(id) == head.rank) lent.push_back(id);
  }
  for (object_id id : lent) on_settle(id);

  // Calls to actors that lived there.
  for (auto& [id, to] : links_) {
    if (to.rank != head.rank || !to.failure.empty()) continue;
    to.failure = wire::encode(
        {wire::failure_kind::actor_died, fmt::format("the actor is gone: its rank {} is lost", head.rank), {}});
  }
  base::buffer unknown = wire::encode({wire::failure_kind::actor_unavailable,
                                       fmt::format("rank {} was lost while the call was in flight: it may or may not "
                                                   "have run",
                                                   head.rank),
                                       {}});
  for (index c = 1; c < calls_.end(); ++c) {
    if (calls_[c].id == 0) continue;
    if (!calls_[c].returned) {
      auto link = links_.find(calls_[c].actor->id);
      if (link == links_.end() || link->second.rank != head.rank) continue;
      complete_call(*calls_[c].result, wire::failed_value(unknown.view()), no_rank, true);
    } else if (calls_[c].to == head.rank) {
      drop_call(c);
    }
  }
  std::erase_if(settling_, [&](const auto& entry) { return entry.second.first == head.rank; });
  send_sync(head.rank, head.view);
}

// What this rank has from the lost one that the head may not know of, with the number of deliveries that no finished
// task has used.
void agent::send_sync(rank_t rank, std::uint32_t view) {
  std::unordered_map<const object*, std::uint32_t> taken;
  for (index j = 1; j < jobs_.end(); ++j) {
    const job& at = jobs_[j];
    if (at.id == 0) continue;
    for (std::uint32_t i = 0; i < at.deps; ++i) ++taken[at.dep_array()[i]];
  }
  wire::lost_head head;
  head.type = wire::message::sync;
  head.rank = rank;
  head.view = view;
  base::buffer record;
  record.put(head);
  objects_.for_each([&](object_id id, object* o) {
    if (o->source != rank || !o->has_value() || !(o->flags & object::from_peer)) return;
    std::uint32_t count = taken[o];
    for (index w = o->waiters; w && count > 0; w = waiters_[w].next) count -= waiters_[w].who != 0 ? 1 : 0;
    wire::synced_item item;
    item.object = id;
    item.attempt = o->attempt;
    item.taken = count + static_cast<std::uint32_t>(std::max(o->claims, 0));
    record.put(item);
    wire::put_value(record, view_of(*o));
    ++head.items;
  });
  std::memcpy(record.data(), &head, sizeof(head));
  send_head(record.view());
}

std::string agent::describe_live(std::size_t most) const {
  std::string text;
  objects_.for_each([&](object_id id, object* o) {
    if (most == 0) return;
    --most;
    text += fmt::format("object {:#x} of rank {} on rank {}: {} handles, {} pins, claims {}, flags {:#x}, {}\n", id,
                        origin_of(id), self_, handle_count(*o), o->pins, o->claims, o->flags,
                        o->has_value() ? "has a value" : "pending");
  });
  return text;
}

}  // namespace rota::agent
