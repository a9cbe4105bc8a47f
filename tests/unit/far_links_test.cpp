#include "runtime/worker/far_links.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace std::chrono_literals;
using namespace rota::detail;
using clock_type = std::chrono::steady_clock;

// A fabric whose event is always readable, as that of UCX is while a connection waits for its peer. Nothing comes
// unless something `moves`: UCX cannot be made to stay so on demand.
class ready_fabric final : public rota::mpi::fabric {
 public:
  explicit ready_fabric(const bool& moves) : moves_(moves), event_(eventfd(1, EFD_CLOEXEC)) {}
  ~ready_fabric() override { ::close(event_); }

  std::string address() const override { return {}; }
  void meet(std::vector<std::string>) override {}
  void send(rota::rank_t, rota::base::buffer) override {}
  std::size_t unsent(rota::rank_t) const override { return 0; }
  std::size_t unsent() const override { return 0; }
  void flush() override {}
  rota::base::buffer spare() override { return {}; }
  void expect(rota::rank_t, std::uint64_t, std::span<std::byte>) override {}
  void send_bulk(rota::rank_t, std::uint64_t, rota::bytes_view) override {}
  void forget(rota::rank_t, std::uint64_t) override {}
  bool poll() override {
    if (moves_) ++moved_;
    return false;
  }
  std::uint64_t moved() const override { return moved_; }
  bool take(listener&) override { return false; }
  int event_fd() const override { return event_; }
  bool arm() override { return true; }
  void sever(rota::rank_t) override {}
  void close(clock_type::time_point) override {}

 private:
  const bool& moves_;
  int event_;
  std::uint64_t moved_ = 0;
};

struct nobody final : far_links::hearer {
  void received(std::uint64_t, bool) override {}
  void sent(rota::rank_t, std::uint64_t) override {}
  void broken(rota::rank_t, const std::string&) override {}
  void suspected(rota::rank_t, bool) override {}
};

struct rank_of_two {
  bool moves = false;
  rota::mpi::doorbell bell;
  nobody hearer;
  far_links links{std::make_unique<ready_fabric>(moves), 2, {}, {5s, 15s}, bell, hearer};

  // Sleeps again and again for `time`, as a rank does that waits. How often it woke.
  int wakes_within(std::chrono::milliseconds time) {
    int wakes = 0;
    for (const auto end = clock_type::now() + time; clock_type::now() < end; ++wakes) {
      const std::uint32_t value = bell.prepare();
      if (!links.anything_waits() && links.arm()) bell.wait(value, time);
      bell.awake();
    }
    return wakes;
  }
};

TEST(far_links, a_rank_whose_event_stays_readable_for_nothing_wakes_once_a_millisecond_at_most) {
  rank_of_two rank;
  const int wakes = rank.wakes_within(500ms);
  EXPECT_LE(wakes, 550);
  EXPECT_GE(wakes, 9);  // the first come at once, and it does not stop
}

TEST(far_links, what_moves_wakes_at_once_also_after_wake_ups_in_vain) {
  rank_of_two rank;
  rank.wakes_within(50ms);
  rank.moves = true;
  // With a pause of a millisecond for each these would take 2 s.
  const auto start = clock_type::now();
  int wakes = 0;
  while (wakes < 2000 && clock_type::now() - start < 10s) wakes += rank.wakes_within(20ms);
  EXPECT_LT(clock_type::now() - start, 1500ms);
}

}  // namespace
