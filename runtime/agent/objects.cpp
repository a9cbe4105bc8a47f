// Objects of this rank: values, handles, pins, and what the head is told of them.
#include "runtime/agent/agent.h"

namespace rota::agent {

agent::agent(rank_t self, wire::resources offered, wire::outbox& out)
    : self_(self), offered_(offered), capacity_(offered.cpus), free_(std::move(offered)), out_(out) {
  classes_.resize(1);
  common_class_ = class_of(0, wire::one_cpu, nullptr);
}

agent::~agent() {
  objects_.for_each([](object_id, object* o) {
    if ((o->kind == wire::value_kind::inlined || o->kind == wire::value_kind::failed) && o->size > sizeof(o->small)) {
      std::free(o->large);
    }
    delete[] o->contains;
    delete o->routes;
  });
}

object& agent::find_or_make(object_id id) {
  if (object* known = objects_.find(id)) return *known;
  object& made = make(id);
  objects_.set(id, &made);
  return made;
}

object& agent::adopt(object_id id, bool counted) {
  object& o = find_or_make(id);
  hold(o);
  if (counted) {
    if (o.flags & object::counted) {
      minus_.push_back(id);  // counted twice now
    } else {
      o.flags |= object::counted;
    }
  }
  return o;
}

void agent::set_value(object& o, const wire::value_view& v, bool lasting) {
  o.size = v.size;
  o.owner = v.owner;
  if (v.kind == wire::value_kind::placed) {
    o.place = v.place;
  } else {
    std::byte* to = o.small;
    if (v.size > sizeof(o.small)) {
      to = static_cast<std::byte*>(std::malloc(v.size));
      if (!to) throw std::bad_alloc();
      o.large = to;
    }
    if (v.size > 0) std::memcpy(to, v.data.data(), v.size);
  }
  o.kind = v.kind;
  std::size_t count = wire::id_count(v.contains);
  if (count > 0) {
    o.contains = new object*[count];
    o.contained = static_cast<std::uint32_t>(count);
    for (std::size_t i = 0; i < count; ++i) {
      object& inside = find_or_make(wire::id_at(v.contains, i));
      o.contains[i] = &inside;
      if (lasting) {
        hold(inside);
      } else {
        pin(inside);
      }
    }
    if (lasting) o.flags |= object::lasting;
  }
  // Pairs with the acquire load of whoever waits in get.
  o.state.store(v.kind == wire::value_kind::failed ? object_state::failed : object_state::ready,
                std::memory_order_release);
  news_ = true;
  if (o.flags & object::any_waits) release_any(o);
}

void agent::put_contains(std::span<object* const> contains, base::buffer& to) {
  to.clear();
  for (object* inside : contains) to.put(inside->id);
}

void agent::set_made(object& o, const made_value& v, bool lasting) {
  put_contains(v.contains, scratch_ids_);
  wire::value_view view = v.value;
  view.contains = scratch_ids_.view();
  set_value(o, view, lasting);
}

void agent::put(object& fresh, const made_value& v) {
  objects_.set(fresh.id, &fresh);
  fresh.flags |= object::local;
  set_made(fresh, v, true);
}

wire::value_view agent::view_of(const object& o) {
  wire::value_view v;
  v.kind = o.kind;
  v.owner = o.owner;
  v.size = o.size;
  if (o.kind == wire::value_kind::placed) {
    v.place = o.place;
  } else {
    v.data = o.bytes();
  }
  put_contains({o.contains, o.contained}, scratch_ids_);
  v.contains = scratch_ids_.view();
  return v;
}

// A use that the head covered ends. Handles that are left need an account of their own.
// Not on loans that are left: they may come back to this very handle in a circle of calls.
void agent::unpin(object& o) {
  if (--o.pins == 0) uncovered(o);
}

void agent::unlend(object& o) {
  if (--o.loans == 0 && o.pins == 0) uncovered(o);
}

void agent::uncovered(object& o) {
  if (named(o) && !(o.flags & (object::counted | object::local))) count_plus(o);
  erase_if_unused(o);
}

void agent::count_plus(object& o) {
  o.flags |= object::counted;
  plus_.push_back(o.id);
}

void agent::count_minus(object& o) {
  o.flags &= static_cast<std::uint16_t>(~(object::counted | object::pushed));  // the push may be left out now
  minus_.push_back(o.id);
}

void agent::unhold(object& o) {
  if (drop_handle(o)) dropped(o);
}

void agent::dropped(object& o) {
  see_drops(o);
  erase_if_unused(o);
}

// Settles the account. True if nothing here uses the object any more: then nobody can come to it but who asked.
bool agent::is_unused(object& o) {
  if (!named(o) && (o.flags & object::counted)) count_minus(o);
  return !named(o) && o.pins == 0 && o.loans == 0 && o.claims == 0 && o.waiters == 0 && o.routes == nullptr &&
         !(o.flags & object::calling);
}

void agent::erase_if_unused(object& first) {
  if (!is_unused(first)) return;
  // Values inside values are worked off in a loop: a list of a million refs must not recurse. Only what is unused is in
  // `more`, so nothing comes there twice.
  std::vector<object*> more;
  for (object* at = &first;;) {
    object& o = *at;
    objects_.erase(o.id);
    if (o.kind == wire::value_kind::placed) {
      if (o.flags & object::local) release_place(o.owner, o.place);
    } else if (o.kind != wire::value_kind::none && o.size > sizeof(o.small)) {
      std::free(o.large);
    }
    if (o.flags & object::known_actor) links_.erase(o.id);
    for (std::uint32_t i = 0; i < o.contained; ++i) {
      object& inside = *o.contains[i];
      if (o.flags & object::lasting) {
        if (!drop_handle(inside)) continue;
        see_drops(inside);
      } else {
        if (--inside.pins > 0) continue;
        if (named(inside) && !(inside.flags & (object::counted | object::local))) count_plus(inside);
      }
      if (is_unused(inside)) more.push_back(&inside);
    }
    delete[] o.contains;
    delete o.routes;
    slab_.erase(&o);
    if (more.empty()) return;
    at = more.back();
    more.pop_back();
  }
}

void agent::release_place(rank_t owner, std::uint64_t place) {
  if (owner == self_) return free_place(place);
  wire::free_place_head head;
  head.place = place;
  send(owner, wire::as_bytes(head));
}

// Makes an object that only this rank knows known to the head, before another rank hears its name.
// Values in values are worked off in a loop; the head takes an outer one before what it contains.
void agent::publish(object& first) {
  std::vector<object*> open = {&first};
  while (!open.empty()) {
    object& o = *open.back();
    open.pop_back();
    if (!(o.flags & object::local)) continue;
    o.flags = static_cast<std::uint16_t>((o.flags & ~object::local) | object::counted);
    open.insert(open.end(), o.contains, o.contains + o.contained);
    base::buffer record;
    wire::publish_head head;
    head.id = o.id;
    record.put(head);
    wire::put_value(record, o.has_value() ? view_of(o) : wire::value_view{});
    send_head(record.view());
  }
}

void agent::publish_all(std::span<object* const> objects) {
  for (object* o : objects) {
    if (o->flags & object::local) publish(*o);
  }
}

void agent::ask_for(object& o) {
  if (o.has_value() || (o.flags & (object::pushed | object::pulled | object::calling))) return;
  o.flags |= object::pulled;
  wire::id_head head;
  head.type = wire::message::pull;
  head.id = o.id;
  send_head(wire::as_bytes(head));
}

void agent::add_waiter(object& o, index j, bool any) {
  index w = waiters_.add();
  waiters_[w].who = j;
  waiters_[w].any = any;
  if (any) o.flags |= object::any_waits;
  (o.last_waiter ? waiters_[o.last_waiter].next : o.waiters) = w;
  o.last_waiter = w;
}

// The value has come: those who need no delivery of their own go on.
void agent::release_any(object& o) {
  o.flags &= static_cast<std::uint16_t>(~object::any_waits);
  std::vector<index> released;
  for (index w = std::exchange(o.waiters, 0), last = std::exchange(o.last_waiter, 0); w;) {
    index next = w == last ? 0 : waiters_[w].next;
    waiters_[w].next = 0;
    if (waiters_[w].any) {
      released.push_back(waiters_[w].who);
      waiters_.erase(w);
    } else {
      (o.last_waiter ? waiters_[o.last_waiter].next : o.waiters) = w;
      o.last_waiter = w;
    }
    w = next;
  }
  for (index j : released) {
    if (--jobs_[j].missing == 0) make_ready(j);
  }
}

// A call that waits for o ends before the value has come.
void agent::forget_waiter(object& o, index j) {
  for (index w = o.waiters, before = 0; w; before = w, w = waiters_[w].next) {
    if (waiters_[w].who != j || !waiters_[w].any) continue;
    (before ? waiters_[before].next : o.waiters) = waiters_[w].next;
    if (o.last_waiter == w) o.last_waiter = before;
    return waiters_.erase(w);
  }
}

// `count` deliveries of the value arrived: each is for one task that waits, or for the next to come.
void agent::deliver(object& o, std::uint32_t count) {
  o.claims += static_cast<std::int32_t>(count);
  keep(o);
  for (; count > 0 && o.waiters; --count) {
    index w = o.waiters;
    index j = waiters_[w].who;
    o.waiters = waiters_[w].next;
    if (!o.waiters) o.last_waiter = 0;
    waiters_.erase(w);
    if (--jobs_[j].missing == 0) make_ready(j);
  }
  unlend(o);
}

void agent::route(object& o, wire::serve to) {
  if (!o.routes) o.routes = new std::vector<wire::serve>();
  if (!o.routes->empty() && o.routes->back().rank == to.rank) {
    o.routes->back().count += to.count;
    o.routes->back().copies += to.copies;
  } else {
    o.routes->push_back(to);
  }
}

// The value of o, made here, goes to everyone it is known to be for. Fills `served`; this rank's own share is left to
// the caller.
void agent::send_routes(object& o, const wire::value_view& v, std::vector<wire::serve>& served) {
  if (!o.routes) return;
  for (wire::serve to : *o.routes) {
    if (lost_.contains(to.rank) || !nodes_.reaches(v, to.rank)) continue;
    served.push_back(to);
    if (to.rank == self_) continue;
    wire::value_head head;
    head.count = to.count;
    head.object = o.id;
    head.attempt = o.attempt;
    scratch_.clear();
    scratch_.put(head);
    wire::put_value(scratch_, v);
    send(to.rank, scratch_.view());
  }
  delete std::exchange(o.routes, nullptr);
}

std::uint32_t agent::ask(wire::query_kind kind, bytes_view body) {
  wire::query_head head;
  head.kind = kind;
  head.number = ++next_query_;
  base::buffer record;
  record.put(head);
  record.append(body);
  send_head(record.view());
  return head.number;
}

std::optional<base::buffer> agent::take_reply(std::uint32_t number) {
  auto found = replies_.find(number);
  if (found == replies_.end()) return std::nullopt;
  base::buffer answer = std::move(found->second);
  replies_.erase(found);
  return answer;
}

// Increments go before whatever could make the head drop what covered them.
void agent::send_head(bytes_view record) {
  if (!plus_.empty()) send_counts({});
  ++head_sends_;
  out_.send(head_rank, record);
}

void agent::send_counts(std::span<const object_id> minus) {
  wire::count_head head;
  head.plus = static_cast<std::uint32_t>(plus_.size());
  head.minus = static_cast<std::uint32_t>(minus.size());
  scratch_counts_.clear();
  scratch_counts_.put(head);
  scratch_counts_.append(plus_.data(), plus_.size() * sizeof(object_id));
  scratch_counts_.append(minus.data(), minus.size() * sizeof(object_id));
  plus_.clear();
  ++head_sends_;
  out_.send(head_rank, scratch_counts_.view());
}

void agent::send(rank_t to, bytes_view record) {
  if (!lost_.contains(to)) out_.send(to, record);
}

void agent::flush() {
  if (plus_.empty() && minus_.empty()) return;
  send_counts(minus_);
  minus_.clear();
}

}  // namespace rota::agent
