#include "mpi/launcher.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace rota::mpi {
namespace {

// The batch, extern, interactive and pending steps that Slurm makes by itself (slurm.h: SLURM_BATCH_SCRIPT and
// neighbours) have numbers from here on; only real steps come from a user's srun.
constexpr std::uint64_t first_special_step = 0xffff'fff0;

// Set by Open MPI's mpirun (and MPICH's Hydra), by srun --mpi=pmix, and by srun --mpi=pmi2.
constexpr std::array launcher_variables = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_FD", "PMI_SIZE"};

std::optional<std::uint64_t> number_in(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  const std::string_view view(text);
  std::uint64_t value = 0;
  const auto [end, failure] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (failure != std::errc{} || end != view.data() + view.size()) return std::nullopt;
  return value;
}

}  // namespace

bool has_launcher() {
  for (const char* variable : launcher_variables) {
    if (std::getenv(variable) != nullptr) return true;
  }
  return false;
}

std::uint64_t slurm_step_tasks() {
  // mpirun says its own size, and in a job it starts its daemons by srun: what they inherit is not ours.
  if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr) return 0;
  std::optional<std::uint64_t> step = number_in("SLURM_STEP_ID");
  if (!step) step = number_in("SLURM_STEPID");
  // Batch scripts have a SLURM_PROCID but no step; a salloc shell has neither, or the special interactive step.
  if (!step || *step >= first_special_step || !number_in("SLURM_PROCID")) return 0;
  if (const auto tasks = number_in("SLURM_STEP_NUM_TASKS")) return *tasks;
  return number_in("SLURM_NTASKS").value_or(1);
}

std::string slurm_mismatch(std::uint64_t tasks) {
  const char* rank = std::getenv("SLURM_PROCID");
  return "Slurm started " + std::to_string(tasks) + " tasks (this is task " + (rank != nullptr ? rank : "?") +
         "), but MPI sees a world of one rank: srun and MPI do not speak the same PMI. Start it with `srun --mpi=pmix` "
         "(`srun --mpi=list` shows what this Slurm has), or with mpirun inside the allocation";
}

void prepare_singleton() { setenv("OMPI_MCA_ess_singleton_isolated", "1", 0); }

}  // namespace rota::mpi
