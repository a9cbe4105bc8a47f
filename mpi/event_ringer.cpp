#include "mpi/event_ringer.h"

#include <rota/error.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace rota::mpi {
namespace {

int require(int rc, const char* call) {
  if (rc < 0) throw error(std::string(call) + " failed: " + std::strerror(errno));
  return rc;
}

constexpr std::uint32_t once = EPOLLIN | EPOLLONESHOT;

}  // namespace

event_ringer::event_ringer(int fd, doorbell& bell, std::chrono::milliseconds period)
    : fd_(fd), bell_(bell), period_ms_(static_cast<int>(period.count())) {
  poll_ = require(epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
  stop_ = require(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd");
  epoll_event event{};
  event.data.fd = fd_;
  event.events = EPOLLONESHOT;  // nothing yet
  require(epoll_ctl(poll_, EPOLL_CTL_ADD, fd_, &event), "epoll_ctl");
  event.data.fd = stop_;
  event.events = EPOLLIN;
  require(epoll_ctl(poll_, EPOLL_CTL_ADD, stop_, &event), "epoll_ctl");
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void event_ringer::end() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  eventfd_write(stop_, 1);
  thread_.join();
}

event_ringer::~event_ringer() {
  end();
  ::close(stop_);
  ::close(poll_);
}

void event_ringer::arm(std::chrono::nanoseconds delay) {
  delay_ns_.store(delay.count(), std::memory_order_relaxed);  // relaxed: epoll_ctl orders it
  epoll_event event{};
  event.data.fd = fd_;
  event.events = once;
  epoll_ctl(poll_, EPOLL_CTL_MOD, fd_, &event);
}

void event_ringer::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    epoll_event event{};
    const int count = epoll_wait(poll_, &event, 1, period_ms_);
    if (count == 0) ring(bell_);
    if (count != 1 || event.data.fd != fd_) continue;
    const std::chrono::nanoseconds delay(delay_ns_.load(std::memory_order_relaxed));  // relaxed: see arm
    if (delay.count() > 0) std::this_thread::sleep_for(delay);
    rings_.fetch_add(1, std::memory_order_relaxed);  // relaxed: see rings
    ring(bell_);
  }
}

}  // namespace rota::mpi
