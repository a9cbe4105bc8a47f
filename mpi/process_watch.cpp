#include "mpi/process_watch.h"

#include <pthread.h>
#include <rota/error.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stop_token>
#include <string>
#include <utility>

namespace rota::mpi {
namespace {

constexpr std::uint64_t event_key = ~std::uint64_t{0};  // no pidfd is this large

std::uint64_t key_of(rank_t rank, int fd) { return (std::uint64_t{rank} << 32) | static_cast<std::uint32_t>(fd); }

[[noreturn]] void fail(const std::string& what) { throw error("process watch: " + what + ": " + std::strerror(errno)); }

bool watch_fd(int poll, int fd, std::uint64_t key) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = key;
  return epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event) == 0;
}

}  // namespace

process_watch::process_watch(callback on_death) : on_death_(std::move(on_death)) {
  poll_ = epoll_create1(EPOLL_CLOEXEC);
  event_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (poll_ < 0 || event_ < 0 || !watch_fd(poll_, event_, event_key)) {
    const int why = errno;
    if (poll_ >= 0) close(poll_);
    if (event_ >= 0) close(event_);
    errno = why;
    fail("no file handles for it");
  }
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

process_watch::~process_watch() {
  thread_.request_stop();
  nudge();
  thread_.join();
  state_.with([](shared_state& state) {
    for (int fd : state.open) close(fd);
  });
  close(poll_);
  close(event_);
}

void process_watch::add(rank_t rank, std::int32_t pid) {
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (fd < 0) {
    if (errno != ESRCH) fail("pidfd_open for rank " + std::to_string(rank) + ", pid " + std::to_string(pid));
    state_.with([&](shared_state& state) { state.gone.push_back(rank); });
    nudge();
    return;
  }
  state_.with([&](shared_state& state) { state.open.insert(fd); });
  if (watch_fd(poll_, fd, key_of(rank, fd))) return;
  const int why = errno;
  state_.with([&](shared_state& state) { state.open.erase(fd); });
  close(fd);
  errno = why;
  fail("epoll_ctl for rank " + std::to_string(rank));
}

void process_watch::run(const std::stop_token& stop) {
  pthread_setname_np(pthread_self(), "watch");
  std::array<epoll_event, 16> events{};
  while (!stop.stop_requested()) {
    const int count = epoll_wait(poll_, events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < count && !stop.stop_requested(); ++i) {
      const std::uint64_t key = events[static_cast<std::size_t>(i)].data.u64;
      if (key == event_key) {
        report_gone();
        continue;
      }
      const int fd = static_cast<int>(key & 0xffff'ffff);
      state_.with([&](shared_state& state) { state.open.erase(fd); });
      epoll_ctl(poll_, EPOLL_CTL_DEL, fd, nullptr);  // close alone would not do if a task has forked
      close(fd);
      on_death_(static_cast<rank_t>(key >> 32));
    }
  }
}

void process_watch::report_gone() {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t rest = read(event_, &count, sizeof count);
  std::vector<rank_t> gone;
  state_.with([&](shared_state& state) { gone.swap(state.gone); });
  for (rank_t rank : gone) on_death_(rank);
}

void process_watch::nudge() const noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(event_, &one, sizeof one);
}

}  // namespace rota::mpi
