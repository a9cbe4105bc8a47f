#pragma once

namespace rota::mpi {

// How this process was started, read from the environment before MPI_Init. Call from one thread.

// True when mpirun, srun with PMI, or another launcher told MPI who this process is.
bool has_launcher();

// True when that was mpirun, which says its own size: what its processes have inherited from a job is not about them.
bool under_mpirun();

// True when it was srun with a PMI that is older than PMIx, which not every MPI speaks.
bool under_old_pmi();

// Makes a process without a launcher a world of its own, quickly: Open MPI would start a daemon for it.
void prepare_singleton();

}  // namespace rota::mpi
