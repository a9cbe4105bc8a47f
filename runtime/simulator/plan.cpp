#include "runtime/simulator/plan.h"

#include <algorithm>
#include <optional>

namespace rota::simulator {
namespace {

using predicate = bool (*)(type);

bool can_be_held(type t) { return t != type::gone; }
bool can_be_dep(type t) { return t != type::gone && !is_actor(t) && !is_boxed(t); }
bool has_value(type t) { return t != type::gone && !is_actor(t); }
bool is_flat(type t) { return t == type::flat; }

class generator {
 public:
  generator(const shape& cluster, const job_spec& job) : cluster_(cluster), job_(job), random_(job.seed) {
    for (type dep : job.deps) {
      for (type t : inside(dep)) registers_.push_back(t);
    }
    registers_.insert(registers_.end(), job.held.begin(), job.held.end());
    given_ = registers_.size();
  }

  plan make() {
    // Calls that take long are there when their caller's rank is lost.
    if ((job_.flags & method) && random_.chance(30)) add(op::pause);
    std::uint32_t most = at_top() ? 150 : job_.depth > 0 ? 8 : 2;
    for (std::uint32_t left = random_.between(at_top() ? 10 : 0, most); left > 0; --left) add_random();
    if (at_top()) get_what_is_left();
    for (std::uint8_t i = 0; i < job_.inner; ++i) {
      std::optional<std::uint8_t> flat = pick(is_flat);
      if (!flat || random_.chance(30)) flat = add_put();
      made_.result.push_back(*flat);
    }
    return std::move(made_);
  }

 private:
  bool at_top() const { return job_.flags & driver; }

  std::optional<std::uint8_t> pick(predicate fits, bool own = false) {
    std::vector<std::uint8_t> all;
    for (std::size_t i = own ? given_ : 0; i < registers_.size(); ++i) {
      if (fits(registers_[i])) all.push_back(static_cast<std::uint8_t>(i));
    }
    if (all.empty()) return std::nullopt;
    if (random_.chance(40)) return all.back();  // chains
    return all[random_.below(static_cast<std::uint32_t>(all.size()))];
  }

  void pick_some(std::vector<std::uint8_t>& to, predicate fits, std::uint32_t most, bool own) {
    for (std::uint32_t n = random_.below(most + 1); n > 0; --n) {
      if (auto reg = pick(fits, own)) to.push_back(*reg);
    }
  }

  step& add(op what) {
    made_.steps.emplace_back();
    made_.steps.back().what = what;
    return made_.steps.back();
  }

  // Registers are numbered by a byte.
  bool full() const { return registers_.size() > 200; }

  std::uint8_t add_register(const step& s) {
    registers_.push_back(made_by(s));
    return static_cast<std::uint8_t>(registers_.size() - 1);
  }

  std::uint8_t add_put() {
    step& s = add(op::put);
    s.job.seed = random_.next();
    if (random_.chance(30)) s.job.flags = places;
    return add_register(s);
  }

  void fill(job_spec& child, step& s, bool own) {
    child.seed = random_.next();
    child.depth = static_cast<std::uint8_t>(random_.below(job_.depth));
    if (random_.chance(30)) child.inner = static_cast<std::uint8_t>(random_.between(1, 3));
    if (random_.chance(6)) child.flags |= throws;
    if (random_.chance(20)) child.flags |= places;
    pick_some(s.deps, can_be_dep, 3, own);
    pick_some(s.held, can_be_held, 2, own);
    set_types(s);
  }

  void set_types(step& s) {
    for (std::uint8_t reg : s.deps) s.job.deps.push_back(registers_[reg]);
    for (std::uint8_t reg : s.held) s.job.held.push_back(registers_[reg]);
  }

