#include "runtime/base/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

namespace rota::base {

void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                std::optional<std::chrono::nanoseconds> limit) noexcept {
  timespec span{};
  if (limit) {
    span.tv_sec = static_cast<time_t>(limit->count() / 1'000'000'000);
    span.tv_nsec = static_cast<long>(limit->count() % 1'000'000'000);
  }
  syscall(SYS_futex, &word, FUTEX_WAIT, expected, limit ? &span : nullptr, nullptr, 0);
}

void futex_wake(const std::atomic<std::uint32_t>& word, int count) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE, count, nullptr, nullptr, 0);
}

}  // namespace rota::base
