#pragma once

#include <cstdint>
#include <functional>
#include <thread>
#include <unordered_set>
#include <vector>

#include "runtime/base/guarded.h"
#include "runtime/base/types.h"

namespace rota::mpi {

// Tells when processes of this host end, however they end. One thread, "watch", which sleeps in epoll and calls
// `on_death(rank)` once for each; the callback may not block for long and may not destroy the watch. A process that
// was gone before add() is reported too. Any thread may call add(). Processes of other hosts cannot be watched.
class process_watch {
 public:
  using callback = std::function<void(rank_t)>;

  explicit process_watch(callback on_death);
  process_watch(const process_watch&) = delete;
  process_watch& operator=(const process_watch&) = delete;

  // Ends the thread; waits at most for a callback that runs. What was not reported by then is not reported.
  ~process_watch();

  // Throws rota::error when the kernel refuses (no pidfd, no file handles left).
  void add(rank_t rank, std::int32_t pid);

 private:
  struct shared_state {
    std::unordered_set<int> open;  // pidfds
    std::vector<rank_t> gone;      // were dead at add()
  };

  void run(const std::stop_token& stop);
  void report_gone();
  void nudge() const noexcept;

  callback on_death_;
  int poll_ = -1;
  int event_ = -1;
  base::guarded<shared_state> state_;
  std::jthread thread_;  // last: everything it uses is there before it and after it
};

}  // namespace rota::mpi
