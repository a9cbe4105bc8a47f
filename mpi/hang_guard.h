#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace rota::mpi {

// While it lives, this process has until the limit to get on; then it ends with `status`, after a line on the log
// (none where `words` is empty). For MPI's last collectives: they wait without end for a rank that left without them,
// and nothing frees a thread from MPI. REQUIRES: limit of at most some days. One thread, "hang guard", which sleeps.
class hang_guard {
 public:
  hang_guard(std::chrono::nanoseconds limit, int status, std::string words);
  hang_guard(const hang_guard&) = delete;
  hang_guard& operator=(const hang_guard&) = delete;
  ~hang_guard();

 private:
  std::mutex mutex_;
  std::condition_variable over_;
  bool done_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace rota::mpi
