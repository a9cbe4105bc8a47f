#include "runtime/worker/disk_thread.h"

#include <system_error>

namespace rota::detail {

void disk_thread::add(std::deque<job>& to, std::function<void()> work, std::function<void()> after) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    if (begin()) {
      to.push_back({std::move(work), std::move(after)});
      return come_.notify_one();
    }
  }
  work();
  after();
}

bool disk_thread::begin() {
  if (thread_.joinable()) return true;
  try {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

void disk_thread::run(const std::stop_token& stop) {
  for (;;) {
    job next;
    {
      std::unique_lock lock(mutex_);
      come_.wait(lock, stop, [this] { return !urgent_.empty() || !others_.empty(); });
      if (stop.stop_requested()) return;
      std::deque<job>& from = urgent_.empty() ? others_ : urgent_;
      next = std::move(from.front());
      from.pop_front();
    }
    next.work();
    at_the_pump_(next.after);
  }
}

void disk_thread::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    urgent_.clear();
    others_.clear();
  }
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

}  // namespace rota::detail
