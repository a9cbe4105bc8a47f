#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "mpi/doorbell.h"

namespace rota::mpi {

// Turns a file descriptor that becomes readable into a ring of this rank's doorbell, since a thread cannot sleep on
// both. One thread, "ringer", which sleeps in epoll; it rings once for each arm(), and once a `period`, so that whoever
// sleeps looks at the clock. end() and the destructor end it: before the doorbell goes. Any thread.
class event_ringer {
 public:
  // Throws rota::error when the kernel refuses.
  event_ringer(int fd, doorbell& bell, std::chrono::milliseconds period);
  event_ringer(const event_ringer&) = delete;
  event_ringer& operator=(const event_ringer&) = delete;
  ~event_ringer();

  void end();

  // Rings when fd is readable next, `delay` after it is: at once if it is now and there is none.
  void arm(std::chrono::nanoseconds delay = {});

  // How often it has rung because fd was readable.
  std::uint32_t rings() const { return rings_.load(std::memory_order_relaxed); }  // relaxed: a count, no more

 private:
  void run(const std::stop_token& stop);

  int fd_;
  doorbell& bell_;
  int period_ms_;
  int poll_ = -1;
  int stop_ = -1;
  std::atomic<std::int64_t> delay_ns_{0};
  std::atomic<std::uint32_t> rings_{0};
  std::jthread thread_;  // last: everything it uses is there before it and after it
};

}  // namespace rota::mpi
