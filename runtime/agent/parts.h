#pragma once

#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/agent/object.h"
#include "runtime/wire/resources.h"

// What an agent consists of; nobody else's business.
namespace rota::agent {

using index = std::uint32_t;  // in a pool; 0: none

enum class job_kind : std::uint8_t { task, construct, call, destroy };

// Pointers and bytes of a job. Few of them lie in the job itself: a task of an int or two costs no allocation.
// Move-only.
class job_block {
 public:
  job_block() = default;
  explicit job_block(std::size_t size) {
    if (size <= sizeof(inside_)) return;
    outside_ = static_cast<std::byte*>(std::malloc(size));
    if (!outside_) throw std::bad_alloc();
  }
  job_block(job_block&& other) noexcept : outside_(std::exchange(other.outside_, nullptr)) {
    std::memcpy(inside_, other.inside_, sizeof(inside_));
  }
  job_block& operator=(job_block&& other) noexcept {
    std::swap(outside_, other.outside_);
    std::memcpy(inside_, other.inside_, sizeof(inside_));
    return *this;
  }
  ~job_block() { std::free(outside_); }

  std::byte* data() { return outside_ ? outside_ : inside_; }
  const std::byte* data() const { return outside_ ? outside_ : inside_; }

 private:
  std::byte* outside_ = nullptr;
  alignas(void*) std::byte inside_[32] = {};
};
struct job {
  job_kind kind = job_kind::task;
  bool ready = false, started = false, waits = false, counts_blocked = false;
  bool owns = false;       // a call whose caller is lost: its refs have handles and accounts of this rank
  std::uint8_t flags = 0;  // wire::assign_to_submitter, wire::spawn_actor
  std::uint8_t needs_code = wire::one_cpu;
  std::uint16_t attempt = 0;
  std::uint32_t function = 0;
  object_id id = 0;
  std::uint64_t mask = 0;
  std::uint32_t deps = 0, held = 0, name = 0, bytes = 0;
  job_block body;  // deps, held, name, bytes
  std::uint32_t missing = 0;
  std::uint32_t queue = 0;  // its ready class
  index previous = 0, next = 0;
  index parent = 0, children = 0, previous_child = 0, next_child = 0;
  index actor = 0;
  rank_t caller = no_rank;  // call: the rank, and the task there
  object_id calling_task = 0;
  std::uint64_t head_sends = 0;  // call: messages to the head when it came
  object** dep_array() { return reinterpret_cast<object**>(body.data()); }
  object* const* dep_array() const { return reinterpret_cast<object* const*>(body.data()); }
  object** held_array() { return dep_array() + deps; }
};
struct ready_class {
  std::int32_t priority = 0;
  wire::resources needs;
  index first = 0, last = 0;
  std::uint32_t count = 0;
};
struct waiter {
  index who = 0;
  index next = 0;
  bool any = false;  // goes on with any copy of the value: a call. Else it takes a delivery of its own
};
// Tasks that wait in get, and what they asked for in ten-thousandths of a CPU: they need no slot.
struct blocked_tasks {
  std::uint32_t count = 0;
  std::int64_t cpus = 0;
  bool operator==(const blocked_tasks&) const = default;
};
struct job_list {  // linked by job::next
  index first = 0, last = 0;
};
// Calls that run in order: those of one task, call or program on one rank.
using call_line = std::pair<rank_t, object_id>;
struct hosted {
  object_id id = 0;
  enum : std::uint8_t { announced, constructing, alive, over } state = announced;
  bool busy = false, listed = false, ending = false;
  void* instance = nullptr;
  void (*destroy)(void*) = nullptr;
  job_list calls;                         // that may run, in this order
  std::map<call_line, job_list> stalled;  // by caller: those behind one whose arguments have not come
  wire::resources held;
  base::buffer failure;  // not empty: what calls get
};
struct pending_call {
  object_id id = 0;
  rank_t to = no_rank;
  object* result = nullptr;
  object* actor = nullptr;
  bool returned = false;
  std::vector<object*> refs;  // held until the other side has been counted
};
struct known_actor {
  rank_t rank = no_rank;
  std::uint32_t incarnation = 0;
  std::uint64_t sequence = 0;
  bool asked = false;
  base::buffer failure;              // not empty: calls fail with it
  std::vector<base::buffer> unsent;  // calls that wait to hear where it is
};

// Which ranks share a store with this one.
struct node_map {
  rank_t self = 0;
  std::vector<std::uint32_t> nodes;  // by rank; empty: all are on one

  bool far(rank_t rank) const { return !nodes.empty() && nodes[rank] != nodes[self]; }
  // The value may go to that rank as it is: what lies in a store only to ranks of this node.
  bool reaches(const wire::value_view& v, rank_t to) const { return v.kind != wire::value_kind::placed || !far(to); }
};

// A value of another node on its way here.
struct fetching {
  object_id object = 0;
  rank_t from = no_rank;  // the result of a call: the actor's rank, its message, and whether a SETTLE has come for it
  base::buffer returned;
  bool settled = false;
};
struct fetch_book {
  std::unordered_map<std::uint64_t, fetching> by_number;
  std::unordered_map<object_id, std::uint64_t> results;  // of calls
  std::uint64_t last = 0;
};

}  // namespace rota::agent
