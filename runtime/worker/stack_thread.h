#pragma once

#include <pthread.h>

#include <functional>

namespace rota::detail {

// A thread with a stack of a size of our choosing, which std::thread cannot have. Must be joined before it goes.
class stack_thread {
 public:
  stack_thread() = default;
  stack_thread(const stack_thread&) = delete;
  stack_thread& operator=(const stack_thread&) = delete;

  // Throws rota::error where the system has no thread left.
  void start(std::size_t stack_bytes, std::function<void()> run);
  void join();

 private:
  pthread_t thread_{};
  std::function<void()> run_;
};

}  // namespace rota::detail
