#pragma once

#include <cstdint>
#include <string>

namespace kmers {

// A bar on stderr while it is a terminal; nothing otherwise. The destructor wipes it. One thread.
class progress {
 public:
  progress();
  ~progress();
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;

  // `done` of `all` of the work called `what`. Cheap: draws only where the picture changes.
  void show(const std::string& what, std::uint64_t done, std::uint64_t all);
  void wipe();

 private:
  bool terminal_;
  std::string drawn_{};
};

}  // namespace kmers
