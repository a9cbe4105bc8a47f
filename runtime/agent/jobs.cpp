// Tasks come to this rank: by submit or ASSIGN, with the values that they wait for.
#include <algorithm>

#include "runtime/agent/agent.h"

namespace rota::agent {
namespace {

// Children that a rank keeps for itself while this few tasks wait; more go to the head, which may spread them.
constexpr std::uint32_t keep_most = 64;
constexpr std::size_t most_spawned_bytes = std::size_t{8} << 10;  // of one SPAWNED_ALL

}  // namespace

bool agent::keep_here(const submission& s) const {
  if (s.parent == 0 || ready_tasks_ >= keep_most || closing_) return false;
  if (s.where != wire::where_kind::anywhere || s.flags != 0) return false;
  if (s.needs_code == wire::explicit_needs || capacity_ < wire::resources::unit) return false;
  return std::all_of(s.deps.begin(), s.deps.end(),
                     [](const object* o) { return o->state.load(std::memory_order_relaxed) == object_state::ready; });
}

void agent::submit(object& result, const submission& s) {
  objects_.set(result.id, &result);
  result.flags |= object::counted | object::pushed;
  if (s.flags & wire::spawn_actor) {
    result.flags |= object::known_actor;
    links_.try_emplace(result.id);
  }
  publish_all(s.deps);
  publish_all(s.held);
  bool kept = keep_here(s);

  wire::spawned_head head;
  head.flags = static_cast<std::uint8_t>(s.flags | (kept ? wire::spawn_kept : 0));
  head.where = s.where;
  head.needs = s.needs_code;
  head.function = s.function;
  head.id = result.id;
  head.parent = s.parent ? jobs_[s.parent].id : 0;
  head.target = s.target;
  head.mask = s.mask;
  head.priority = s.priority;
  head.deps = static_cast<std::uint32_t>(s.deps.size());
  head.held = static_cast<std::uint32_t>(s.held.size());
  head.name = static_cast<std::uint32_t>(s.name.size());
  head.bytes = static_cast<std::uint32_t>(s.bytes.size());
  scratch_.clear();
  scratch_.put(head);
  for (object* o : s.deps) scratch_.put(o->id);
  for (object* o : s.held) scratch_.put(o->id);
  if (s.needs_code == wire::explicit_needs) wire::put_resources(scratch_, *s.needs);
  scratch_.append(s.name.data(), s.name.size());
  scratch_.append(s.bytes);
  send_head(scratch_.view());
  if (!kept) return;

  index j = make_job(head.deps, head.held, s.name, s.bytes);
  job& made = jobs_[j];
  std::copy(s.deps.begin(), s.deps.end(), made.dep_array());
  std::copy(s.held.begin(), s.held.end(), made.held_array());
  for (object* o : s.deps) pin(*o);
  for (object* o : s.held) pin(*o);
  made.flags = wire::assign_to_submitter;
  made.needs_code = s.needs_code;
  made.function = s.function;
  made.id = result.id;
  made.mask = s.mask;
  made.queue = class_of(s.priority, s.needs_code, nullptr);
  made.parent = s.parent;
  job& parent = jobs_[s.parent];
  made.next_child = parent.children;
  if (parent.children) jobs_[parent.children].previous_child = j;
  parent.children = j;
  job_of_.set(made.id, j);
  make_ready(j);
}

void agent::submit_all(std::span<object* const> results, submission alike, std::span<const bytes_view> bytes) {
  std::size_t next = 0;
  for (; next < results.size() && keep_here(alike); ++next) {
    alike.bytes = bytes[next];
    submit(*results[next], alike);
  }
  while (next < results.size()) {
    wire::spawned_all_head head;
    head.function = alike.function;
    head.first = results[next]->id;
    head.parent = alike.parent ? jobs_[alike.parent].id : 0;
    scratch_.clear();
    scratch_.put(head);
    for (; next < results.size() && scratch_.size() < most_spawned_bytes; ++next, ++head.count) {
      object& result = *results[next];
      objects_.set(result.id, &result);
      result.flags |= object::counted | object::pushed;
      scratch_.put(static_cast<std::uint32_t>(bytes[next].size()));
      scratch_.append(bytes[next]);
    }
    std::memcpy(scratch_.data(), &head, sizeof(head));
    send_head(scratch_.view());
  }
}

index agent::make_job(std::uint32_t deps, std::uint32_t held, std::string_view name, bytes_view bytes) {
  index j = jobs_.add();
  job& made = jobs_[j];
  std::size_t pointers = (deps + std::size_t{held}) * sizeof(object*);
  made.body = job_block(pointers + name.size() + bytes.size());
  std::byte* text = made.body.data() + pointers;
  if (!name.empty()) std::memcpy(text, name.data(), name.size());
  if (!bytes.empty()) std::memcpy(text + name.size(), bytes.data(), bytes.size());
  made.deps = deps;
  made.held = held;
  made.name = static_cast<std::uint32_t>(name.size());
  made.bytes = static_cast<std::uint32_t>(bytes.size());
  return j;
}

void agent::on_assign(bytes_view record) {
  base::cursor cursor(record);
  auto head = cursor.get<wire::assign_head>();
  // The arguments come before name and bytes: they are gathered first.
  std::vector<object*>& deps = dep_scratch_;
  deps.clear();
  struct wait {
    object* on;
    bool here;
  };
  std::vector<wait> waits;
  for (std::uint32_t i = 0; i < head.deps; ++i) {
    object& o = find_or_make(cursor.get<object_id>());
    wire::value_view v = wire::get_value(cursor);
    pin(o);
    deps.push_back(&o);
    if (v.present()) {
      if (!o.has_value()) set_value(o, v, false);
    } else {
      waits.push_back({&o, v.kind == wire::value_kind::awaited_here});
    }
  }
  bytes_view held = cursor.take(head.held * sizeof(object_id));
  bytes_view serves = cursor.take(head.serves * sizeof(wire::serve));
  wire::resources needs;
  if (head.needs == wire::explicit_needs) needs = wire::get_resources(cursor);
  bytes_view name = cursor.take(head.name);
  index j = make_job(head.deps, head.held, {reinterpret_cast<const char*>(name.data()), name.size()},
                     cursor.take(head.bytes));
  job& made = jobs_[j];
  std::copy(deps.begin(), deps.end(), made.dep_array());
  for (std::size_t i = 0; i < head.held; ++i) {
    object& o = find_or_make(wire::id_at(held, i));
    pin(o);
    made.held_array()[i] = &o;
  }
  made.kind = (head.flags & wire::spawn_actor) ? job_kind::construct : job_kind::task;
  made.flags = head.flags;
  made.needs_code = head.needs;
  made.attempt = head.attempt;
  made.function = head.function;
  made.id = head.id;
  made.mask = head.mask;
  made.queue = class_of(head.priority, head.needs, &needs);
  job_of_.set(made.id, j);
  if (made.kind == job_kind::construct) {
    made.actor = host_of(made.id);
    hosted_[made.actor].state = hosted::constructing;
  }
  for (std::size_t i = 0; i < head.serves; ++i) {
    wire::serve to;
    std::memcpy(&to, serves.data() + i * sizeof(to), sizeof(to));
    route(find_or_make(made.id), to);
  }
  made.missing = 1;  // not before all waits are listed
  for (wait w : waits) {
    ++jobs_[j].missing;
    bool making = job_of_.find(w.on->id) || (w.on->flags & object::calling);
    if (w.here && making) route(*w.on, {self_, 1, 0});
    --w.on->claims;
    add_waiter(*w.on, j, false);
    if (w.on->claims >= 0) take_early(*w.on);
  }
  if (--jobs_[j].missing == 0) make_ready(j);
}

// A delivery that came before its consumer is used by it now.
void agent::take_early(object& o) {
  o.claims -= 1;
  deliver(o, 1);
}

void agent::on_value(rank_t from, bytes_view record) {
  base::cursor cursor(record);
  auto head = cursor.get<wire::value_head>();
  wire::value_view v = wire::get_value(cursor);
  object* known = find(head.object);
  if (!known && head.count == 0) return;
  object& o = known ? *known : find_or_make(head.object);
  if (head.count == 0 && o.has_value()) return;
  if (v.kind == wire::value_kind::elsewhere) return note_elsewhere(o);
  keep(o);
  if (!o.has_value()) {
    o.attempt = static_cast<std::uint16_t>(head.attempt);
    if (from != head_rank) {
      o.flags |= object::from_peer;
      o.source = from;
    }
    set_value(o, v, false);
  }
  if (head.count > 0) deliver(o, head.count);
  unlend(o);
}

void agent::on_route(bytes_view record) {
  base::cursor cursor(record);
  auto head = cursor.get<wire::route_head>();
  object* known = find(head.object);
  bool making = job_of_.find(head.object) || (known && (known->flags & object::calling));
  if (making) route(known ? *known : find_or_make(head.object), {head.rank, head.count, head.count == 0 ? 1u : 0u});
}

void agent::on_recall(bytes_view record) {
  auto head = base::cursor(record).get<wire::recall_head>();
  std::vector<wire::recalled_item> items;
  const std::vector<std::uint32_t> order = class_order_;  // take_out() changes it
  for (std::uint32_t c : order) {
    for (index j = classes_[c].first; j && items.size() < head.count;) {
      index next = jobs_[j].next;
      job& at = jobs_[j];
      if (at.kind == job_kind::task) {
        wire::recalled_item item;
        item.id = at.id;
        item.attempt = at.attempt;
        items.push_back(item);
        take_out(j);
      }
      j = next;
    }
  }
  wire::recall_head answer;
  answer.type = wire::message::recalled;
  answer.count = static_cast<std::uint32_t>(items.size());
  scratch_.clear();
  scratch_.put(answer);
  scratch_.append(items.data(), items.size() * sizeof(wire::recalled_item));
  send_head(scratch_.view());
}

// The head gets a ready task back.
void agent::take_out(index j) {
  unlist_ready(j);
  // Whoever was to get the result here gets it from the next one that runs it.
  if (object* o = find(jobs_[j].id)) {
    delete std::exchange(o->routes, nullptr);
    erase_if_unused(*o);
  }
  drop_job(j);
}

// Tasks that are wider than what the actors here leave could wait for ever: the head finds another place.
void agent::give_back_unfit() {
  std::vector<wire::recalled_item> items;
  const std::vector<std::uint32_t> order = class_order_;  // take_out() changes it
  for (std::uint32_t c : order) {
    if (classes_[c].needs.cpus <= capacity_) continue;
    for (index j = classes_[c].first; j;) {
      index next = jobs_[j].next;
      if (jobs_[j].kind == job_kind::task) {
        items.push_back({jobs_[j].id, jobs_[j].attempt, 0});
        take_out(j);
      }
      j = next;
    }
  }
  if (items.empty()) return;
  wire::recall_head head;
  head.type = wire::message::recalled;
  head.flags = wire::recalled_unasked;
  head.count = static_cast<std::uint32_t>(items.size());
  base::buffer record;
  record.put(head);
  record.append(items.data(), items.size() * sizeof(wire::recalled_item));
  send_head(record.view());
}

}  // namespace rota::agent
