#pragma once

#include <cstdint>
#include <string>

namespace rota::mpi {

// How this process was started, read from the environment before MPI_Init. Call from one thread.

// True when mpirun, srun with PMI, or another launcher told MPI who this process is.
bool has_launcher();

// Tasks of the Slurm step whose srun started this process directly; 0 when none did. A program started from the shell
// of an sbatch script or of salloc is not in such a step, whatever SLURM_NTASKS says; nor is one under mpirun.
std::uint64_t slurm_step_tasks();

// What to tell a user whose Slurm step of several tasks would become as many worlds of one.
std::string slurm_mismatch(std::uint64_t tasks);

// Makes a process without a launcher a world of its own, quickly: Open MPI would start a daemon for it.
void prepare_singleton();

}  // namespace rota::mpi
