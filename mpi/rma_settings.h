#pragma once

#include <functional>
#include <string>

namespace rota::mpi {

// What Open MPI needs for a window over several nodes. Its defaults on many systems give none: osc/ucx, which puts
// through UCX, is left out or insists on InfiniBand. Other MPIs do not read these variables. Call before MPI_Init,
// from one thread.

using variable_lookup = std::function<const char*(const char*)>;

// Sets those variables that the user has not set.
void prepare_rma();

// Which of the user's own settings leaves nothing that works, and what to do; empty: none.
std::string rma_obstacle(const variable_lookup& lookup);

// "OMPI_MCA_osc=sm,ucx, ...", as they are.
std::string rma_settings(const variable_lookup& lookup);

// The launcher says that the ranks are on several nodes: mpirun, or else Slurm with the nodes of the step (0: none).
bool launched_on_nodes(const variable_lookup& lookup, unsigned nodes_of_step);

}  // namespace rota::mpi