  void place(step& s) {
    s.priority = random_.chance(20) ? static_cast<std::int32_t>(random_.below(4)) - 1 : 0;
    std::uint32_t kind = random_.below(100);
    if (cluster_.cpu_actor && kind >= 5 && kind < 18) return;  // it may hold the only CPU there
    auto ranks = static_cast<std::uint32_t>(cluster_.ranks.size());
    if (kind < 5) {
      s.where = wire::where_kind::spread;
    } else if (kind < 10) {
      s.where = wire::where_kind::on_node;
      s.target = cluster_.ranks[random_.between(1, ranks - 1)].node;
    } else if (kind < 18) {
      s.where = wire::where_kind::on_rank;
      s.target = random_.between(1, ranks - 1);
    } else if (kind < 23) {
      if (auto reg = pick(has_value)) {
        s.where = wire::where_kind::near;
        s.target = *reg;
      }
    }
  }

  // Needs that not every rank can meet. Only the driver's tasks take lamps, and only such that never wait.
  void ask_for(step& s) {
    std::uint32_t kind = random_.below(100);
    s.needs.cpus = wire::resources::unit;
    if (kind < 5) {
      s.needs_code = wire::no_cpu;
      return;
    }
    if (kind < 15 && cluster_.wide && s.where == wire::where_kind::anywhere) {
      s.needs_code = wire::explicit_needs;
      s.needs.cpus = 2 * wire::resources::unit;
    } else if (kind < 25 && at_top() && !cluster_.cpu_actor && s.where == wire::where_kind::anywhere) {
      s.needs_code = wire::explicit_needs;
      s.needs.others = {{"lamp", wire::resources::unit}};
      s.job.depth = 0;
      s.job.flags |= prompt;
    } else if (kind == 25 && at_top()) {
      s.needs_code = wire::explicit_needs;
      s.needs.cpus = 99 * wire::resources::unit;
    } else if (kind == 26 && at_top()) {
      s.where = wire::where_kind::on_rank;
      s.target = 77;
    }
  }

  // Tasks that differ in their arguments only: the runner submits them in one go.
  void add_row() {
    for (std::uint32_t left = random_.between(2, 5); left > 0; --left) {
      step& s = add(op::submit);
      s.job.seed = random_.next();
      s.job.depth = static_cast<std::uint8_t>(random_.below(job_.depth));
      add_register(s);
    }
  }

  void add_submit() {
    step& s = add(op::submit);
    fill(s.job, s, job_.flags & method);
    place(s);
    ask_for(s);
    add_register(s);
  }

  void add_create() {
    step& s = add(op::create);
    fill(s.job, s, job_.flags & method);
    s.job.inner = 0;
    if (random_.chance(30)) s.job.flags |= mortal;
    if (at_top() && random_.chance(15)) s.named = true;
    s.needs_code = wire::no_cpu;
    if (cluster_.cpu_actor && at_top() && !std::exchange(cpu_actor_made_, true)) s.needs_code = wire::one_cpu;
    add_register(s);
  }

  void add_call() {
    auto actor = pick(is_actor);
    if (!actor) return;
    std::vector<std::uint8_t> stored;
    bool store = random_.chance(20);
    if (store) stored.push_back(add_put());
    step& s = add(op::call);
    s.reg = *actor;
    fill(s.job, s, job_.flags & method);
    if (store) s.held = stored;
    s.job.deps.clear();
    s.job.held.clear();
    set_types(s);
    s.job.flags |= method;
    s.job.depth = std::min<std::uint8_t>(s.job.depth, 1);
    if (store) s.job.flags |= stores;
    if (!store && random_.chance(25)) {
      s.job.flags |= fetches;
      s.job.inner = 0;
    }
    std::uint8_t result = add_register(s);
    // A method that waited for a call that it makes could wait for itself.
    if (!(job_.flags & method) || *actor >= given_) return;
    add(op::drop).reg = result;
    registers_[result] = type::gone;
  }

  void add_get(std::uint8_t reg) {
    step& s = add(op::get);
    s.reg = reg;
    s.opens = static_cast<std::uint8_t>(inside(registers_[reg]).size());
    for (type t : inside(registers_[reg])) registers_.push_back(t);
  }

