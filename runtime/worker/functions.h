#pragma once

#include <rota/detail/registry.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rota::detail {

// All registered functions of this process, each with an id that any process of the same executable and libraries
// computes too: its index when sorted by (build id of its module, offset in that module). Names are no ids, for static
// functions in two files may have equal ones. Immutable once built: any thread.
class function_table {
 public:
  // Numbers what is registered so far, and writes the numbers into the registrations; later ones stay unregistered.
  // REQUIRES: main has begun, and no other thread makes remote calls or loads libraries yet. Throws config_error where
  // a module has neither a build id nor a file that can be read.
  static function_table build();

  std::size_t size() const noexcept { return entries_.size(); }

  // Throw std::out_of_range for an index that is not below size().
  trampoline at(std::uint32_t index) const { return entries_.at(index).run; }
  const char* name(std::uint32_t index) const { return entries_.at(index).name; }

  // 32 hexadecimal digits over the build ids of all modules that registered functions, the table and the version of the
  // wire format: ranks may talk to each other if theirs are equal.
  std::string digest(std::uint32_t wire_version) const;

 private:
  struct entry {
    trampoline run;
    const char* name;
    std::uintptr_t offset;  // of the trampoline from where its module is loaded
    std::uint32_t build;    // index in builds_
  };

  std::vector<std::string> builds_;  // sorted build ids
  std::vector<entry> entries_;
};

}  // namespace rota::detail
