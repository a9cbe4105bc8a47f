// What simulated threads do: one step of their plan at each event.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/simulator/simulation.h"

namespace rota::simulator {
namespace {

constexpr std::uint64_t driver_seed = 0x1d;
constexpr std::uint32_t row_function = 7;  // any will do

std::string name_query(object_id id) {
  std::string body(reinterpret_cast<const char*>(&id), sizeof(id));
  for (const char* text : {"alice", "counter"}) {
    auto size = static_cast<std::uint32_t>(std::strlen(text));
    body.append(reinterpret_cast<const char*>(&size), sizeof(size));
    body += text;
  }
  return body;
}

bytes_view bytes_of(const std::string& text) { return {reinterpret_cast<const std::byte*>(text.data()), text.size()}; }

// It may go into a row.
bool is_plain(const step& s) {
  return s.what == op::submit && s.deps.empty() && s.held.empty() && s.needs_code == wire::one_cpu && s.priority == 0 &&
         s.where == wire::where_kind::anywhere;
}

}  // namespace

void simulation::start_driver() {
  site& s = sites_[0];
  activity& a = s.running[++next_activity_];
  a.id = next_activity_;
  a.spec.seed = random_.next() ^ driver_seed;
  a.spec.depth = 3;
  a.spec.flags = driver;
  a.todo = make_plan(shape_, a.spec);
  network_->schedule(event_kind::step, 0, a.id, 1);
}

void simulation::hunt(site& s) {
  while (std::optional<agent::work> w = s.agent_->next()) {
    start(s, *w, 0);
    if (random_.chance(30)) break;
  }
}

void simulation::start(site& s, const agent::work& w, std::uint32_t parent) {
  note_start(s, w);
  activity& a = s.running[++next_activity_];
  a.id = next_activity_;
  a.parent = parent;
  a.job = w;
  if (parent) s.running[parent].child = a.id;
  trace(fmt::format("rank {} starts {:#x} kind {} as {}", s.rank, w.id, int(w.kind), a.id));
  if (w.kind != agent::job_kind::destroy) {
    call_order order;
    a.spec = get_spec(w.bytes, order);
    a.todo = make_plan(shape_, a.spec);
    a.hash = mixed(a.spec.seed);
    for (std::size_t n = 0; n < w.deps.size(); ++n) {
      agent::object* dep = w.deps[n];
      demand(dep->state == agent::object_state::ready, "a job starts when its arguments have values");
      check_value(s, *dep);
      a.hash = mixed(a.hash, expected_.at(dep->id)->hash);
      std::size_t opens = inside(a.spec.deps[n]).size();
      for (std::size_t i = 0; i < opens; ++i) add_register(a, dep->contains[i]);
    }
    for (agent::object* held : w.held) add_register(a, held);
    if (w.kind == agent::job_kind::call) {
      std::uint64_t& last = actor_of(w).last_call[order.caller];
      demand(order.number > last, fmt::format("calls of {:#x} run in order", order.caller));
      last = order.number;
    }
  }
  network_->schedule(event_kind::step, s.rank, a.id, random_.below(10));
}

// A handle of this rank's own to o goes into the next register.
void simulation::add_register(activity& a, agent::object* o) {
  agent::add_handle(*o);
  a.registers.push_back(o);
  a.expectations.push_back(expected_.at(o->id));
}

void simulation::step_once(site& s, std::uint32_t id) {
  auto found = s.running.find(id);
  if (found == s.running.end()) return;
  activity& a = found->second;
  if (a.awaited || a.reply || a.child) return;
  if (!a.to_check.empty()) {
    a.checking = true;
    agent::object* next = a.to_check.back();
    a.to_check.pop_back();
    return wait_for(s, a, next);
  }
  if (a.job.kind == agent::job_kind::destroy || a.at == a.todo.steps.size() || !a.failure.empty()) return finish(s, a);
  const step& todo = a.todo.steps[a.at++];
  take_step(s, a, todo);
  bool long_step = todo.what == op::pause || random_.chance(3);
  if (!a.awaited && !a.reply) {
    network_->schedule(event_kind::step, s.rank, id, long_step ? random_.below(1500) : random_.below(10));
  }
}

// Registers that stay empty because the driver went on after a failure.
void simulation::add_missing(activity& a, std::size_t count) {
  a.registers.insert(a.registers.end(), count, nullptr);
  a.expectations.insert(a.expectations.end(), count, nullptr);
}

// True if the step uses a register that is missing: it is left out.
bool simulation::leave_out(activity& a, const step& todo) {
  auto missing = [&](std::uint8_t reg) { return a.expectations[reg] == nullptr; };
  bool uses = todo.what != op::put && todo.what != op::submit && todo.what != op::create && todo.what != op::find &&
              todo.what != op::pause;
  bool lacks = (uses && missing(todo.reg)) || std::any_of(todo.deps.begin(), todo.deps.end(), missing) ||
               std::any_of(todo.held.begin(), todo.held.end(), missing) ||
               (todo.where == wire::where_kind::near && missing(static_cast<std::uint8_t>(todo.target)));
  if (lacks) add_missing(a, made_by(todo) == type::gone ? todo.opens : 1);
  return lacks;
}

void simulation::take_step(site& s, activity& a, const step& todo) {
  if (leave_out(a, todo)) return;
  switch (todo.what) {
    case op::put:
      return make_put(s, a, todo);
    case op::submit:
      return is_plain(todo) ? submit_row(s, a) : submit(s, a, todo);
    case op::create:
      return submit(s, a, todo);
    case op::call:
      return call(s, a, todo);
    case op::get:
      return wait_for(s, a, a.registers[todo.reg]);
    case op::peek:
      return s.agent_->want(*a.registers[todo.reg]);
    case op::drop:
      return drop(s, std::exchange(a.registers[todo.reg], nullptr));
    case op::kill:
      return s.agent_->kill(*a.registers[todo.reg]);
    case op::find:
      a.reply = s.agent_->ask(wire::query_kind::find_name, bytes_of(name_query(0)));
      return;
    case op::pause:
      return;
  }
}

std::vector<agent::object*> simulation::pick(activity& a, const std::vector<std::uint8_t>& regs) {
  std::vector<agent::object*> picked;
  for (std::uint8_t reg : regs) picked.push_back(a.registers[reg]);
  return picked;
}

// An object that is new, with one handle, as the client makes it.
agent::object* simulation::fresh(site& s, const expected& e) {
  agent::object& made = s.agent_->make(make_id(s.rank, ++s.sequence));
  agent::add_handle(made);
  expected_[made.id] = e;
  return &made;
}

void simulation::make_put(site& s, activity& a, const step& todo) {
  expected e = expect_step(shape_, todo, a.expectations);
  agent::object* made = fresh(s, e);
  std::vector<agent::object*> inside = pick(a, todo.held);
  agent::made_value v;
  base::buffer bytes;
  bytes.put(e->hash);
  if (e->hash % 3 == 0) bytes.put(std::array<std::uint64_t, 5>{});
  v.contains = inside;
  v.value.kind = wire::value_kind::inlined;
  v.value.size = bytes.size();
  v.value.data = bytes.view();
  if (todo.job.flags & places) {
    v.value.kind = wire::value_kind::placed;
    v.value.owner = s.rank;
    v.value.place = ++s.places;
    s.heap[s.places] = e->hash;
  }
  s.agent_->put(*made, v);
  a.registers.push_back(made);
  a.expectations.push_back(e);
}

void simulation::submit(site& s, activity& a, const step& todo) {
  expected e = expect_step(shape_, todo, a.expectations);
  agent::object* made = fresh(s, e);
  ++summary_.tasks;
  std::vector<agent::object*> deps = pick(a, todo.deps), held = pick(a, todo.held);
  base::buffer bytes;
  put_spec(bytes, todo.job, {});
  agent::submission how;
  how.function = static_cast<std::uint32_t>(todo.job.seed % 100);
  if (todo.what == op::create) how.flags = wire::spawn_actor;
  how.needs_code = todo.needs_code;
  how.needs = &todo.needs;
  how.where = todo.where;
  how.target = todo.where == wire::where_kind::near ? a.registers[todo.target]->id : todo.target;
  how.priority = todo.priority;
  how.parent = a.job.job;
  how.deps = deps;
  how.held = held;
  how.name = todo.job.seed % 7 == 0 ? "named" : "";
  how.bytes = bytes.view();
  if (todo.named) {
    // The answer is not waited for: if somebody has the name, the holder's handle is dropped as it comes.
    named_.insert(made->id);
    a.reply = s.agent_->ask(wire::query_kind::claim_name, bytes_of(name_query(made->id)));
  }
  s.agent_->submit(*made, how);
  a.registers.push_back(made);
  a.expectations.push_back(e);
}

// The step that has been begun and the plain ones right behind it.
void simulation::submit_row(site& s, activity& a) {
  std::vector<agent::object*> made;
  std::vector<base::buffer> specs;
  for (--a.at; a.at < a.todo.steps.size() && is_plain(a.todo.steps[a.at]); ++a.at) {
    const step& todo = a.todo.steps[a.at];
    a.expectations.push_back(expect_step(shape_, todo, a.expectations));
    made.push_back(fresh(s, a.expectations.back()));
    put_spec(specs.emplace_back(), todo.job, {});
    ++summary_.tasks;
  }
  std::vector<bytes_view> bytes;
  for (const base::buffer& spec : specs) bytes.push_back(spec.view());
  agent::submission alike;
  alike.function = row_function;
  alike.parent = a.job.job;
  s.agent_->submit_all(made, alike, bytes);
  a.registers.insert(a.registers.end(), made.begin(), made.end());
}

void simulation::call(site& s, activity& a, const step& todo) {
  expected e = expect_step(shape_, todo, a.expectations);
  agent::object* made = fresh(s, e);
  ++summary_.calls;
  agent::object* actor = a.registers[todo.reg];
  std::vector<agent::object*> deps = pick(a, todo.deps), held = pick(a, todo.held);
  base::buffer bytes;
  put_spec(bytes, todo.job, {mixed(s.rank, a.job.id), ++s.calls_made});
  agent::submission how;
  how.function = static_cast<std::uint32_t>(todo.job.seed % 100);
  how.parent = a.job.job;
  how.deps = deps;
  how.held = held;
  how.bytes = bytes.view();
  s.agent_->call(*made, *actor, how);
  a.registers.push_back(made);
  a.expectations.push_back(e);
}

// The answer to find or to a claim has come.
void simulation::answered(site& s, activity& a) {
  std::optional<base::buffer> answer = s.agent_->take_reply(a.reply);
  if (!answer) return;
  a.reply = 0;
  named_.insert(base::cursor(answer->view()).get<object_id>());
  network_->schedule(event_kind::step, s.rank, a.id, 1);
  auto holder = base::cursor(answer->view()).get<object_id>();
  if (holder == 0) return;
  agent::object& actor = s.agent_->adopt(holder, true);
  step how;
  how.what = op::call;
  how.job.seed = random_.next();
  how.job.flags = method;
  auto known = std::make_shared<expectation>(*expected_.at(holder));
  std::vector<expected> only = {known};
  expected e = expect_step(shape_, how, only);
  activity scratch;
  scratch.registers = {&actor};
  scratch.expectations = only;
  scratch.job = a.job;
  call(s, scratch, how);
  drop(s, scratch.registers[0]);
  a.to_check.push_back(scratch.registers[1]);
}

}  // namespace rota::simulator
