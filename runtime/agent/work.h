#pragma once

#include <span>
#include <string_view>

#include "runtime/agent/parts.h"

// What goes into an agent and comes out of it.
namespace rota::agent {

inline constexpr rank_t head_rank = 0;

// Something for an executor to run. Valid until finished(); the spans lie in the job.
struct work {
  std::uint32_t job = 0;
  job_kind kind = job_kind::task;
  std::uint16_t attempt = 0;
  std::uint32_t function = 0;  // destroy: 0
  object_id id = 0;
  std::uint64_t mask = 0;
  std::span<object* const> deps;  // all have values
  std::span<object* const> held;
  std::string_view name;
  bytes_view bytes;
  void** instance = nullptr;  // construct: to be set; call, destroy: set
  void (**destroy)(void*) = nullptr;
};

// A value on its way into the agent: the bytes are copied, the objects inside must be held by handles meanwhile.
struct made_value {
  wire::value_view value;  // `contains` is filled in by the agent
  std::span<object* const> contains;
};

// Where a value lies on another node. A copy of it can be had again from its home; a result that moves has none.
struct source {
  rank_t rank = no_rank;
  std::uint64_t place = 0;
  rank_t home = no_rank;
  std::uint64_t home_place = 0;
};

// What submit and call are given. The argument bytes are copied.
struct submission {
  std::uint32_t function = 0;
  std::uint8_t flags = 0;  // wire::spawn_actor
  std::uint8_t needs_code = wire::one_cpu;
  wire::where_kind where = wire::where_kind::anywhere;
  const wire::resources* needs = nullptr;  // explicit_needs
  std::uint64_t target = 0;
  std::uint64_t mask = 0;
  std::int32_t priority = 0;
  std::uint32_t parent = 0;  // job of the submitting task, 0: none
  std::span<object* const> deps;
  std::span<object* const> held;
  std::string_view name;
  bytes_view bytes;
};

}  // namespace rota::agent
