#include "mpi/hang_guard.h"

#include <unistd.h>

#include "runtime/base/log.h"

namespace rota::mpi {

hang_guard::hang_guard(std::chrono::nanoseconds limit, int status, std::string words)
    : thread_([this, limit, status, words = std::move(words)] {
        std::unique_lock lock(mutex_);
        if (over_.wait_for(lock, limit, [this] { return done_; })) return;
        if (!words.empty()) base::log().error("{}", words);
        _exit(status);
      }) {}

hang_guard::~hang_guard() {
  {
    std::lock_guard lock(mutex_);
    done_ = true;
  }
  over_.notify_one();
  thread_.join();
}

}  // namespace rota::mpi
