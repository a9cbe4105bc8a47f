#pragma once

#include <cstdint>

namespace rota::simulator {

struct throughput_result {
  double tasks_per_second;
};

// The scheduler alone: rank 0 submits `tasks` tasks int -> int and drops each ref once its value has come; `ranks`
// ranks of one slot answer each ASSIGN with DONE. Up to 200,000 tasks are in flight. What is timed is the head's work
// on all the messages: SPAWNED, ASSIGN, DONE, VALUE, COUNT. Throws std::logic_error if a task is not run exactly once.
throughput_result simulate_throughput(std::uint32_t ranks, std::uint64_t tasks);

}  // namespace rota::simulator
