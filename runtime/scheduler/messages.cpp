// What the head does on each message from a rank.
#include <fmt/format.h>

#include "runtime/base/running_mean.h"
#include "runtime/scheduler/scheduler.h"

namespace rota::scheduler {
void scheduler::receive(rank_t from, bytes_view record) {
  if (from >= ranks_.size() || !ranks_[from].alive) return;
  switch (wire::type_of(record)) {
    case wire::message::spawned:
      on_spawned(from, record);
      break;
    case wire::message::spawned_all:
      on_spawned_all(from, record);
      break;
    case wire::message::done:
      on_done(from, record);
      break;
    case wire::message::count:
      on_count(from, record);
      break;
    case wire::message::pull:
      on_pull(from, base::cursor(record).get<wire::id_head>().id);
      break;
    case wire::message::publish:
      on_publish(from, record);
      break;
    case wire::message::recalled:
      on_recalled(from, record);
      break;
    case wire::message::blocked:
      ranks_[from].blocked = base::cursor(record).get<wire::blocked_head>().count;
      ranks_[from].blocked_cpus = base::cursor(record).get<wire::blocked_head>().cpus;
      update_load(from);
      refill(from);
      break;
    case wire::message::where:
      on_where(from, base::cursor(record).get<wire::id_head>().id);
      break;
    case wire::message::end_actor:
      on_end_actor(from, base::cursor(record).get<wire::id_head>());
      break;
    case wire::message::query:
      on_query(from, record);
      break;
    case wire::message::fetched:
      on_fetched(from, record);
      break;
    case wire::message::sync:
      on_sync(from, record);
      break;
    default:
      throw std::logic_error(fmt::format("the head got message {} from rank {}", int(record[0]), from));
  }
  settle();
}

std::uint32_t scheduler::common_lane() {
  if (common_lane_ == 0) {
    const wire::resources one{wire::resources::unit, {}};
    common_lane_ = intern({{}, 0, wire::where_kind::anywhere, 0}, one, wire::one_cpu);
  }
  return common_lane_;
}

// Takes the explicit needs.
std::uint32_t scheduler::lane_of(const wire::spawned_head& head, base::cursor& cursor) {
  const bool near = head.where == wire::where_kind::near;
  const wire::where_kind where = near ? wire::where_kind::anywhere : head.where;
  if (head.needs == wire::one_cpu && head.priority == 0 && where == wire::where_kind::anywhere) return common_lane();
  const std::byte* start = cursor.at();
  wire::resources needs;
  if (head.needs == wire::one_cpu) needs.cpus = wire::resources::unit;
  if (head.needs == wire::explicit_needs) needs = wire::get_resources(cursor);
  std::string text(reinterpret_cast<const char*>(start), static_cast<std::size_t>(cursor.at() - start));
  if (head.needs == wire::no_cpu) text = "none";
  return intern({std::move(text), head.priority, where, near ? 0 : head.target}, needs, head.needs);
}

// A task that `from` has submitted; scratch_ has what a rank needs to run it.
void scheduler::begin_task(index e, std::uint32_t function, std::uint32_t lane_id, rank_t from) {
  entry& made = entries_[e];
  made.function = function;
  made.lane = lane_id;
  made.state = stage::waiting;
  made.flags |= is_task | wants_push;
  made.task = blob(scratch_.view());
  add_account(e, from);
}

void scheduler::on_spawned(rank_t from, bytes_view record) {
  base::cursor cursor(record);
  auto head = cursor.get<wire::spawned_head>();
  bytes_view deps = cursor.take(head.deps * sizeof(object_id));
  bytes_view held = cursor.take(head.held * sizeof(object_id));
  const std::uint32_t lane_id = lane_of(head, cursor);
  index e = touch(head.id);
  ++counters_.spawned;
  entry& made = entries_[e];
  bool killed = made.flags & actor_over;  // the kill overtook this
  if (head.flags & wire::spawn_actor) made.flags |= is_actor;
  scratch_.clear();
  scratch_.put(spawned_rest{head.parent, head.mask, head.name, head.bytes});
  scratch_.append(cursor.take(head.name + std::size_t{head.bytes}));
  if (head.where == wire::where_kind::near) {
    made.flags |= has_near;
    scratch_.put(head.target);
  }
  begin_task(e, head.function, lane_id, from);
  // Edges are prepended: from last to first, so that a walk meets them in the order of the arguments.
  for (std::size_t i = head.held; i-- > 0;) add_edge(e, wire::id_at(held, i), edge_held);
  for (std::size_t i = head.deps; i-- > 0;) add_edge(e, wire::id_at(deps, i), edge_dep);

  if (head.flags & wire::spawn_kept) {
    entries_[e].unmet = 0;
    for (index a = entries_[e].arguments; a; a = edges_[a].next_argument) {
      bool awaited = edges_[a].kind == edge_dep && entries_[edges_[a].object].state != stage::done;
      if (awaited) ++entries_[e].unmet;
    }
    entries_[e].flags |= kept_by_rank;
    entries_[e].state = stage::assigned;
    entries_[e].rank = from;
    list_task(e, from);
    handed_.push_back(e);
    if (someone_is_idle()) ask_recall(from);
    return;
  }
  if (!lanes_[lane_id].possible) return fail_impossible(e);
  if (killed) return fail(e, wire::failure_kind::actor_died, dead_[head.id].first.what);
  if (entries_[e].unmet == 0) ready(e);
}

// In the order of the record, and each as on_spawned and settle() would have it.
void scheduler::on_spawned_all(rank_t from, bytes_view record) {
  base::cursor cursor(record);
  auto head = cursor.get<wire::spawned_all_head>();
  const std::uint32_t lane_id = common_lane();
  counters_.spawned += head.count;
  for (std::uint32_t i = 0; i < head.count; ++i) {
    const auto size = cursor.get<std::uint32_t>();
    scratch_.clear();
    scratch_.put(spawned_rest{head.parent, 0, 0, size});
    scratch_.append(cursor.take(size));
    index e = touch(head.first + i);
    begin_task(e, head.function, lane_id, from);
    place(e);
  }
}

void scheduler::on_done(rank_t from, bytes_view record) {
  base::cursor cursor(record);
  auto head = cursor.get<wire::done_head>();
  rank_state& r = ranks_[from];
  r.blocked = head.blocked;
  r.blocked_cpus = head.blocked_cpus;
  bytes_view served = cursor.take(head.served * sizeof(wire::serve));
  const bytes_view encoded = cursor.rest();
  base::cursor value_cursor(encoded);
  const wire::value_view value = wire::get_value(value_cursor);
  index e = by_id_.find(head.id);
  bool expected = e && entries_[e].rank == from && entries_[e].attempt == head.attempt &&
                  (entries_[e].state == stage::assigned || entries_[e].state == stage::produced);
  if (!expected) {  // an attempt that was given up: its value is not wanted
    if (value.kind == wire::value_kind::placed) free_place(value.owner, value.place);
    return;
  }
  scratch_serves_.resize(head.served);
  if (head.served > 0) std::memcpy(scratch_serves_.data(), served.data(), served.size());
  bool was_task = entries_[e].state == stage::assigned;
  if (was_task) {
    r.task_ns = base::moved_mean(std::max(r.task_ns, 1.0f), static_cast<float>(head.nanoseconds), 0.05f);
    if (++r.dones % 16 == 0) r.deep = depth(r);
    unlist_task(e);
    if (!(entries_[e].flags & is_actor) || value.kind == wire::value_kind::failed) give_needs(e, from);
  }
  if (head.flags & wire::done_to_submitter) entries_[e].flags &= static_cast<std::uint8_t>(~wants_push);
  commit_encoded(e, encoded, from);
  if (!was_task) return;
  refill(from);
  if (r.outstanding > 1 && someone_is_idle()) ask_recall(from);
}

void scheduler::on_count(rank_t from, bytes_view record) {
  base::cursor cursor(record);
  auto head = cursor.get<wire::count_head>();
  for (std::uint32_t i = 0; i < head.plus; ++i) add_account(touch(cursor.get<object_id>()), from);
  for (std::uint32_t i = 0; i < head.minus; ++i) {
    index e = by_id_.find(cursor.get<object_id>());
    if (!e) throw std::logic_error("a rank gives up a ref to an object that is gone");
    drop_account(e, from);
  }
  if (head.token == 0) return;
  wire::counted_head answer;
  answer.token = head.token;
  out_.send(from, wire::as_bytes(answer));
}

void scheduler::on_pull(rank_t from, object_id id) {
  index e = touch(id);
  entry& at = entries_[e];
  if (at.state == stage::done) {
    send_value(from, e, 0);
    return maybe_free(e);
  }
  index pull = edges_.add();
  edges_[pull].object = e;
  edges_[pull].task = from;
  edges_[pull].kind = edge_pull;
  link_dependent(e, pull);
  if (!known_place(at)) return;
  wire::route_head route;
  route.rank = from;
  route.object = id;
  route.attempt = at.attempt;
  route.count = 0;
  out_.send(at.rank, wire::as_bytes(route));
}

void scheduler::on_publish(rank_t from, bytes_view record) {
  base::cursor cursor(record);
  auto head = cursor.get<wire::publish_head>();
  wire::value_view value = wire::get_value(cursor);
  index e = touch(head.id);
  add_account(e, from);
  if (value.present()) {
    scratch_serves_.clear();
    return commit(e, value);
  }
  entries_[e].rank = from;
  entries_[e].state = stage::produced;
  // Who asked before the object was known waits for its maker now.
  for (index at = entries_[e].dependents; at; at = edges_[at].next_dependent) {
    if (edges_[at].kind != edge_pull) continue;
    wire::route_head route;
    route.rank = edges_[at].task;
    route.object = head.id;
    route.count = 0;
    out_.send(from, wire::as_bytes(route));
  }
  handed_.push_back(e);
}

void scheduler::on_recalled(rank_t from, bytes_view record) {
  base::cursor cursor(record);
  auto head = cursor.get<wire::recall_head>();
  rank_state& r = ranks_[from];
  if (!(head.flags & wire::recalled_unasked)) {
    r.recalling = false;
    r.recall_misses = head.count > 0 ? 0 : std::min(r.recall_misses + 1, 10u);
    r.recall_pause = head.count > 0 ? 0 : 1u << r.recall_misses;
  }
  for (std::uint32_t i = 0; i < head.count; ++i) {
    auto item = cursor.get<wire::recalled_item>();
    index e = by_id_.find(item.id);
    if (!e || entries_[e].rank != from || entries_[e].state != stage::assigned) continue;
    ++counters_.recalled;
    hand_back(e);
    if (!(entries_[e].flags & kept_by_rank)) note_used(e, from);
    give_needs(e, from);
    entries_[e].flags &= static_cast<std::uint8_t>(~kept_by_rank);
    wait_for_makers(e);
    if (dropping_) drop(e);
  }
  settle();
  refill(from);
}

void scheduler::on_where(rank_t from, object_id actor) {
  index e = touch(actor);
  const entry& at = entries_[e];
  bool lives = at.state == stage::assigned || (at.state == stage::done && at.rank != no_rank);
  bool known = lives ? ranks_[at.rank].alive : at.state == stage::done;
  if (known || (at.flags & actor_over)) return tell_where(from, e);
  where_asked_[actor].push_back(from);
}

// A kill, or a rank's word that an actor has ended.
void scheduler::on_end_actor(rank_t from, const wire::id_head& head) {
  if (head.flags & wire::end_now) {
    return end_actor(touch(head.id), true, fmt::format("it was killed from rank {}", from));
  }
  index e = by_id_.find(head.id);
  if (!e || !(entries_[e].flags & is_actor)) return;
  entry& at = entries_[e];
  if (at.rank != from || at.state != stage::done) return;
  give_needs(e, from);
  at.rank = no_rank;
  maybe_free(e);
  refill(from);
}

void scheduler::on_query(rank_t from, bytes_view record) {
  base::cursor cursor(record);
  auto head = cursor.get<wire::query_head>();
  base::buffer answer;
  wire::query_head back = head;
  back.type = wire::message::reply;
  answer.put(back);
  if (head.kind == wire::query_kind::claim_name || head.kind == wire::query_kind::find_name) {
    auto id = cursor.get<object_id>();
    std::string name = base::get_text(cursor);
    std::string type = base::get_text(cursor);
    auto known = names_.find(name);
    object_id holder = known == names_.end() ? 0 : known->second;
    if (holder == 0 && head.kind == wire::query_kind::claim_name) {
      names_[name] = id;
      named_[id] = {name, type};
    }
    answer.put(holder);
    // The asker is about to hold a handle: counted here, before the last of the others can go.
    if (holder) add_account(touch(holder), from);
    const std::string held_type = holder ? named_[holder].second : std::string();
    answer.append(held_type.data(), held_type.size());
  } else {
    answer.put(static_cast<std::uint32_t>(ranks_.size()));
    for (rank_t i = 0; i < ranks_.size(); ++i) {
      answer.put(i);
      answer.put(ranks_[i].node);
      answer.put(static_cast<std::uint32_t>(ranks_[i].alive));
      base::put_text(answer, ranks_[i].host);
      wire::put_resources(answer, ranks_[i].total);
      wire::resources free = ranks_[i].room;
      std::int64_t busy = ranks_[i].cpu_load - ranks_[i].blocked_cpus;
      free.cpus = std::max<std::int64_t>(0, free.cpus - std::max<std::int64_t>(0, busy));
      wire::put_resources(answer, free);
    }
  }
  out_.send(from, answer.view());
}

void scheduler::on_sync(rank_t from, bytes_view record) {
  base::cursor cursor(record);
  auto head = cursor.get<wire::lost_head>();
  auto found = losses_.find(head.view);
  if (found == losses_.end()) return;
  loss& l = found->second;
  for (std::uint32_t i = 0; i < head.items; ++i) {
    auto item = cursor.get<wire::synced_item>();
    wire::value_view value = wire::get_value(cursor);
    index e = by_id_.find(item.object);
    if (!e) continue;
    entry& at = entries_[e];
    // It said that it had delivered, and the delivery was lost with it.
    bool told = at.state == stage::done && at.unmet == l.rank && item.waiting > 0;
    if (told) send_value(from, e, item.waiting);
    if (at.state != stage::lost || at.rank != l.rank || at.attempt != item.attempt || !value.present()) continue;
    l.reported[e].push_back({from, item.waiting, 0});
    if (at.value) continue;
    scratch_value_.clear();
    wire::put_value(scratch_value_, value);
    at.value = blob(scratch_value_.view());
  }
  for (std::uint32_t i = 0; i < head.copies; ++i) {
    index e = by_id_.find(cursor.get<object_id>());
    if (e && entries_[e].state == stage::done) send_value(from, e, 0);
  }
  l.awaited.erase(from);
  finish_losses();
}

}  // namespace rota::scheduler
