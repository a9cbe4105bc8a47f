#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/memory.h"
#include "runtime/base/types.h"
#include "runtime/client/settings.h"

namespace rota::detail {

// What was decided for this rank when it started, and from what. Does not change while the session runs.
struct start_facts {
  rank_t rank = 0;
  std::vector<std::uint32_t> nodes;  // of each rank
  std::string host;

  std::size_t cores = 0;            // that this rank may run on
  std::optional<double> cpu_quota;  // CPUs that its control group gives time for
  unsigned slots = 0;
  std::string slots_from;

  base::memory_bounds memory;
  std::optional<std::size_t> shm_total, shm_free;  // of /dev/shm, in bytes; free before the store was made
  std::size_t store_bytes = 0;                     // of the node
  std::string store_from;                          // of a node's lowest rank, which decides

  std::string fabric = "shared";  // to ranks of other nodes
  std::string fabric_why;         // how it was chosen
  std::string devices;            // that it was given; empty where it takes what it finds
  std::vector<shown_setting> settings;
};

// How many pairs of ranks talk by which link.
struct pair_counts {
  std::size_t shared = 0;  // on one node
  std::size_t far = 0;     // by the fabric
};
pair_counts count_pairs(const std::vector<std::uint32_t>& nodes);

// REQUIRES: a session runs here. Throws config_error otherwise. Any thread.
const start_facts& facts_of_start();

// By which transports and devices this rank reaches `other`, as "tcp/eth0"; empty on its own node, and where the fabric
// does not tell. REQUIRES: a session runs here. Any thread.
std::string way_to(rank_t other);

// What this build of the library is, and what it found to run with.
struct build_facts {
  std::string version, type, compiler, sanitizers;
  std::string mpi;  // its name and version
  std::string ucx;  // its version; empty in builds without it
};
build_facts facts_of_build();

}  // namespace rota::detail
