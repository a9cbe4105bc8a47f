// An MPI program with a main loop of its own that lends some of its ranks to rota for a while.
#include <mpi.h>
#include <rota/mpi.h>
#include <rota/rota.h>

#include <cstdio>

namespace {

int square(int x) { return x * x; }

// Sum of the ranks' numbers on all of them.
int allreduce(int mine) {
  int sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return sum;
}

int work(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  if (rank != 0) return rota::serve(comm), 0;
  auto session = rota::init(comm);
  int sum = 0;
  for (int value : rota::get(rota::map<square>(std::views::iota(0, 1000)))) sum += value;
  return sum == 332833500 ? 0 : 3;
}

}  // namespace

int main(int argc, char** argv) {
  int threads = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm mine = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank == size - 1 && size > 2 ? 1 : 0, rank, &mine);  // the last stays outside
  int status = rank == size - 1 && size > 2 ? 0 : work(mine);
  if (allreduce(1) != size) status = 4;  // MPI is as it was
  MPI_Comm_free(&mine);
  MPI_Finalize();
  return status;
}
