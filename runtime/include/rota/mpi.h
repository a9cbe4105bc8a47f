#pragma once

#include <mpi.h>
#include <rota/session.h>

namespace rota {

// For MPI programs with a main loop of their own, MPI_THREAD_MULTIPLE. Rank 0 of comm calls init, all others serve, at
// the same time. MPI is not finalized; comm is duplicated. Throw as the other init does.
session init(MPI_Comm comm, config c = {});

// Runs tasks for rank 0 of comm; returns when its session ends.
void serve(MPI_Comm comm, config c = {});

}  // namespace rota
