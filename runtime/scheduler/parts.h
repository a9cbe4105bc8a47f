#pragma once

#include <algorithm>
#include <compare>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/scheduler/entries.h"
#include "runtime/wire/messages.h"

// What the scheduler keeps beside its entries.
namespace rota::scheduler {

// What a rank brings when it joins.
struct rank_offer {
  std::uint32_t node = 0;
  wire::resources total;  // cpus: its slots; 0 slots: it is handed no tasks
  std::string host;
};

struct counters {
  std::uint64_t spawned = 0;
  std::uint64_t assigned = 0;
  std::uint64_t committed = 0;
  std::uint64_t recalled = 0;
  std::uint64_t retried = 0;
};

// A rank, as the head sees it.
struct rank_state {
  // What every task touches lies together.
  bool joined = false;
  bool alive = false;
  bool gone = false;  // lost, and every survivor has said what it has from it
  bool recalling = false;
  bool load_changed = false;  // it is in load_changed_
  std::uint32_t node = 0;
  std::uint32_t outstanding = 0;  // tasks handed to it and not done
  std::uint32_t blocked = 0;      // of them, those that wait in get
  std::uint32_t waiting = 0;      // of them, those with arguments that are not done
  std::uint32_t deep = 0;         // depth() as of one of the last DONEs
  index first = 0, last = 0;      // the outstanding ones, oldest first
  float task_ns = 20'000;         // recent time of a task
  std::uint32_t dones = 0;
  std::uint32_t recall_pause = 0;  // events to let pass before asking again
  std::uint32_t recall_misses = 0;
  std::int64_t cpu_load = 0;      // cpus of the outstanding ones
  std::int64_t blocked_cpus = 0;  // what those that wait in get asked for
  std::int64_t waiting_load = 0;  // cpus of the waiting ones
  wire::resources room;           // total less what actors hold for life and what tasks with custom needs hold
  wire::resources total;
  std::string host;
  std::vector<std::uint32_t> pinned;  // lanes of its own with tasks, by priority

  std::uint32_t load() const { return outstanding - std::min(blocked, outstanding); }
};

// The ranks of a node that are handed tasks, also those that are lost.
struct node_ranks {
  std::vector<rank_t> all;
  std::size_t next = 0;  // where a search begins
};

struct loss {
  rank_t rank;
  std::set<rank_t> awaited;  // survivors that have not answered
  // What survivors have from it: who, and how many tasks there still wait for a delivery.
  std::unordered_map<index, std::vector<wire::serve>> reported;
};
struct shape_key {
  std::string needs;  // encoded
  std::int32_t priority;
  wire::where_kind where;
  std::uint64_t target;
  auto operator<=>(const shape_key&) const = default;
};

// The copy of a value on one node, or the fetch that brings it there.
struct node_copy {
  rank_t rank = no_rank;    // who fetches it, or in whose heap it lies
  rank_t source = no_rank;  // from whom it is fetched now
  rank_t avoid = no_rank;   // whom it could not be fetched from
  bool complete = false;
  bool from_home = false;    // a copy had left memory: from the value's own place then
  std::uint8_t breaks = 0;   // fetches of it that broke
  std::uint32_t serves = 0;  // fetches from it that are under way
  std::uint64_t place = 0;
  std::vector<wire::serve> waiting;
};

// Those of one value, at most one a node.
struct value_copies {
  std::vector<node_copy> all;
  std::uint32_t owner_serves = 0;  // fetches from the value's own place
};

}  // namespace rota::scheduler
