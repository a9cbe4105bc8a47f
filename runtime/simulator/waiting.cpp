// How simulated threads wait, as worker/pump.cpp does, and how they end, as worker/executors.cpp does.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/simulator/simulation.h"

namespace rota::simulator {
namespace {

bool settled(const agent::object& o) { return o.state.load() > agent::object_state::elsewhere; }

constexpr std::uint32_t run_times[] = {300, 3'000, 50'000, 2'000'000};

}  // namespace

void simulation::wait_for(site& s, activity& a, agent::object* o) {
  a.awaited = o;
  s.agent_->want(*o);
  if (a.job.job && !settled(*o)) s.agent_->blocked(a.job.job, false);
  poll(s, a);
}

// True if the activity has gone on.
bool simulation::poll(site& s, activity& a) {
  if (a.reply) return answered(s, a), a.reply == 0;
  if (!a.awaited || a.child) return false;
  if (settled(*a.awaited)) {
    if (a.job.job) s.agent_->unblocked(a.job.job);
    got(s, a, *std::exchange(a.awaited, nullptr));
    network_->schedule(event_kind::step, s.rank, a.id, random_.below(5));
    return true;
  }
  if (!a.job.job) return false;
  if (random_.chance(80)) {
    if (std::optional<agent::work> w = s.agent_->next_child(a.job.job)) {
      start(s, *w, a.id);
      return true;
    }
  }
  s.agent_->blocked(a.job.job, true);
  return false;
}

void simulation::poll_all(site& s) {
  std::vector<std::uint32_t> ids;
  for (const auto& [id, a] : s.running) {
    if (a.awaited || a.reply) ids.push_back(id);
  }
  for (std::uint32_t id : ids) {
    auto found = s.running.find(id);
    if (found != s.running.end()) poll(s, found->second);
  }
}

void simulation::got(site& s, activity& a, agent::object& o) {
  check_value(s, o);
  if (std::exchange(a.checking, false)) return drop(s, &o);
  if (o.state == agent::object_state::failed) {
    if (a.spec.flags & driver) return add_missing(a, a.todo.steps[a.at - 1].opens);
    a.failure.clear();
    a.failure.append(o.bytes());
    return;
  }
  a.hash = mixed(a.hash, expected_.at(o.id)->hash);
  bool opens = expected_.at(o.id)->inside.size() == o.contained;
  for (std::uint32_t i = 0; i < o.contained; ++i) {
    if (opens) {
      add_register(a, o.contains[i]);
    } else if (a.spec.flags & driver) {
      agent::add_handle(*o.contains[i]);  // what an actor had stored: only looked at
      a.to_check.push_back(o.contains[i]);
    }
  }
}

// Refs that a call leaves in the actor, or takes from it.
std::vector<agent::object*> simulation::keep_or_fetch(site& s, activity& a) {
  std::vector<agent::object*> fetched;
  if (!(a.spec.flags & method)) return fetched;
  actor_state& actor = actor_of(a.job);
  if (a.spec.flags & stores) {
    agent::object* o = a.job.held[0];
    agent::add_handle(*o);
    actor.stored.push_back(o);
    if (actor.stored.size() > 4) {
      drop(s, actor.stored.front());
      actor.stored.erase(actor.stored.begin());
    }
  }
  if (a.spec.flags & fetches) {
    for (agent::object* o : actor.stored) {
      agent::add_handle(*o);
      fetched.push_back(o);
    }
  }
  return fetched;
}

void simulation::finish(site& s, activity& a) {
  agent::made_value v;
  base::buffer bytes;
  std::vector<agent::object*> inside;
  std::vector<agent::object*> fetched;
  if (a.failure.empty() && (a.spec.flags & throws)) {
    a.failure = wire::encode({wire::failure_kind::task, fmt::format("{:#x} throws", a.job.id), {}});
  }
  if (a.job.kind == agent::job_kind::destroy) {
    for (agent::object* o : actor_of(a.job).stored) drop(s, o);
    actor_of(a.job).stored.clear();
  } else if (!a.failure.empty()) {
    v.value = wire::failed_value(a.failure.view());
  } else {
    fetched = keep_or_fetch(s, a);
    bytes.put(a.hash);
    if (a.hash % 3 == 0) bytes.put(std::array<std::uint64_t, 5>{});
    inside = (a.spec.flags & fetches) ? fetched : pick(a, a.todo.result);
    v.contains = inside;
    v.value.kind = wire::value_kind::inlined;
    v.value.size = bytes.size();
    v.value.data = bytes.view();
    if ((a.spec.flags & places) && a.job.job) {
      v.value.kind = wire::value_kind::placed;
      v.value.owner = s.rank;
      v.value.place = ++s.places;
      s.heap[s.places] = a.hash;
    }
  }
  if (a.job.kind == agent::job_kind::construct && a.failure.empty()) {
    s.actors.push_back(std::make_unique<actor_state>());
    *a.job.instance = s.actors.back().get();
  }
  end(s, a, v);
  for (agent::object* o : fetched) drop(s, o);
}

// Locals that are not part of the result may go before the agent hears of it, or after.
void simulation::end(site& s, activity& a, const agent::made_value& v) {
  auto in_result = [&](const agent::object* o) {
    return std::find(v.contains.begin(), v.contains.end(), o) != v.contains.end();
  };
  for (agent::object*& o : a.registers) {
    if (o && !in_result(o) && random_.chance(50)) drop(s, std::exchange(o, nullptr));
  }
  trace(fmt::format("rank {} ends {:#x} as {}{}", s.rank, a.job.id, a.id, a.failure.empty() ? "" : ", failed"));
  if (a.job.job) s.agent_->finished(a.job.job, v, run_times[random_.below(4)]);
  for (agent::object* o : a.registers) {
    if (o) drop(s, o);
  }
  std::uint32_t parent = a.parent;
  s.running.erase(a.id);
  if (parent) s.running.at(parent).child = 0;
}

// The agent hears of the last handle's going later.
void simulation::drop(site& s, agent::object* o) {
  if (!agent::drop_handle(*o)) return;
  if (random_.chance(50)) return s.agent_->dropped(*o);
  s.dropping.push_back(o);
  network_->schedule(event_kind::drop, s.rank, reinterpret_cast<std::uint64_t>(o), random_.below(20));
}

}  // namespace rota::simulator
