#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

namespace rota::base {

// Sleeps while word == expected, at most `limit` where one is given. Returns after a wake, a changed word, a signal or
// the limit: callers look again. Works across processes that map the word. Any thread.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                std::optional<std::chrono::nanoseconds> limit = std::nullopt) noexcept;

// Wakes at most `count` threads of any process that sleep on word.
void futex_wake(const std::atomic<std::uint32_t>& word, int count) noexcept;

}  // namespace rota::base
