#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "runtime/base/control_groups.h"

namespace rota::base {

struct memory_bound {
  std::size_t bytes = 0;
  std::string_view of;  // what it is that has so many, in words
};

// What bounds the memory of this process, in bytes. A bound that nobody sets is empty.
struct memory_bounds {
  std::size_t machine = 0;                // all that there is
  std::optional<std::size_t> available;   // what the kernel would still give without swapping
  std::optional<std::size_t> group;       // the tightest of the control groups around this process
  std::optional<std::size_t> group_left;  // the least that one of them has left
  std::optional<std::size_t> job;         // what the batch system gave the job on this node

  // What could be used if nothing were in use yet.
  memory_bound limit() const;
  // What can be used from now on.
  memory_bound usable() const;
};

// The bounds that the kernel sets; `job` is left empty. What a group caches of files counts as free.
memory_bounds read_memory_bounds(std::size_t machine, const file_reader& read);

// The same of this process.
memory_bounds read_memory_bounds();

}  // namespace rota::base
