#include "runtime/base/pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

namespace rota::base {
namespace {

// Since Linux 5.14; the C libraries of older systems have no name for it, though their kernel may know it.
constexpr int madv_populate_write = 23;

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

std::byte* page_of(std::byte* at) { return at - reinterpret_cast<std::uintptr_t>(at) % page_bytes(); }

class pipe_pair {
 public:
  pipe_pair() noexcept { open_ = pipe2(ends_.data(), O_CLOEXEC | O_NONBLOCK) == 0; }
  ~pipe_pair() {
    if (!open_) return;
    close(ends_[0]);
    close(ends_[1]);
  }
  pipe_pair(const pipe_pair&) = delete;
  pipe_pair& operator=(const pipe_pair&) = delete;

  bool is_open() const { return open_; }
  int out() const { return ends_[0]; }
  int in() const { return ends_[1]; }

 private:
  std::array<int, 2> ends_{};
  bool open_ = false;
};

}  // namespace

bool populate(std::byte* start, std::size_t size) noexcept {
  if (size == 0) return true;
  std::byte* const first = page_of(start);
  const auto length = static_cast<std::size_t>(start + size - first);
  while (madvise(first, length, madv_populate_write) != 0) {
    if (errno == EINVAL) return populate_by_touching(start, size);
    if (errno != EINTR && errno != EAGAIN) return false;
  }
  return true;
}

// A fault that would be SIGBUS in our own code is EFAULT when the kernel makes it on our behalf. So one byte of each
// page goes through a pipe and back to its place. (Asking statvfs for free room first would leave a race.)
bool populate_by_touching(std::byte* start, std::size_t size) noexcept {
  if (size == 0) return true;
  const pipe_pair through;
  if (!through.is_open()) return false;
  std::array<iovec, 512> batch;  // Below IOV_MAX, and its bytes fit the smallest pipe (one page).
  std::byte* touched = start;    // Never a byte outside of the range: that one may have another writer.
  std::byte* const end = start + size;
  while (touched < end) {
    int pages = 0;
    for (; touched < end && pages < static_cast<int>(batch.size()); touched = page_of(touched) + page_bytes()) {
      batch[static_cast<std::size_t>(pages++)] = {touched, 1};
    }
    if (writev(through.in(), batch.data(), pages) != pages) return false;
    if (readv(through.out(), batch.data(), pages) != pages) return false;
  }
  return true;
}

void release(std::byte* start, std::size_t size) noexcept {
  std::byte* const first = page_of(start + page_bytes() - 1);
  std::byte* const end = page_of(start + size);
  if (first >= end) return;
  const auto length = static_cast<std::size_t>(end - first);
  // Private memory refuses MADV_REMOVE; on shared memory MADV_DONTNEED would only unmap, so it comes second.
  if (madvise(first, length, MADV_REMOVE) != 0) madvise(first, length, MADV_DONTNEED);
}

}  // namespace rota::base
