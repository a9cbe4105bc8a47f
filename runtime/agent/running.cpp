// Tasks of this rank that may start, until DONE.
#include <algorithm>

#include "runtime/agent/agent.h"

namespace rota::agent {
std::uint32_t agent::class_of(std::int32_t priority, std::uint8_t code, const wire::resources* needs) {
  if (code == wire::one_cpu && priority == 0 && common_class_) return common_class_;
  wire::resources wanted;
  if (code == wire::one_cpu) wanted.cpus = wire::resources::unit;
  if (code == wire::explicit_needs) wanted = *needs;
  auto [known, fresh] =
      class_ids_.try_emplace({priority, wanted.cpus, wanted.others}, static_cast<std::uint32_t>(classes_.size()));
  if (!fresh) return known->second;
  classes_.emplace_back();
  classes_.back().priority = priority;
  classes_.back().needs = std::move(wanted);
  return known->second;
}

void agent::make_ready(index j) {
  job& at = jobs_[j];
  if (at.kind == job_kind::call) return call_ready(j);
  if (!failed_dep(j)) {
    at.ready = true;
    list_ready(j);
    if (classes_[at.queue].needs.cpus > capacity_) give_back_unfit();
    return;
  }
  failing_.push_back(j);
}

// At the end of an event: whatever it made fail. Not at once, so that whoever delivers a value has let go of it before
// the head hears that those who waited for it are done; and a loop, not a recursion as deep as a chain.
void agent::work_off_failing() {
  while (!failing_.empty() || !failing_calls_.empty()) {
    if (!failing_calls_.empty()) {
      index a = failing_calls_.back();
      failing_calls_.pop_back();
      answer_failed(a);
      continue;
    }
    index j = failing_.back();
    failing_.pop_back();
    base::buffer copy;
    copy.append(failed_dep(j)->bytes());
    fail_job(j, copy.view());
  }
}

void agent::list_ready(index j) {
  ready_class& c = classes_[jobs_[j].queue];
  if (!c.first) {
    auto higher = [this](std::uint32_t a, std::uint32_t b) { return classes_[a].priority > classes_[b].priority; };
    class_order_.insert(std::upper_bound(class_order_.begin(), class_order_.end(), jobs_[j].queue, higher),
                        jobs_[j].queue);
  }
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
  if (!c.first) std::erase(class_order_, at.queue);
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
    return start(pop(h.calls));
  }
  for (std::uint32_t id : class_order_) {
    ready_class& c = classes_[id];
    if (!c.first) continue;
    if (c.needs.fits_in(free_)) {
      index j = c.first;
      unlist_ready(j);
      c.needs.take_from(free_);
      bool holds = jobs_[j].kind == job_kind::construct && c.needs.cpus > 0;
      if (holds) capacity_ -= c.needs.cpus;
      work w = start(j);
      if (holds) give_back_unfit();
      return w;
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
  std::int64_t cpus = free_.cpus;
  for (std::uint32_t id : class_order_) {
    const ready_class& c = classes_[id];
    if (!c.first) continue;
    if (c.needs.cpus > cpus) break;  // as in next(): younger tasks wait for a wide one
    if (!c.needs.fits_in(free_)) continue;
    std::int64_t fit = c.needs.cpus > 0 ? cpus / c.needs.cpus : c.count;
    if (!c.needs.others.empty()) fit = 1;
    fit = std::min<std::int64_t>(fit, c.count);
    count += static_cast<std::uint32_t>(fit);
    cpus -= fit * c.needs.cpus;
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
  const std::byte* text = at.body.data() + (at.deps + std::size_t{at.held}) * sizeof(object*);
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
      finish_task(j, v, nanoseconds);
      break;
    case job_kind::construct:
      finish_construct(j, v, nanoseconds);
      break;
    case job_kind::call:
      finish_call(j, v);
      break;
    case job_kind::destroy:
      finish_destroy(j);
  }
  work_off_failing();
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
    keep(*result);
    send_routes(*result, value, served_);
  }
  rank_t submitter = origin_of(at.id);
  wire::done_head head;
  if ((at.flags & wire::assign_to_submitter) && submitter == self_) head.flags |= wire::done_to_submitter;
  const bool reachable = submitter != self_ && submitter != head_rank && nodes_.reaches(value, submitter);
  if ((at.flags & wire::assign_to_submitter) && reachable) {
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
  tell_blocked(head.blocked, head.blocked_cpus);
  // Refs that outlive the task are counted before the head hears that it is done.
  job_block body = std::move(at.body);
  auto** uses = reinterpret_cast<object**>(body.data());
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
  unlend(*result);
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
  if (at.counts_blocked) {
    --blocked_.count;
    blocked_.cpus -= classes_[at.queue].needs.cpus;
  }
  job_block body = std::move(at.body);
  auto** uses = reinterpret_cast<object**>(body.data());
  std::uint32_t used = at.deps + at.held;
  bool owns = at.owns, lent = at.kind == job_kind::call;
  jobs_.erase(j);
  for (std::uint32_t i = 0; i < used; ++i) {
    if (lent) {
      unlend(*uses[i]);
    } else {
      unpin(*uses[i]);
    }
    if (owns) unhold(*uses[i]);
  }
}

// Into whatever goes to the head.
void agent::tell_blocked(std::uint32_t& count, std::int64_t& cpus) {
  blocked_told_ = blocked_;
  count = blocked_.count;
  cpus = blocked_.cpus;
}

void agent::blocked(index j, bool parked) {
  job& at = jobs_[j];
  if (!at.waits) {
    at.waits = true;
    if (at.kind == job_kind::task || at.kind == job_kind::construct) {
      if (at.kind == job_kind::task) free_.cpus += classes_[at.queue].needs.cpus;
      ++blocked_.count;
      blocked_.cpus += classes_[at.queue].needs.cpus;
      at.counts_blocked = true;
    }
  }
  if (!parked || blocked_ == blocked_told_) return;
  wire::blocked_head head;
  tell_blocked(head.count, head.cpus);
  send_head(wire::as_bytes(head));
}

// The slot may be taken meanwhile: for a moment the rank then runs more than it has slots, which starts nothing new.
void agent::unblocked(index j) {
  job& at = jobs_[j];
  if (!at.waits) return;
  at.waits = false;
  if (!at.counts_blocked) return;
  at.counts_blocked = false;
  --blocked_.count;
  blocked_.cpus -= classes_[at.queue].needs.cpus;
  if (at.kind == job_kind::task) free_.cpus -= classes_[at.queue].needs.cpus;
}

}  // namespace rota::agent
