#include "mpi/rma_watch.h"

#include <rota/error.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "mpi/world.h"
#include "runtime/base/clock.h"
#include "runtime/base/futex.h"

namespace rota::mpi {

mpi_progress::mpi_progress(MPI_Comm comm, int tag) {
  check(MPI_Irecv(nullptr, 0, MPI_BYTE, MPI_ANY_SOURCE, tag, comm, &never_), "MPI_Irecv");
}

void mpi_progress::make() {
  int done = 0;
  MPI_Test(&never_, &done, MPI_STATUS_IGNORE);
}

void mpi_progress::end() {
  if (never_ == MPI_REQUEST_NULL) return;
  MPI_Cancel(&never_);
  MPI_Wait(&never_, MPI_STATUS_IGNORE);
}

rma_watch::rma_watch(const place& where) : where_(where), progress_(where.comm, where.tag_own) {
  event_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event_ < 0) throw error(std::string("eventfd failed: ") + std::strerror(errno));
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

rma_watch::~rma_watch() {
  end();
  ::close(event_);
}

void rma_watch::end() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  state_.store(idle);
  base::futex_wake(state_, 1);
  thread_.join();
  progress_.end();
}

void rma_watch::arm(std::vector<put_word>& words) {
  eventfd_t seen = 0;
  eventfd_read(event_, &seen);
  {
    std::lock_guard lock(mutex_);
    words_.swap(words);
  }
  if (state_.exchange(armed) == parked) base::futex_wake(state_, 1);
}

bool rma_watch::look() {
  int came = 0;
  const int rc = MPI_Iprobe(MPI_ANY_SOURCE, where_.tag_look, where_.comm, &came, MPI_STATUS_IGNORE);
  if (rc != MPI_SUCCESS || came != 0) return true;  // poll() meets the error too
  std::lock_guard lock(mutex_);
  return std::any_of(words_.begin(), words_.end(), [](const put_word& word) { return word.filled(); });
}

void rma_watch::busy(bool is) {
  if (busy_.load(std::memory_order_relaxed) == is) return;  // relaxed: written here only
  busy_.store(is);
  if (is) unpark();
}

void rma_watch::flush() {
  to_flush_.store(++flushes_);
  unpark();
}

void rma_watch::unpark() {
  std::uint32_t was = parked;
  if (state_.compare_exchange_strong(was, idle)) base::futex_wake(state_, 1);
}

// Until there is something to do. seq_cst throughout: whoever gives some sees that it is parked, or is seen.
void rma_watch::park(const std::stop_token& stop) {
  std::uint32_t was = idle;
  if (!state_.compare_exchange_strong(was, parked)) return;
  if (busy_.load() || to_flush_.load() != flushed_.load() || stop.stop_requested()) {
    was = parked;
    state_.compare_exchange_strong(was, idle);
    return;
  }
  base::futex_wait(state_, parked);
  was = parked;
  state_.compare_exchange_strong(was, idle);  // woken for no reason
}

void rma_watch::run(const std::stop_token& stop) {
  prctl(PR_SET_TIMERSLACK, 1000UL);  // ns; 50 µs otherwise
  std::uint64_t told_ns = 0;
  while (!stop.stop_requested()) {
    if (const std::uint32_t asked = to_flush_.load(); asked != flushed_.load()) {
      MPI_Win_flush_all(where_.win);  // an error is of a peer that is gone: others tell
      flushed_.store(asked);
    }
    const std::uint32_t state = state_.load();
    const bool transfers = busy_.load();
    if (state != armed && !transfers) {
      park(stop);
      continue;
    }
    const std::uint64_t active = active_ns_.load(std::memory_order_relaxed);  // relaxed: see active()
    const std::uint64_t quiet_ns = base::now_ns() - active;
    const std::uint64_t pause_ns = transfers ? busy_ns : std::clamp(quiet_ns / 8, shortest_ns, longest_ns);
    base::futex_wait(state_, state, std::chrono::nanoseconds(pause_ns));
    if (stop.stop_requested()) return;
    progress_.make();
    std::uint32_t was = armed;
    if (state_.load() != armed) continue;
    const std::uint64_t now = base::now_ns();
    const bool due = transfers && now - told_ns > busy_look_ns;
    if (!due && !look()) continue;
    told_ns = now;
    if (state_.compare_exchange_strong(was, idle)) eventfd_write(event_, 1);
  }
}

}  // namespace rota::mpi
