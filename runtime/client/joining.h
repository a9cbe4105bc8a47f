#pragma once

#include <rota/config.h>

#include <string>
#include <vector>

#include "mpi/world.h"
#include "runtime/client/report.h"
#include "runtime/scheduler/scheduler.h"
#include "runtime/worker/process.h"

namespace rota::detail {

// What this rank was told, before it knows the others: the settings, or why they are not accepted.
struct joining_result {
  config values;
  std::vector<shown_setting> shown;
  std::string help;
  std::string error;
};
joining_result read_settings(int& argc, char**& argv, const config& base);

// What all ranks agree on.
struct join_plan {
  config values;
  rank_setup setup;
  std::vector<scheduler::rank_offer> offers;  // by rank
  std::size_t store_bytes = 0;
  std::size_t least_store = 0, most_store = 0;  // of all nodes
  std::size_t usable_bytes = 0;                 // of this node's memory
  double slots = 0;                             // of all ranks
  std::string warning;                          // two ranks on the same cores
  start_facts facts;
};

// Exchanges what every rank offers. Collective. Throws on every rank alike: config_error where one has bad settings,
// join_refused where executables differ.
join_plan agree(const mpi::world& world, joining_result mine);

// For a process that ends because it may not join: leaves MPI if it can, for a few seconds at most; then it ends with
// status 2, since a rank may have gone without it.
void finalize_quietly() noexcept;

}  // namespace rota::detail
