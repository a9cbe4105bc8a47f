// Values become known, and those who wait for them are served.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/scheduler/scheduler.h"
#include "runtime/wire/actor_messages.h"

namespace rota::scheduler {
namespace {

void count_consumer(std::vector<wire::serve>& out, rank_t rank, bool copy) {
  // Consumers of one rank mostly come in a row; a wide fan-out is merged by the caller.
  if (out.empty() || out.back().rank != rank) out.push_back({rank, 0, 0});
  ++(copy ? out.back().copies : out.back().count);
}

void merge_by_rank(std::vector<wire::serve>& list) {
  if (list.size() < 2) return;
  std::sort(list.begin(), list.end(), [](wire::serve a, wire::serve b) { return a.rank < b.rank; });
  std::size_t kept = 0;
  for (std::size_t i = 1; i < list.size(); ++i) {
    if (list[i].rank == list[kept].rank) {
      list[kept].count += list[i].count;
      list[kept].copies += list[i].copies;
    } else {
      list[++kept] = list[i];
    }
  }
  list.resize(kept + 1);
}

}  // namespace

wire::value_view scheduler::value_of(const entry& e) const {
  base::cursor from(e.value.view());
  return wire::get_value(from);
}

// By rank: how many consumers have been handed to it and wait there, and how often it asked for a copy. `used`: with
// consumers that are done already.
void scheduler::collect_consumers(index e, std::vector<wire::serve>& out, bool used) const {
  out.clear();
  for (index at = entries_[e].dependents; at; at = edges_[at].next_dependent) {
    const edge& link = edges_[at];
    if (link.kind == edge_pull) {
      count_consumer(out, link.task, true);
    } else if (link.kind == edge_used && used) {
      count_consumer(out, link.task, false);
    } else if (link.kind == edge_dep && entries_[link.task].state == stage::assigned &&
               !(entries_[link.task].flags & kept_by_rank)) {
      count_consumer(out, entries_[link.task].rank, false);
    }
  }
  merge_by_rank(out);
}

// The value of e is known: the first committed attempt wins. scratch_serves_ says who has been sent it already.
void scheduler::commit(index e, const wire::value_view& value, rank_t maker) {
  scratch_value_.clear();
  wire::put_value(scratch_value_, value);
  commit_encoded(e, scratch_value_.view(), maker);
}

void scheduler::commit_encoded(index e, bytes_view encoded, rank_t maker) {
  entry& at = entries_[e];
  bool handed = known_place(at);
  rank_t home = at.rank;
  at.unmet = maker;
  ++counters_.committed;
  at.value = blob(encoded);
  const wire::value_view value = value_of(at);
  at.state = stage::done;
  at.task = {};
  bool failed = value.kind == wire::value_kind::failed;
  bool lives = (at.flags & is_actor) && !failed && at.rank != no_rank;
  if (!lives) at.rank = no_rank;
  hold_contained(value);
  serve_dependents(e, scratch_serves_);
  for (index d = at.dependents; d; d = edges_[d].next_dependent) {
    if (edges_[d].kind != edge_dep) continue;
    entry& task = entries_[edges_[d].task];
    if (task.state != stage::waiting) {
      argument_done(edges_[d].task);
    } else if (!handed && task.unmet > 0 && --task.unmet == 0) {
      ready(edges_[d].task);
    }
  }
  for (index d = std::exchange(at.dependents, 0); d;) {
    index next = std::exchange(edges_[d].next_dependent, 0);
    if (edges_[d].kind != edge_dep) edges_.erase(d);
    d = next;
  }
  rank_t submitter = origin_of(at.id);
  bool push = (at.flags & wants_push) && submitter < ranks_.size() && ranks_[submitter].alive && at.accounts > 0;
  if (push) tell_submitter(submitter, e);
  at.flags &= static_cast<std::uint8_t>(~wants_push);
  if ((at.flags & is_actor) && failed) {
    wire::failure why = wire::decode_failure(value_of(at).data);
    if (why.kind == wire::failure_kind::task) why.kind = wire::failure_kind::actor_died;
    dead_.try_emplace(at.id, why, home);
    end_actor(e, true, why.what);
  }
  drop_edges(e, (at.flags & kept_by_rank) ? no_rank : maker);
  maybe_free(e);
}

void scheduler::serve_dependents(index e, std::vector<wire::serve>& served) {
  if (!entries_[e].dependents) return;
  collect_consumers(e, scratch_consumers_, true);
  for (wire::serve want : scratch_consumers_) {
    for (wire::serve had : served) {
      if (had.rank != want.rank) continue;
      want.count -= std::min(had.count, want.count);
      want.copies -= std::min(had.copies, want.copies);
    }
    if (want.count > 0 || want.copies > 0) send_value(want.rank, e, want.count);
  }
}

void scheduler::send_value(rank_t to, index e, std::uint32_t count) {
  if (!ranks_[to].alive) return;
  if (!several_nodes_) return send_this(to, e, count, value_of(entries_[e]));
  const wire::value_view v = value_for(e, to);
  if (!v.present()) return want_copy(e, to, count);
  send_this(to, e, count, v);
}

void scheduler::send_this(rank_t to, index e, std::uint32_t count, const wire::value_view& value) {
  const entry& at = entries_[e];
  wire::value_head head;
  head.count = count;
  head.object = at.id;
  head.attempt = at.attempt;
  scratch_.clear();
  scratch_.put(head);
  wire::put_value(scratch_, value);
  out_.send(to, scratch_.view());
}

void scheduler::fail(index e, wire::failure_kind kind, const std::string& what) {
  base::buffer bytes = wire::encode({kind, what, {}});
  scratch_serves_.clear();
  commit(e, wire::failed_value(bytes.view()));
}

std::string scheduler::title(const entry& e) const {
  std::string name;
  if (e.task) {
    base::cursor rest(e.task.view());
    auto fixed = rest.get<spawned_rest>();
    bytes_view text = rest.take(fixed.name);
    name.assign(reinterpret_cast<const char*>(text.data()), text.size());
  }
  if (name.empty() && function_name) name = function_name(e.function);
  if (name.empty()) name = fmt::format("function {}", e.function);
  return fmt::format("{} {}", (e.flags & is_actor) ? "actor" : "task", name);
}

std::string scheduler::progress_of(object_id id) const {
  index e = by_id_.find(id);
  if (!e) return {};
  const entry& at = entries_[e];
  switch (at.state) {
    case stage::waiting:
      return fmt::format("; {} waits for {} arguments", title(at), at.unmet);
    case stage::queued:
      return fmt::format("; {} waits for a free slot", title(at));
    case stage::assigned:
      return fmt::format("; {} is on rank {} ({})", title(at), at.rank, ranks_[at.rank].host);
    default:
      return {};
  }
}

std::string scheduler::title_of(object_id id) const {
  index e = by_id_.find(id);
  return e ? title(entries_[e]) : std::string("?");
}

// `now`: what waits for the actor fails; otherwise nobody can name it any more.
void scheduler::end_actor(index e, bool now, const std::string& why) {
  entry& at = entries_[e];
  if (auto name = named_.extract(at.id); !name.empty()) names_.erase(name.mapped().first);
  if (at.flags & actor_over) return;
  at.flags |= actor_over;
  if (now && !dead_.contains(at.id)) {
    dead_[at.id] = {{wire::failure_kind::actor_died, fmt::format("{} is gone: {}", title(at), why), {}}, at.rank};
  }
  if (auto asked = where_asked_.extract(at.id); !asked.empty()) {
    for (rank_t r : asked.mapped()) tell_where(r, e);
  }
  if (at.rank != no_rank && !ranks_[at.rank].alive) return;
  if (at.state == stage::assigned || (at.state == stage::done && at.rank != no_rank)) {
    wire::id_head head;
    head.type = wire::message::end_actor;
    head.flags = now ? wire::end_now : std::uint8_t{0};
    head.id = at.id;
    out_.send(at.rank, wire::as_bytes(head));
    return;
  }
  if (at.state == stage::waiting || at.state == stage::queued) {
    if (at.state == stage::queued) unqueue(e);
    base::buffer bytes = wire::encode(dead_[at.id].first);
    scratch_serves_.clear();
    commit(e, wire::failed_value(bytes.view()));
  }
}

void scheduler::tell_where(rank_t to, index e) {
  const entry& at = entries_[e];
  wire::actor_at_head head;
  head.actor = at.id;
  head.rank = at.rank;
  head.incarnation = at.attempt;
  base::buffer record;
  record.put(head);
  auto dead = dead_.find(at.id);
  if (dead != dead_.end()) {
    base::buffer bytes = wire::encode(dead->second.first);
    wire::put_value(record, wire::failed_value(bytes.view()));
  } else if (at.state == stage::done && at.rank == no_rank) {
    record.append(at.value.view());  // it was lost before the head heard of it
  } else {
    wire::put_value(record, {});
  }
  out_.send(to, record.view());
}

// Tasks in lanes or waiting for producers that were never handed out end as cancelled; so do those that ranks were
// handed ahead, once they have given them back.
void scheduler::drop_queued() {
  for (index e = 1; e < entries_.end(); ++e) {
    if (entries_[e].id != 0) drop(e);
  }
  settle();
  dropping_ = true;
  for (rank_t r = 0; r < ranks_.size(); ++r) {
    if (!ranks_[r].alive || ranks_[r].outstanding == 0) continue;
    wire::recall_head head;
    head.count = ranks_[r].outstanding;
    out_.send(r, wire::as_bytes(head));
  }
}

void scheduler::drop(index e) {
  const stage state = entries_[e].state;
  if (state != stage::queued && state != stage::waiting) return;
  if (state == stage::queued) unqueue(e);
  entries_[e].unmet = 0xffff'ffff;  // nothing makes it ready again
  fail(e, wire::failure_kind::cancelled, title(entries_[e]) + " was dropped: the session ended before it started");
}

std::vector<std::pair<object_id, rank_t>> scheduler::some_assigned(std::size_t most) const {
  std::vector<std::pair<object_id, rank_t>> some;
  for (rank_t r = 0; r < ranks_.size(); ++r) {
    for (index e = ranks_[r].first; e && some.size() < most; e = entries_[e].next) some.emplace_back(entries_[e].id, r);
  }
  return some;
}

std::string scheduler::describe_live(std::size_t most) const {
  std::string text;
  for (index e = 1; e < entries_.end() && most > 0; ++e) {
    const entry& at = entries_[e];
    if (at.id == 0) continue;
    --most;
    text += fmt::format("object {:#x} of rank {} ({}): state {}, {} holds, {} ranks\n", at.id, origin_of(at.id),
                        title(at), int(at.state), at.holds, at.accounts);
  }
  return text;
}

}  // namespace rota::scheduler
