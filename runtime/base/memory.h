#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

namespace rota::base {

// What bounds the memory of this process, in bytes. A bound that nobody sets is empty.
struct memory_bounds {
  std::size_t machine = 0;                // all that there is
  std::optional<std::size_t> available;   // what the kernel would still give without swapping
  std::optional<std::size_t> group;       // the tightest of the control groups around this process
  std::optional<std::size_t> group_left;  // the least that one of them has left
  std::optional<std::size_t> job;         // what the batch system gave the job on this node

  // What could be used if nothing were in use yet.
  std::size_t limit() const;
  // What can be used from now on.
  std::size_t usable() const;
};

// The content of a file; nullopt where it cannot be read.
using file_reader = std::function<std::optional<std::string>(const std::string& path)>;

// The bounds that the kernel sets; `job` is left empty. What a group caches of files counts as free.
memory_bounds read_memory_bounds(std::size_t machine, const file_reader& read);

// The same of this process.
memory_bounds read_memory_bounds();

}  // namespace rota::base
