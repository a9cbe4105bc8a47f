#pragma once

#include <mutex>
#include <utility>

namespace rota::base {

// A value that can only be touched with its lock held: g.with([](T& v) { ... }). The callback must not block, send or
// call user code.
template <class T>
class guarded {
 public:
  template <class F>
  decltype(auto) with(F&& use) {
    std::lock_guard lock(mutex_);
    return std::forward<F>(use)(value_);
  }

 private:
  std::mutex mutex_;
  T value_{};
};

}  // namespace rota::base
