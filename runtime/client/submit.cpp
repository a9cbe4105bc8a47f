// Tasks, actors and puts: the compiled side of <rota/detail/submit.h>.
#include <fmt/format.h>
#include <rota/detail/submit.h>
#include <rota/error.h>

#include <algorithm>

#include "runtime/client/instance.h"

namespace rota::detail {
namespace {

// Options as the agent takes them.
struct needs {
  wire::resources amounts;
  std::uint8_t code = wire::one_cpu;
};

std::int64_t amount(const char* what, double value) {
  if (std::optional<std::int64_t> units = wire::to_units(value)) return *units;
  throw config_error(
      fmt::format("options: {} is {}, it must be a number from 0 to {:g}", what, value, wire::most_amount));
}

template <class Options>
needs needs_of(const Options& o) {
  needs n;
  n.amounts.cpus = amount("cpus", o.cpus);
  std::map<std::string, std::int64_t> others;
  if (std::int64_t gpus = amount("gpus", o.gpus)) others["gpus"] = gpus;
  if (o.memory > 0) others["memory"] = static_cast<std::int64_t>(std::min<std::size_t>(o.memory, INT64_MAX));
  for (const auto& [name, value] : o.resources) {
    if (name.empty()) throw config_error("options: a resource has no name");
    if (wire::is_own_resource(name)) {
      throw config_error(fmt::format("options: {0} is no custom resource, ask for it with options::{0}", name));
    }
    if (std::int64_t wanted = amount(("resource " + name).c_str(), value)) others[name] = wanted;
  }
  n.amounts.others.assign(others.begin(), others.end());
  bool plain = n.amounts.others.empty();
  if (plain && n.amounts.cpus == wire::resources::unit) {
    n.code = wire::one_cpu;
  } else if (plain && n.amounts.cpus == 0) {
    n.code = wire::no_cpu;
  } else {
    n.code = wire::explicit_needs;
  }
  return n;
}

template <class Options>
void apply(agent::submission& s, const Options& o, const needs& n) {
  s.needs_code = n.code;
  s.needs = &n.amounts;
  s.where = static_cast<wire::where_kind>(o.where.kind);
  s.target = o.where.target;
  s.priority = o.priority;
  s.name = o.name;
}

std::vector<object*> pointers(const std::vector<handle>& handles) {
  std::vector<object*> raw;
  raw.reserve(handles.size());
  for (const handle& h : handles) raw.push_back(h.get());
  return raw;
}

// A fresh object with one handle in it. Called with the pump.
handle fresh(process& p, agent::agent& a) {
  object& made = a.make(p.next_id());
  retain(&made);
  return handle::adopt(&made);
}

agent::submission submission_of(const registration& function, const arguments& args, std::span<object* const> deps) {
  if (process::current().job == 0) running_instance().refuse_when_ending();
  agent::submission s;
  s.function = index_of(function);
  s.mask = args.mask();
  s.deps = deps;
  s.held = args.bytes().refs();
  s.bytes = {args.bytes().data(), args.bytes().size()};
  s.parent = process::current().job;
  return s;
}

// A handle that never reached the agent is not its concern.
template <class F>
handle submit_with(process& p, F&& use) {
  handle result;
  p.visit([&](agent::agent& a) {
    result = fresh(p, a);
    use(a, *result.get());
  });
  if (p.throttled()) p.throttle();
  return result;
}

// Who has the name; claims it for `id` where nobody has and id is not 0.
handle named_actor(process& p, object_id id, const std::string& name, const char* class_name) {
  base::buffer body;
  body.put(id);
  base::put_text(body, name);
  base::put_text(body, class_name);
  base::buffer answer = p.query(id ? wire::query_kind::claim_name : wire::query_kind::find_name, body.view());
  base::cursor cursor(answer.view());
  auto holder = cursor.get<object_id>();
  if (holder == 0) return {};
  bytes_view type = cursor.rest();
  object* found = nullptr;
  p.visit([&](agent::agent& a) { found = &a.adopt(holder, true); });
  handle h = handle::adopt(found);
  if (std::string_view(reinterpret_cast<const char*>(type.data()), type.size()) != class_name) {
    throw config_error(fmt::format("the actor named \"{}\" is of another class", name));
  }
  return h;
}

}  // namespace

void arguments::add_encoded(encoded& one, bool is_array_value) {
  if (one.placed) {
    add_large(put_encoded(one));
    return;
  }
  if (is_array_value) {
    std::uint64_t bytes = one.size;
    bytes_.write(&bytes, sizeof(bytes));
  }
  bytes_.write(one.bytes.data(), one.size);
  for (object* o : one.bytes.refs()) bytes_.add_ref(o);
}

void arguments::add_large(handle h) {
  mask_ |= std::uint64_t{1} << (count_ - 1);
  deps_.push_back(std::move(h));
}

void arguments::clear() noexcept {
  bytes_.clear();
  deps_.clear();
  mask_ = 0;
  count_ = 0;
}

handle submit(const registration& function, const arguments& args, const options* how) {
  process& p = running_instance();
  std::vector<object*> deps = pointers(args.deps());
  agent::submission s = submission_of(function, args, deps);
  needs n;
  if (how) {
    n = needs_of(*how);
    apply(s, *how, n);
  }
  return submit_with(p, [&](agent::agent& a, object& result) { a.submit(result, s); });
}

void submit_all(const registration& function, std::span<const arguments> args, handle* results) {
  process& p = running_instance();
  if (args.empty()) return;
  const bool plain = std::all_of(args.begin(), args.end(),
                                 [](const arguments& a) { return a.deps().empty() && a.bytes().refs().empty(); });
  agent::submission alike = submission_of(function, args.front(), {});
  std::vector<object*> made(args.size());
  std::vector<bytes_view> bytes;
  for (const arguments& a : args) bytes.emplace_back(a.bytes().data(), a.bytes().size());
  p.visit([&](agent::agent& a) {
    const object_id first = p.next_ids(args.size());
    for (std::size_t i = 0; i < args.size(); ++i) {
      made[i] = &a.make(first + i);
      retain(made[i]);
      results[i] = handle::adopt(made[i]);
    }
    if (plain) return a.submit_all(made, alike, bytes);
    for (std::size_t i = 0; i < args.size(); ++i) {
      std::vector<object*> deps = pointers(args[i].deps());
      a.submit(*made[i], submission_of(function, args[i], deps));
    }
  });
  p.poll();  // what is done makes room for more
  if (p.throttled()) p.throttle();
}

handle create_actor(const registration& constructor, const char* class_name, const arguments& args,
                    const actor_options& how) {
  process& p = running_instance();
  std::vector<object*> deps = pointers(args.deps());
  agent::submission s = submission_of(constructor, args, deps);
  needs n = needs_of(how);
  apply(s, how, n);
  s.flags = wire::spawn_actor;
  if (how.get_if_exists && how.name.empty()) throw config_error("actor_options: get_if_exists needs a name");
  object_id id = p.next_id();
  if (!how.name.empty()) {
    handle holder = named_actor(p, id, how.name, class_name);
    if (holder && how.get_if_exists) return holder;
    if (holder) throw config_error(fmt::format("an actor named \"{}\" exists already", how.name));
  }
  handle result;
  p.visit([&](agent::agent& a) {
    object& made = a.make(id);
    retain(&made);
    result = handle::adopt(&made);
    a.submit(made, s);
  });
  return result;
}

handle find_actor(const std::string& name, const char* class_name) {
  return named_actor(running_instance(), 0, name, class_name);
}

handle call_actor(const handle& actor, const registration& method, const arguments& args, const options* how) {
  process& p = running_instance();
  if (how) needs_of(*how);  // throws for bad ones
  std::vector<object*> deps = pointers(args.deps());
  agent::submission s = submission_of(method, args, deps);
  if (how) s.name = how->name;
  return submit_with(p, [&](agent::agent& a, object& result) { a.call(result, *actor.get(), s); });
}

void kill_actor(const handle& actor) {
  running_instance().visit([&](agent::agent& a) { a.kill(*actor.get()); });
}

handle put_encoded(encoded& value) {
  process& p = running_instance();
  agent::made_value v;
  v.contains = value.bytes.refs();
  v.value.size = value.size;
  if (value.placed) {
    v.value.kind = wire::value_kind::placed;
    v.value.owner = p.setup().rank;
    v.value.place = value.where.cell;
  } else {
    v.value.kind = wire::value_kind::inlined;
    v.value.data = {value.bytes.data(), value.size};
  }
  return submit_with(p, [&](agent::agent& a, object& made) {
    a.put(made, v);
    if (std::exchange(value.placed, false)) p.store().seal(value.where.cell);
  });
}

}  // namespace rota::detail
