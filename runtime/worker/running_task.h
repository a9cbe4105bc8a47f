#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rota::detail {

// The task that a thread runs, for this_task() and for what it submits.
struct running_task {
  std::uint32_t job = 0;
  std::uint64_t id = 0;
  std::string_view name;
  unsigned attempt = 0;
  std::byte* stack_limit = nullptr;  // below it no further task starts on this stack
};

}  // namespace rota::detail
