#pragma once

#include <deque>
#include <map>
#include <memory>
#include <unordered_map>

#include "runtime/agent/agent.h"
#include "runtime/simulator/oracle.h"

namespace rota::simulator {

// A simulated actor: the refs it keeps, and who called it last with which number.
struct actor_state {
  std::vector<agent::object*> stored;
  std::map<std::uint64_t, std::uint64_t> last_call;
};

// A program's thread: the driver, or a job that an executor runs.
struct activity {
  std::uint32_t id = 0;
  std::uint32_t parent = 0;  // the activity on whose stack it runs
  std::uint32_t child = 0;   // runs on its stack
  agent::work job;           // job.job 0: the driver
  job_spec spec;
  plan todo;
  std::size_t at = 0;  // of todo.steps
  std::uint64_t hash = 0;
  std::vector<agent::object*> registers;  // each a handle, null: dropped
  std::vector<expected> expectations;     // of the registers
  agent::object* awaited = nullptr;       // it waits in get
  std::vector<agent::object*> to_check;   // handles to get and compare after `awaited`
  bool checking = false;                  // `awaited` is one of those
  std::uint32_t reply = 0;                // it waits for this answer
  base::buffer failure;                   // not empty: what the job ends with
};

// One simulated rank.
struct site {
  class to_network;

  rank_t rank = 0;
  bool alive = true;
  std::unique_ptr<wire::outbox> outbox;
  std::unique_ptr<agent::agent> agent_;
  std::map<std::uint32_t, activity> running;
  std::deque<base::buffer> to_head, to_agent;  // messages to itself
  std::vector<std::unique_ptr<actor_state>> actors;
  std::unordered_map<std::uint64_t, std::uint64_t> heap;  // place -> hash
  std::uint64_t places = 0;
  std::uint64_t sequence = 0;
  std::uint64_t calls_made = 0;
  bool hunt_waits = false, flush_waits = false;
  std::vector<agent::object*> dropping;  // drop_handle said "last", the agent has not heard
};

}  // namespace rota::simulator
