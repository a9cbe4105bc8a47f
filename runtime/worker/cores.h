#pragma once

#include <rota/config.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/types.h"
#include "slurm/environment.h"

namespace rota::detail {

// A core here is what Slurm and the kernel call a CPU: one hardware thread, by the number that the kernel gives it.

// The cores that this process may run on, as --cpu-bind, taskset, cpusets and mpirun's binding leave it; the first
// hardware thread of every physical core comes before any second one. Never empty. Call it before any thread is bound.
std::vector<unsigned> allowed_cores();

// How many cores the host (or the cpuset that this process lives in) has.
std::size_t host_cores();

// Binds the calling thread; where that is impossible the thread runs unbound and a debug line says so.
void bind_this_thread(unsigned core);

struct slot_choice {
  unsigned slots = 0;
  std::string_view from;  // what decided, in words
};

// --rota-cpus where it is given (rounded up: a part of a slot needs a thread too), else SLURM_CPUS_PER_TASK but at most
// the cores allowed, else the cores allowed; the latter two at most `quota`, the CPUs that a control group gives time
// for, rounded up. At least 1.
slot_choice offered_slots(const config& values, const slurm::environment& environment,
                          std::span<const unsigned> allowed, std::optional<double> quota);

// What one rank tells the others of its node.
struct rank_cores {
  rank_t rank = no_rank;
  std::string host{};
  std::vector<unsigned> allowed{};  // its allowed_cores()
  unsigned slots = 0;               // 0 for a head that runs no tasks
  bool bound = false;               // allowed.size() < host_cores(): somebody chose these cores
};

struct core_plan {
  // For each rank, in the order given, one core a slot to bind its executor threads to; empty: leave them unbound.
  std::vector<std::vector<unsigned>> cores;
  // Ranks that were told to use the same cores although there are too few of them: a warning is due for each pair. Each
  // such rank stands in at least one pair, but not in all that it could: n ranks on one core make n - 1 pairs, not n².
  std::vector<std::pair<rank_t, rank_t>> shared;
};

// Ranks of one host whose cores overlap, directly or through others, are one party. If each of a party can have `slots`
// cores for itself, it gets them; otherwise the whole party runs unbound and the kernel shares the cores out. Those of
// a party without room for all that are `bound` and overlap are reported; a rank without slots needs one core in this
// reckoning, since its main thread computes too. Ranks that nobody bound are never reported: --oversubscribe means it.
// Every rank computes the same from the same input.
core_plan plan_cores(std::span<const rank_cores> ranks);

}  // namespace rota::detail
