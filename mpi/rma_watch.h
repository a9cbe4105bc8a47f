#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "mpi/rma_ring.h"

namespace rota::mpi {

// Lets MPI make progress, which it does only inside its calls: a receive that never comes is tested. One thread at a
// time for each.
class mpi_progress {
 public:
  // REQUIRES: nobody sends with `tag` on `comm`.
  mpi_progress(MPI_Comm comm, int tag);
  mpi_progress(const mpi_progress&) = delete;
  mpi_progress& operator=(const mpi_progress&) = delete;
  ~mpi_progress() { end(); }

  void make();
  // Takes the receive back. REQUIRES: MPI is not finalized.
  void end();

 private:
  MPI_Request never_ = MPI_REQUEST_NULL;
};

// Looks for puts and messages while a rank sleeps, since they wake nobody. One thread, "rma": between arm() and what it
// then finds, it wakes by the clock, lets MPI progress and looks. The longer nothing came, the rarer: after an eighth
// of that time again, but within shortest and longest. While the rank is busy with transfers it lets MPI progress all
// the time, armed or not, and once in busy_look_ns finds that the rank should look itself. It flushes the window, which
// may take as long as a target computes. Otherwise it sleeps for good.
class rma_watch {
 public:
  static constexpr std::uint64_t busy_ns = 10'000, busy_look_ns = 200'000;
  static constexpr std::uint64_t shortest_ns = 20'000, longest_ns = 5'000'000;

  struct place {  // what of MPI it uses
    MPI_Comm comm;
    MPI_Win win;
    int tag_own;   // of its mpi_progress
    int tag_look;  // a message with it is something that came
  };
  // Throws rota::error when the kernel refuses.
  explicit rma_watch(const place& where);
  rma_watch(const rma_watch&) = delete;
  rma_watch& operator=(const rma_watch&) = delete;
  ~rma_watch();

  // Readable once one of the words was filled, or a message came, after arm().
  int event_fd() const { return event_; }
  // `words` is taken, and comes back as some earlier one. Stays armed until it finds something, and then tells also of
  // what poll() has taken since, for another thread sleeps. One thread at a time calls what follows.
  void arm(std::vector<put_word>& words);
  void active(std::uint64_t now_ns) { active_ns_.store(now_ns, std::memory_order_relaxed); }  // relaxed: a hint
  void busy(bool is);
  // Flushes the window for all ranks; flushed() once that is done.
  void flush();
  bool flushed() const { return flushed_.load() == flushes_; }
  // Ends the thread; nothing of MPI's or of the words is touched afterwards. Waits for a flush that is under way.
  void end();

 private:
  static constexpr std::uint32_t idle = 0, armed = 1, parked = 2;

  void run(const std::stop_token& stop);
  void unpark();
  void park(const std::stop_token& stop);
  bool look();

  place where_;
  mpi_progress progress_;
  int event_ = -1;
  std::atomic<std::uint32_t> state_{idle};
  std::atomic<bool> busy_{false};
  std::atomic<std::uint64_t> active_ns_{0};
  std::uint32_t flushes_ = 0;  // that were asked for
  std::atomic<std::uint32_t> to_flush_{0}, flushed_{0};
  std::mutex mutex_;
  std::vector<put_word> words_;  // guarded by mutex_
  std::jthread thread_;          // last: everything it uses is there before it and after it
};

}  // namespace rota::mpi
