#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <system_error>

namespace bench {

// Memory as the store's, that no rank has touched.
class fresh_memory {
 public:
  explicit fresh_memory(std::size_t bytes)
      : bytes_(bytes), start_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (start_ == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
  }
  fresh_memory(const fresh_memory&) = delete;
  fresh_memory& operator=(const fresh_memory&) = delete;
  ~fresh_memory() { munmap(start_, bytes_); }

  void* data() const { return start_; }

 private:
  std::size_t bytes_;
  void* start_;
};

}  // namespace bench
