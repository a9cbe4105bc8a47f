#pragma once

#include <cstring>
#include <optional>
#include <vector>

#include "runtime/agent/agent.h"
#include "tests/unit/machines.h"

// One agent, whose messages are looked at: the fixture of its tests.
namespace machines {

using rota::make_id;
using rota::agent::agent;
using rota::agent::job_kind;
using rota::agent::object;
using rota::agent::object_state;
using rota::agent::submission;
using rota::agent::work;

constexpr rank_t self = 3;

inline wire::resources slots(std::int64_t n) {
  wire::resources r;
  r.cpus = n * wire::resources::unit;
  return r;
}

class one_rank : public testing::Test {
 protected:
  one_rank() {
    agent_.free_place = [this](std::uint64_t place) { freed_.push_back(place); };
  }
  void get(rank_t from, const buffer& record) { ASSERT_TRUE(agent_.receive(from, record.view())); }
  object* fresh() {
    object& made = agent_.make(make_id(self, ++sequence_));
    rota::agent::add_handle(made);
    return &made;
  }
  object* put() {
    object* o = fresh();
    agent_.put(*o, {number(value_), {}});
    return o;
  }
  void drop(object* o) {
    if (rota::agent::drop_handle(*o)) agent_.dropped(*o);
  }
  void finish(const work& w) { agent_.finished(w.job, {number(value_), {}}, 1000); }
  void fail(const work& w) {
    buffer why = wire::encode({wire::failure_kind::task, "boom", {}});
    agent_.finished(w.job, {wire::failed_value(why.view()), {}}, 1000);
  }
  buffer call(object_id id, std::uint64_t caller, std::vector<object_id> deps = {}) {
    buffer record;
    wire::call_head head;
    head.actor = actor_;
    head.id = id;
    head.caller = caller;
    head.deps = static_cast<std::uint32_t>(deps.size());
    record.put(head);
    record.append(deps.data(), deps.size() * sizeof(object_id));
    return record;
  }
  buffer actor_on(rank_t rank) const {
    buffer record;
    wire::actor_at_head at;
    at.actor = actor_;
    at.rank = rank;
    record.put(at);
    wire::put_value(record, {});
    return record;
  }
  static buffer wide(object_id id, std::int64_t cpus) {
    buffer record = assign(id);
    wire::assign_head head;
    std::memcpy(&head, record.data(), sizeof(head));
    head.needs = wire::explicit_needs;
    std::memcpy(record.data(), &head, sizeof(head));
    wire::put_resources(record, slots(cpus));
    return record;
  }
  void make_actor() {
    get(0, assign(actor_, {}, {}, wire::spawn_actor));
    std::optional<work> w = agent_.next();
    ASSERT_TRUE(w && w->kind == job_kind::construct);
    finish(*w);
    out_.take();
  }

  post out_;
  std::vector<std::uint64_t> freed_;
  agent agent_{self, slots(2), out_};
  std::uint64_t sequence_ = 0;
  const int value_ = 42;
  const object_id a_ = make_id(0, 1), b_ = make_id(0, 2), c_ = make_id(0, 3), actor_ = make_id(0, 9);
};

}  // namespace machines
