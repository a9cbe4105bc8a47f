#pragma once

#include <mpi.h>

#include <chrono>
#include <cstddef>

#include "runtime/base/types.h"

namespace rota::mpi {

// Pauses between looks at MPI, of an eighth of the time waited so far, so that waiting takes little CPU from the ranks
// waited for. MPI's own blocking calls spin: where a node has more ranks than cores, those that wait starve the others.
class patience {
 public:
  patience(std::chrono::steady_clock::time_point until, std::chrono::nanoseconds longest_pause)
      : until_(until), longest_(longest_pause) {}
  bool pause();  // false when time is up

 private:
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point until_;
  std::chrono::nanoseconds longest_;
};

// Collectives that wait with patience, for as long as it takes. They throw what mpi::check throws.
void await(MPI_Request request);
void come_together(MPI_Comm comm);  // a barrier; before a collective of MPI that spins until all have come
void broadcast_over(MPI_Comm comm, void* bytes, std::size_t size, rank_t root);
void allgather_over(MPI_Comm comm, const void* mine, std::size_t size, void* all);  // size bytes from each

}  // namespace rota::mpi
