#pragma once

#include <set>
#include <string>

#include "runtime/scheduler/scheduler.h"
#include "runtime/simulator/network.h"
#include "runtime/simulator/site.h"

namespace rota::simulator {

// What a run did.
struct summary {
  std::uint64_t events = 0;
  std::uint64_t tasks = 0;
  std::uint64_t calls = 0;
  std::uint64_t values_checked = 0;
  std::uint64_t failures_seen = 0;
  std::uint32_t lost = 0;
  std::uint64_t copies = 0;   // of values, brought to other nodes
  std::uint64_t refused = 0;  // for lack of room
  scheduler::counters head;
};

// A head and its agents under a virtual network, with a program, delays and deaths that follow from one seed. run()
// throws std::logic_error, with the reason, when an invariant of docs/protocol.md does not hold.
class simulation {
 public:
  simulation(std::uint64_t seed, bool trace);
  ~simulation();
  summary run();

 private:
  class agent_outbox;
  class head_outbox;

  // simulation.cpp: the cluster and its events
  void make_cluster();
  void happen(const event& e);
  void deliver(rank_t from, rank_t to);
  void dispatch(rank_t from, rank_t to, bytes_view record);
  void fetch(site& s, std::uint64_t number, rank_t from, std::uint64_t place);
  void lend(site& owner, rank_t to, const wire::lend_head& asked);
  void arrive(site& s, std::uint64_t transfer);
  void drain_local(site& s);
  void after(site& s);
  void die(rank_t rank);
  void lose(rank_t rank);
  bool reachable(rank_t to) const { return sites_[to].alive; }

  // runner.cpp: what programs do
  void start_driver();
  void start(site& s, const agent::work& w, std::uint32_t parent);
  void hunt(site& s);
  void step_once(site& s, std::uint32_t id);
  void add_missing(activity& a, std::size_t count);
  bool leave_out(activity& a, const step& todo);
  void take_step(site& s, activity& a, const step& todo);
  void make_put(site& s, activity& a, const step& todo);
  void submit(site& s, activity& a, const step& todo);
  void submit_row(site& s, activity& a);
  void call(site& s, activity& a, const step& todo);
  void find(site& s, activity& a);
  void answered(site& s, activity& a);

  // waiting.cpp: what they wait for, and how they end
  void wait_for(site& s, activity& a, agent::object* o);
  bool poll(site& s, activity& a);
  void poll_all(site& s);
  void got(site& s, activity& a, agent::object& o);
  void finish(site& s, activity& a);
  void end(site& s, activity& a, const agent::made_value& v);
  void add_register(activity& a, agent::object* o);
  agent::object* fresh(site& s, const expected& e);
  void drop(site& s, agent::object* o);
  std::vector<agent::object*> pick(activity& a, const std::vector<std::uint8_t>& regs);

  std::vector<agent::object*> keep_or_fetch(site& s, activity& a);

  // checks.cpp
  void to_head(rank_t from, bytes_view record);
  void note_start(site& s, const agent::work& w);
  void check_value(const site& s, const agent::object& o);
  void check_accounts() const;
  void check_cover() const;
  void check_end();
  void demand(bool holds, const std::string& what) const;
  std::string what_waits() const;

  void trace(const std::string& text) const;
  void trace_record(rank_t from, rank_t to, bytes_view record) const;
  actor_state& actor_of(const agent::work& w) const { return *static_cast<actor_state*>(*w.instance); }

  random random_;
  bool trace_;
  shape shape_;
  std::unique_ptr<network> network_;
  std::vector<site> sites_;
  std::unique_ptr<wire::outbox> head_out_;
  std::unique_ptr<scheduler::scheduler> head_;
  std::uint32_t check_every_ = 1;
  std::uint32_t next_activity_ = 0;
  std::unordered_map<object_id, expected> expected_;
  std::unordered_map<object_id, std::pair<std::uint16_t, rank_t>> started_;  // task -> attempt, where
  std::set<object_id> called_;                                               // calls that have run
  std::set<object_id> named_;
  std::set<object_id> made_known_;  // objects that the head has been told of
  struct transfer {                 // a value on its way to another node
    std::uint64_t number = 0;
    std::uint64_t hash = 0;
  };
  std::unordered_map<std::uint64_t, transfer> transfers_;
  std::uint64_t last_transfer_ = 0;
  summary summary_;
};

summary simulate(std::uint64_t seed, bool trace);

}  // namespace rota::simulator
