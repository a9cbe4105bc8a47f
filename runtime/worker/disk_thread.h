#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace rota::detail {

// The thread of a rank that does for its store what takes long: reads and writes files, populates pages. Begun with the
// first job. Jobs run one at a time, those of now() before those of later(). Jobs are added by the thread that holds
// the pump, which does them itself where the system gives no thread.
class disk_thread {
 public:
  // Runs `work`, then hands `after` to `at_the_pump`, which calls it with the pump.
  explicit disk_thread(std::function<void(const std::function<void()>&)> at_the_pump)
      : at_the_pump_(std::move(at_the_pump)) {}

  void now(std::function<void()> work, std::function<void()> after) { add(urgent_, std::move(work), std::move(after)); }
  void later(std::function<void()> work, std::function<void()> after) {
    add(others_, std::move(work), std::move(after));
  }
  // Ends what runs and drops the rest. Not with the pump.
  void stop();
  bool started() const { return thread_.joinable(); }  // with the pump

 private:
  struct job {
    std::function<void()> work, after;
  };
  void add(std::deque<job>& to, std::function<void()> work, std::function<void()> after);
  bool begin();
  void run(const std::stop_token& stop);

  const std::function<void(const std::function<void()>&)> at_the_pump_;
  std::mutex mutex_;
  std::condition_variable_any come_;
  std::deque<job> urgent_, others_;
  bool stopped_ = false;
  std::jthread thread_;
};

}  // namespace rota::detail
