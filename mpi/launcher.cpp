#include "mpi/launcher.h"

#include <array>
#include <cstdlib>

namespace rota::mpi {
namespace {

constexpr const char* mpirun_variable = "OMPI_COMM_WORLD_SIZE";

// Set by Open MPI's mpirun (and MPICH's Hydra), by srun --mpi=pmix, and by srun --mpi=pmi2.
constexpr std::array launcher_variables = {mpirun_variable, "PMIX_RANK", "PMI_RANK", "PMI_FD", "PMI_SIZE"};

}  // namespace

bool has_launcher() {
  for (const char* variable : launcher_variables) {
    if (std::getenv(variable) != nullptr) return true;
  }
  return false;
}

bool under_mpirun() { return std::getenv(mpirun_variable) != nullptr; }

bool under_old_pmi() {
  return !under_mpirun() && std::getenv("PMIX_RANK") == nullptr && std::getenv("PMI_RANK") != nullptr;
}

void prepare_singleton() { setenv("OMPI_MCA_ess_singleton_isolated", "1", 0); }

}  // namespace rota::mpi
