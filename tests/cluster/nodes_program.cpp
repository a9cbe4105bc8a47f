// An MPI program for several nodes: nodes_program NODES. Ranks of one host share a window, those of different hosts do
// not; a message of 1 MiB goes from each rank to the next. Exit status 0 if that holds on NODES hosts, each with its
// share of the ranks; rank 0 prints a line.
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

constexpr int message_bytes = 1 << 20;

// Ranks of this host, and whether each of them reads in the shared window what each other wrote.
int ranks_here(int rank) {
  MPI_Comm here;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &here);
  int size = 0;
  MPI_Comm_size(here, &size);
  MPI_Win window;
  int* mine = nullptr;
  MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, here, &mine, &window);
  MPI_Win_fence(0, window);
  *mine = rank;
  MPI_Win_fence(0, window);
  std::vector<int> ranks(size);
  MPI_Allgather(&rank, 1, MPI_INT, ranks.data(), 1, MPI_INT, here);
  for (int i = 0; i < size; ++i) {
    MPI_Aint bytes = 0;
    int unit = 0;
    int* theirs = nullptr;
    MPI_Win_shared_query(window, i, &bytes, &unit, &theirs);
    if (*theirs != ranks[i]) size = -1;
  }
  MPI_Win_free(&window);
  MPI_Comm_free(&here);
  return size;
}

bool message_passes(int rank, int size) {
  const std::vector<char> sent(message_bytes, static_cast<char>(rank + 1));
  std::vector<char> got(message_bytes);
  const int from = (rank + size - 1) % size;
  MPI_Sendrecv(sent.data(), message_bytes, MPI_CHAR, (rank + 1) % size, 0, got.data(), message_bytes, MPI_CHAR, from, 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return got == std::vector<char>(message_bytes, static_cast<char>(from + 1));
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int nodes = argc > 1 ? std::atoi(argv[1]) : 1;
  const int here = ranks_here(rank);
  int good = here * nodes == size && message_passes(rank, size) ? 1 : 0;
  if (good == 0) std::fprintf(stderr, "rank %d of %d: %d ranks on this host, or a wrong message\n", rank, size, here);
  MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (rank == 0 && good == 1) std::printf("%d ranks on %d hosts\n", size, nodes);
  MPI_Finalize();
  return good == 1 ? 0 : 1;
}