  // A method gets only what it made itself: anything else may wait for a later call of the same actor.
  void add_use(op what) {
    if (auto reg = pick(what == op::drop ? can_be_held : has_value, (job_.flags & method) && what == op::get)) {
      if (what == op::get) return add_get(*reg);
      add(what).reg = *reg;
      if (what == op::drop) registers_[*reg] = type::gone;
    }
  }

  void add_random() {
    if (full()) return;
    std::uint32_t kind = random_.below(100);
    bool deep = job_.depth > 0;
    bool calm = job_.flags & prompt;
    if (kind < 5 && deep) return add_row();
    if (kind < 35 && deep) return add_submit();
    if (kind < 43) {
      if (random_.chance(30)) return add_box();
      add_put();
      return;
    }
    if (kind < 49 && deep) return add_create();
    if (kind < 65 && deep) return add_call();
    if (kind < 82 && !calm) return add_use(op::get);
    if (kind < 86 && !calm) return add_use(op::peek);
    if (kind < 95) return add_use(op::drop);
    if (kind < 96 && at_top()) {
      add(op::find);
    } else if (kind < 98) {
      auto victim = pick([](type t) { return t == type::mortal_actor; });
      if (victim) add(op::kill).reg = *victim;
    } else {
      add(op::pause);
    }
  }

  // A value that holds refs, or an actor's handle.
  void add_box() {
    std::vector<std::uint8_t> held;
    if (auto actor = pick(is_actor); actor && random_.chance(40)) {
      held.push_back(*actor);
    } else {
      pick_some(held, is_flat, 3, false);
    }
    step& s = add(op::put);
    s.job.seed = random_.next();
    s.held = held;
    set_types(s);
    add_register(s);
  }

  void get_what_is_left() {
    std::size_t all = registers_.size();
    for (std::size_t i = 0; i < all; ++i) {
      if (has_value(registers_[i]) && !full() && random_.chance(70)) add_get(static_cast<std::uint8_t>(i));
    }
  }

  const shape& cluster_;
  const job_spec& job_;
  random random_;
  std::vector<type> registers_;
  std::size_t given_ = 0;
  bool cpu_actor_made_ = false;
  plan made_;
};

}  // namespace

type made_by(const step& s) {
  switch (s.what) {
    case op::put:
      if (s.job.held.size() == 1 && is_actor(s.job.held[0])) {
        return s.job.held[0] == type::actor ? type::boxed_actor : type::boxed_mortal;
      }
      return static_cast<type>(s.held.size());
    case op::submit:
      return static_cast<type>(s.job.inner);
    case op::create:
      return s.job.flags & mortal ? type::mortal_actor : type::actor;
    case op::call:
      return s.job.flags & fetches ? type::opaque : static_cast<type>(s.job.inner);
    default:
      return type::gone;
  }
}

std::vector<type> inside(type t) {
  if (is_value(t)) return std::vector<type>(static_cast<std::size_t>(t), type::flat);
  if (is_boxed(t)) return {t == type::boxed_actor ? type::actor : type::mortal_actor};
  return {};
}

plan make_plan(const shape& cluster, const job_spec& job) { return generator(cluster, job).make(); }

void put_spec(base::buffer& to, const job_spec& job, call_order order) {
  to.put(order);
  to.put(job.seed);
  to.put(job.depth);
  to.put(job.inner);
  to.put(job.flags);
  to.put(static_cast<std::uint8_t>(job.deps.size()));
  to.put(static_cast<std::uint8_t>(job.held.size()));
  to.append(job.deps.data(), job.deps.size());
  to.append(job.held.data(), job.held.size());
}

job_spec get_spec(bytes_view bytes, call_order& order) {
  base::cursor from(bytes);
  job_spec job;
  order = from.get<call_order>();
  job.seed = from.get<std::uint64_t>();
  job.depth = from.get<std::uint8_t>();
  job.inner = from.get<std::uint8_t>();
  job.flags = from.get<std::uint8_t>();
  job.deps.resize(from.get<std::uint8_t>());
  job.held.resize(from.get<std::uint8_t>());
  for (type& t : job.deps) t = from.get<type>();
  for (type& t : job.held) t = from.get<type>();
  return job;
}

}  // namespace rota::simulator
