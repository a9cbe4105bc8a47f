// late_program: rank 1 stays away from the last meeting of the ranks, when the window is closed already. Rank 0 must
// say so, and its program goes on.
#include <mpi.h>
#include <rota/rota.h>

#include <chrono>
#include <cstdio>
#include <thread>

namespace {

int world_rank = -1;

}  // namespace

// What the library calls to close the window, through MPI's profiling interface.
extern "C" int MPI_Win_free(MPI_Win* window) {
  PMPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
  const int result = PMPI_Win_free(window);
  if (world_rank == 1) std::this_thread::sleep_for(std::chrono::seconds(5));
  return result;
}

int main(int argc, char** argv) {
  {
    auto session = rota::init(argc, argv);
    if (rota::put(1).get() != 1) return 3;
  }
  std::puts("rank 0 is still there");
  return std::fflush(stdout);
}
