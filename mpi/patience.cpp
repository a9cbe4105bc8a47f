#include "mpi/patience.h"

#include <algorithm>
#include <thread>

#include "mpi/world.h"

namespace rota::mpi {
namespace {

using clock = std::chrono::steady_clock;

constexpr auto shortest_sleep = std::chrono::microseconds(10);
constexpr auto longest_pause = std::chrono::milliseconds(20);  // at start, where many are late by seconds

}  // namespace

bool patience::pause() {
  const auto now = clock::now();
  if (now >= until_) return false;
  const std::chrono::nanoseconds next = std::min<std::chrono::nanoseconds>((now - since_) / 8, longest_);
  if (next < shortest_sleep) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(next);
  }
  return true;
}

void await(MPI_Request request) {
  patience patient(clock::time_point::max(), longest_pause);
  for (;;) {
    int done = 0;
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done != 0) return;
    patient.pause();
  }
}

void come_together(MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Ibarrier(comm, &request), "MPI_Ibarrier");
  await(request);
}

void broadcast_over(MPI_Comm comm, void* bytes, std::size_t size, rank_t root) {
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Ibcast(bytes, static_cast<int>(size), MPI_BYTE, static_cast<int>(root), comm, &request), "MPI_Ibcast");
  await(request);
}

void allgather_over(MPI_Comm comm, const void* mine, std::size_t size, void* all) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int count = static_cast<int>(size);
  check(MPI_Iallgather(mine, count, MPI_BYTE, all, count, MPI_BYTE, comm, &request), "MPI_Iallgather");
  await(request);
}

}  // namespace rota::mpi
