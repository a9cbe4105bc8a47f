#include "mpi/process_watch.h"

#include <gtest/gtest.h>
#include <rota/error.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using rota::rank_t;
using rota::mpi::process_watch;

// Collects what the watch reports.
class obituary {
 public:
  void write(rank_t rank) {
    std::lock_guard lock(mutex_);
    dead_.push_back(rank);
    news_.notify_all();
  }

  // Waits until n were reported, or 10 s; returns them all.
  std::vector<rank_t> read(std::size_t n) {
    std::unique_lock lock(mutex_);
    news_.wait_for(lock, 10s, [&] { return dead_.size() >= n; });
    return dead_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable news_;
  std::vector<rank_t> dead_;
};

// A child that sleeps until it is killed.
class child {
 public:
  child() : pid_(fork()) {
    if (pid_ != 0) return;
    for (;;) pause();
  }
  child(const child&) = delete;
  child& operator=(const child&) = delete;
  ~child() {
    kill(pid_, SIGKILL);
    reap();
  }

  pid_t pid() const { return pid_; }
  void end() const { kill(pid_, SIGKILL); }
  void reap() const { waitpid(pid_, nullptr, 0); }

 private:
  pid_t pid_;
};

TEST(process_watch, reports_each_death_once) {
  child a, b, c;
  obituary dead;
  process_watch watch([&](rank_t rank) { dead.write(rank); });
  watch.add(1, a.pid());
  watch.add(2, b.pid());
  watch.add(3, c.pid());
  b.end();
  EXPECT_EQ(dead.read(1), (std::vector<rank_t>{2}));
  c.end();
  EXPECT_EQ(dead.read(2), (std::vector<rank_t>{2, 3}));
  a.end();
  EXPECT_EQ(dead.read(3), (std::vector<rank_t>{2, 3, 1}));
}

TEST(process_watch, reports_who_was_gone_or_a_zombie_before) {
  child gone, zombie;
  gone.end();
  gone.reap();
  zombie.end();
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(zombie.pid()), &info, WEXITED | WNOWAIT), 0);
  obituary dead;
  process_watch watch([&](rank_t rank) { dead.write(rank); });
  watch.add(5, gone.pid());
  EXPECT_EQ(dead.read(1), (std::vector<rank_t>{5}));
  watch.add(6, zombie.pid());
  EXPECT_EQ(dead.read(2), (std::vector<rank_t>{5, 6}));
}

TEST(process_watch, can_be_told_of_more_processes_from_its_callback) {
  child first, second;
  obituary dead;
  process_watch* self = nullptr;
  process_watch watch([&](rank_t rank) {
    if (rank == 1) self->add(2, second.pid());
    dead.write(rank);
  });
  self = &watch;
  watch.add(1, first.pid());
  first.end();
  EXPECT_EQ(dead.read(1), (std::vector<rank_t>{1}));
  second.end();
  EXPECT_EQ(dead.read(2), (std::vector<rank_t>{1, 2}));
}

TEST(process_watch, ends_at_once_while_processes_live) {
  child alive;
  const auto before = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) {
    process_watch watch([](rank_t) { ADD_FAILURE() << "nobody died"; });
    watch.add(1, alive.pid());
  }
  EXPECT_LT(std::chrono::steady_clock::now() - before, 5s);
}

TEST(process_watch, leaves_no_file_handle) {
  const auto next_handle = [] {
    const int fd = dup(0);
    close(fd);
    return fd;
  };
  child alive;
  const int before = next_handle();
  for (int i = 0; i < 10; ++i) {
    child dying;
    obituary dead;
    process_watch watch([&](rank_t rank) { dead.write(rank); });
    watch.add(1, alive.pid());
    watch.add(2, dying.pid());
    dying.end();
    EXPECT_EQ(dead.read(1).size(), 1u);
  }
  EXPECT_EQ(next_handle(), before);
}

TEST(process_watch, takes_no_cpu_while_all_live) {
  child alive;
  process_watch watch([](rank_t) {});
  watch.add(1, alive.pid());
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  std::this_thread::sleep_for(300ms);  // the time over which we measure, not a wait for something
  getrusage(RUSAGE_SELF, &after);
  const auto micros = [](const rusage& u) {
    return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1'000'000 + u.ru_utime.tv_usec + u.ru_stime.tv_usec;
  };
  EXPECT_LT(micros(after) - micros(before), 10'000);
}

TEST(process_watch, refuses_a_pid_that_cannot_be_one) {
  process_watch watch([](rank_t) {});
  EXPECT_THROW(watch.add(1, -1), rota::error);
}

}  // namespace
