// Messages in, and what a rank does when another is lost.
#include <fmt/format.h>

#include "runtime/agent/agent.h"

namespace rota::agent {

bool agent::take(rank_t from, bytes_view record) {
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
    case wire::message::fetch:
      on_fetch(record);
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
  if (head.flags & wire::lost_closed) return on_closed(head.view);
  lost_.insert(head.rank);
  count_loans(head.rank);
  // What it had on loan from here it may have lent on: kept until everyone who is left has counted.
  std::vector<object*>& kept = kept_[head.view];
  for (auto loan = loans_.begin(); loan != loans_.end();) {
    bool lent = origin_of(loan->first) == head.rank;
    if (lent) kept.insert(kept.end(), loan->second.begin(), loan->second.end());
    loan = lent ? loans_.erase(loan) : std::next(loan);
  }
  end_calls_to(head.rank, kept);
  std::erase_if(settling_, [&](const auto& entry) { return entry.second.first == head.rank; });
  send_sync(head.rank, head.view);
}

void agent::on_closed(std::uint32_t view) {
  auto kept = kept_.extract(view);
  if (kept.empty()) return;
  for (object* o : kept.mapped()) unhold(*o);
}

// Refs on loan from it, in calls that it made: its account covers them no longer.
void agent::count_loans(rank_t lost) {
  for (index j = 1; j < jobs_.end(); ++j) {
    job& at = jobs_[j];
    if (at.id == 0 || at.kind != job_kind::call || at.caller != lost) continue;
    at.owns = true;
    for (std::uint32_t i = 0; i < at.deps + at.held; ++i) {
      object& o = *at.dep_array()[i];
      hold(o);
      if (!(o.flags & (object::counted | object::local))) count_plus(o);
    }
  }
}

// Calls to actors that lived there: whether they have run nobody knows.
void agent::end_calls_to(rank_t lost, std::vector<object*>& kept) {
  for (auto& [id, to] : links_) {
    if (to.rank != lost) continue;
    to.rank = no_rank;  // the next call asks the head
    to.sequence = 0;
  }
  base::buffer unknown =
      wire::encode({wire::failure_kind::actor_unavailable,
                    fmt::format("rank {} was lost while the call was in flight: it may or may not have run", lost),
                    {}});
  for (index c = 1; c < calls_.end(); ++c) {
    pending_call& at = calls_[c];
    if (at.id == 0 || at.to != lost) continue;
    kept.insert(kept.end(), at.refs.begin(), at.refs.end());
    at.refs.clear();
    if (at.returned) {
      drop_call(c);
    } else {
      complete_call(*at.result, wire::failed_value(unknown.view()), no_rank, true);
    }
  }
}

// What this rank has from the lost one that the head may not know of, what tasks here still wait for, and which copies
// it was promised and has not got.
void agent::send_sync(rank_t rank, std::uint32_t view) {
  wire::lost_head head;
  head.type = wire::message::sync;
  head.rank = rank;
  head.view = view;
  base::buffer record, copies;
  record.put(head);
  objects_.for_each([&](object_id id, object* o) {
    if (!o->has_value() && (o->flags & (object::pulled | object::pushed))) {
      copies.put(id);
      ++head.copies;
    }
    wire::synced_item item;
    item.object = id;
    item.attempt = o->attempt;
    for (index w = o->waiters; w; w = waiters_[w].next) item.waiting += waiters_[w].any ? 0 : 1;
    bool from_there = o->has_value() && (o->flags & object::from_peer) && o->source == rank;
    if (!from_there && item.waiting == 0) return;
    record.put(item);
    wire::put_value(record, from_there ? view_of(*o) : wire::value_view{});
    ++head.items;
  });
  record.append(copies.view());
  std::memcpy(record.data(), &head, sizeof(head));
  send_head(record.view());
}

std::string agent::describe_live(std::size_t most) const {
  std::string text;
  objects_.for_each([&](object_id id, object* o) {
    if (most == 0) return;
    --most;
    text +=
        fmt::format("object {:#x} of rank {} on rank {}: {} handles, {} pins, {} loans, claims {}, flags {:#x}, {}\n",
                    id, origin_of(id), self_, handle_count(*o), o->pins, o->loans, o->claims, o->flags,
                    o->has_value() ? "has a value" : "pending");
  });
  return text;
}

}  // namespace rota::agent
