// Tasks of this rank: from submit or ASSIGN until DONE.
#include <algorithm>

#include "runtime/agent/agent.h"

namespace rota::agent {
namespace {

// Children that a rank keeps for itself while this few tasks wait; more go to the head, which may spread them.
constexpr std::uint32_t keep_most = 64;

template <class Head>
bytes_view as_bytes(const Head& head) {
  return {reinterpret_cast<const std::byte*>(&head), sizeof(head)};
}

}  // namespace

bool agent::keep_here(const submission& s) const {
  if (s.parent == 0 || ready_tasks_ >= keep_most || closing_) return false;
  if (s.where != wire::where_kind::anywhere || s.flags != 0) return false;
  if (s.needs_code == wire::explicit_needs || offered_.cpus < wire::resources::unit) return false;
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

agent::index agent::make_job(std::uint32_t deps, std::uint32_t held, std::string_view name, bytes_view bytes) {
  index j = jobs_.add();
  job& made = jobs_[j];
  std::size_t pointers = (deps + std::size_t{held}) * sizeof(object*);
  std::size_t size = pointers + name.size() + bytes.size();
  if (size > 0) {
    made.body.reset(static_cast<std::byte*>(std::malloc(size)));
    if (!made.body) throw std::bad_alloc();
    if (!name.empty()) std::memcpy(made.body.get() + pointers, name.data(), name.size());
    if (!bytes.empty()) std::memcpy(made.body.get() + pointers + name.size(), bytes.data(), bytes.size());
  }
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
    route(find_or_make(made.id), to.rank, to.count);
  }
  made.missing = 1;  // not before all waits are listed
  for (wait w : waits) {
    ++jobs_[j].missing;
    bool making = job_of_.find(w.on->id) || (w.on->flags & object::calling);
    if (w.here && making) route(*w.on, self_, 1);
    --w.on->claims;
    add_waiter(*w.on, j);
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
  if (!o.has_value()) {
    o.attempt = static_cast<std::uint16_t>(head.attempt);
    if (from != head_rank) {
      o.flags |= object::from_peer;
      o.source = from;
    }
    set_value(o, v, false);
  }
  if (head.count > 0) deliver(o, head.count);
}

void agent::on_route(bytes_view record) {
  base::cursor cursor(record);
  auto head = cursor.get<wire::route_head>();
  object* known = find(head.object);
  bool making = job_of_.find(head.object) || (known && (known->flags & object::calling));
  if (making) route(known ? *known : find_or_make(head.object), head.rank, head.count);
}

void agent::on_recall(bytes_view record) {
  auto head = base::cursor(record).get<wire::recall_head>();
  std::vector<wire::recalled_item> items;
  for (std::uint32_t c : class_order_) {
    for (index j = classes_[c].first; j && items.size() < head.count;) {
      index next = jobs_[j].next;
      job& at = jobs_[j];
      if (at.kind == job_kind::task) {
        wire::recalled_item item;
        item.id = at.id;
        item.attempt = at.attempt;
        items.push_back(item);
        unlist_ready(j);
        // Whoever was to get the result here gets it from the next one that runs it.
        if (object* o = find(at.id)) {
          delete std::exchange(o->routes, nullptr);
          erase_if_unused(*o);
        }
        drop_job(j);
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

std::uint32_t agent::class_of(std::int32_t priority, std::uint8_t code, const wire::resources* needs) {
  if (code == wire::one_cpu && priority == 0 && common_class_) return common_class_;
  wire::resources wanted;
  if (code == wire::one_cpu) wanted.cpus = wire::resources::unit;
  if (code == wire::explicit_needs) wanted = *needs;
  for (std::uint32_t c : class_order_) {
    if (classes_[c].priority == priority && classes_[c].needs == wanted) return c;
  }
  auto c = static_cast<std::uint32_t>(classes_.size());
  classes_.emplace_back();
  classes_[c].priority = priority;
  classes_[c].needs = wanted;
  auto before = std::find_if(class_order_.begin(), class_order_.end(),
                             [&](std::uint32_t other) { return classes_[other].priority < priority; });
  class_order_.insert(before, c);
  return c;
}

void agent::make_ready(index j) {
  job& at = jobs_[j];
  if (at.orphan) return drop_job(j);
  if (const object* failed = failed_dep(j)) {
    if (at.kind == job_kind::call) {
      at.ready = true;
      list_actor(at.actor);
      return;
    }
    bytes_view failure = failed->bytes();
    base::buffer copy;
    copy.append(failure);
    return fail_job(j, copy.view());
  }
  at.ready = true;
  if (at.kind == job_kind::call) return list_actor(at.actor);
  list_ready(j);
}

void agent::list_ready(index j) {
  ready_class& c = classes_[jobs_[j].queue];
  jobs_[j].previous = c.last;
  jobs_[j].next = 0;
  (c.last ? jobs_[c.last].next : c.first) = j;
  c.last = j;
  ++c.count;
  ++ready_tasks_;
}

void agent::unlist_ready(index j) {
  job& at = jobs_[j];
  ready_class& c = classes_[at.queue];
  (at.previous ? jobs_[at.previous].next : c.first) = at.next;
  (at.next ? jobs_[at.next].previous : c.last) = at.previous;
  at.previous = at.next = 0;
  --c.count;
  --ready_tasks_;
  if (!at.parent) return;
  (at.previous_child ? jobs_[at.previous_child].next_child : jobs_[at.parent].children) = at.next_child;
  if (at.next_child) jobs_[at.next_child].previous_child = at.previous_child;
  at.previous_child = at.next_child = 0;
  at.parent = 0;
}

std::optional<work> agent::next() {
  if (!ready_actors_.empty()) {
    index a = ready_actors_.front();
    ready_actors_.pop_front();
    hosted& h = hosted_[a];
    h.listed = false;
    h.busy = true;
    index j = h.calls.front();
    h.calls.pop_front();
    return start(j);
  }
  for (std::uint32_t id : class_order_) {
    ready_class& c = classes_[id];
    if (!c.first) continue;
    if (c.needs.fits_in(free_)) {
      index j = c.first;
      unlist_ready(j);
      c.needs.take_from(free_);
      return start(j);
    }
    // CPUs come free sooner or later: younger tasks must not take them away one by one from a wide one.
    if (c.needs.cpus > free_.cpus) break;
  }
  return std::nullopt;
}

std::optional<work> agent::next_child(index parent) {
  index j = jobs_[parent].children;
  if (!j || !classes_[jobs_[j].queue].needs.fits_in(free_)) return std::nullopt;
  unlist_ready(j);
  classes_[jobs_[j].queue].needs.take_from(free_);
  return start(j);
}

std::uint32_t agent::runnable() const {
  auto count = static_cast<std::uint32_t>(ready_actors_.size());
  std::int64_t slots = free_.cpus / wire::resources::unit;
  if (slots > 0) count += std::min(ready_tasks_, static_cast<std::uint32_t>(slots));
  // Tasks that need no CPU at all.
  if (slots <= 0) {
    for (std::uint32_t id : class_order_) {
      if (classes_[id].first && classes_[id].needs.fits_in(free_)) return count + 1;
    }
  }
  return count;
}

work agent::start(index j) {
  job& at = jobs_[j];
  at.started = true;
  at.ready = false;
  work w;
  w.job = j;
  w.kind = at.kind;
  w.attempt = at.attempt;
  w.function = at.function;
  w.id = at.id;
  w.mask = at.mask;
  w.deps = {at.dep_array(), at.deps};
  w.held = {at.held_array(), at.held};
  const std::byte* text = at.body.get() + (at.deps + std::size_t{at.held}) * sizeof(object*);
  w.name = {reinterpret_cast<const char*>(text), at.name};
  w.bytes = {text + at.name, at.bytes};
  if (at.actor) {
    w.instance = &hosted_[at.actor].instance;
    w.destroy = &hosted_[at.actor].destroy;
  }
  return w;
}

void agent::finished(index j, const made_value& v, std::uint32_t nanoseconds) {
  switch (jobs_[j].kind) {
    case job_kind::task:
      classes_[jobs_[j].queue].needs.give_back_to(free_);
      return finish_task(j, v, nanoseconds);
    case job_kind::construct:
      return finish_construct(j, v, nanoseconds);
    case job_kind::call:
      return finish_call(j, v);
    case job_kind::destroy:
      return finish_destroy(j);
  }
}

// Sends the result to whoever waits for it, then DONE to the head, then lets the arguments go.
void agent::finish_task(index j, const made_value& v, std::uint32_t nanoseconds) {
  job& at = jobs_[j];
  object* result = find(at.id);
  publish_all(v.contains);
  put_contains(v.contains, scratch_ids_);
  wire::value_view value = v.value;
  value.contains = scratch_ids_.view();
  served_.clear();
  if (result) {
    result->attempt = at.attempt;
    pin(*result);
    send_routes(*result, value, served_);
  }
  rank_t submitter = origin_of(at.id);
  wire::done_head head;
  if ((at.flags & wire::assign_to_submitter) && submitter == self_) head.flags |= wire::done_to_submitter;
  if ((at.flags & wire::assign_to_submitter) && submitter != self_ && submitter != head_rank) {
    head.flags |= wire::done_to_submitter;
    wire::value_head copy;
    copy.object = at.id;
    copy.attempt = at.attempt;
    scratch_.clear();
    scratch_.put(copy);
    wire::put_value(scratch_, value);
    send(submitter, scratch_.view());
  }
  std::uint32_t own = 0;
  for (wire::serve to : served_) own += to.rank == self_ ? to.count : 0;
  head.attempt = at.attempt;
  head.nanoseconds = nanoseconds;
  head.id = at.id;
  head.served = static_cast<std::uint32_t>(served_.size());
  head.blocked = blocked_;
  blocked_told_ = blocked_;
  // Refs that outlive the task are counted before the head hears that it is done.
  std::unique_ptr<std::byte, block> body = std::move(at.body);
  auto** uses = reinterpret_cast<object**>(body.get());
  std::uint32_t used = at.deps + at.held;
  at.deps = at.held = 0;
  drop_job(j);
  for (std::uint32_t i = 0; i < used; ++i) unpin(*uses[i]);
  scratch_.clear();
  scratch_.put(head);
  scratch_.append(served_.data(), served_.size() * sizeof(wire::serve));
  wire::put_value(scratch_, value);
  send_head(scratch_.view());
  if (!result) return;
  if (!result->has_value()) set_value(*result, value, false);
  if (own > 0) deliver(*result, own);
  unpin(*result);
}

void agent::fail_job(index j, bytes_view failure) {
  made_value v;
  v.value = wire::failed_value(failure);
  if (jobs_[j].kind == job_kind::construct) return finish_construct(j, v, 0);
  finish_task(j, v, 0);
}

const object* agent::failed_dep(index j) const {
  const job& at = jobs_[j];
  for (std::uint32_t i = 0; i < at.deps; ++i) {
    if (at.dep_array()[i]->kind == wire::value_kind::failed) return at.dep_array()[i];
  }
  return nullptr;
}

void agent::drop_job(index j) {
  job& at = jobs_[j];
  for (index c = at.children; c;) {
    index next = jobs_[c].next_child;
    jobs_[c].parent = jobs_[c].previous_child = jobs_[c].next_child = 0;
    c = next;
  }
  if (at.kind == job_kind::task || at.kind == job_kind::construct) job_of_.erase(at.id);
  if (at.counts_blocked) --blocked_;
  for (std::uint32_t i = 0; i < at.deps; ++i) unpin(*at.dep_array()[i]);
  for (std::uint32_t i = 0; i < at.held; ++i) unpin(*at.held_array()[i]);
  jobs_.erase(j);
}

void agent::blocked(index j, bool parked) {
  job& at = jobs_[j];
  if (!at.waits) {
    at.waits = true;
    if (at.kind == job_kind::task) {
      free_.cpus += classes_[at.queue].needs.cpus;
      ++blocked_;
      at.counts_blocked = true;
    }
  }
  if (!parked || blocked_ == blocked_told_) return;
  blocked_told_ = blocked_;
  wire::recall_head head;
  head.type = wire::message::blocked;
  head.count = blocked_;
  send_head(as_bytes(head));
}

// The slot may be taken meanwhile: for a moment the rank then runs more than it has slots, which starts nothing new.
void agent::unblocked(index j) {
  job& at = jobs_[j];
  if (!at.waits) return;
  at.waits = false;
  if (!at.counts_blocked) return;
  at.counts_blocked = false;
  --blocked_;
  free_.cpus -= classes_[at.queue].needs.cpus;
}

}  // namespace rota::agent
