#include "runtime/worker/transfers.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "mpi/fabric.h"

namespace rota::detail {
namespace {

using wire::fetch_outcome;

// A fabric that notes what it is told: a real one does not refuse or break on demand.
struct noting_fabric final : mpi::fabric {
  std::vector<std::string> told;

  void note(const char* what, rank_t who, std::uint64_t number, std::size_t bytes) {
    told.push_back(std::string(what) + " " + std::to_string(who) + " " + std::to_string(number) + " " +
                   std::to_string(bytes));
  }
  void expect(rank_t from, std::uint64_t number, std::span<std::byte> into) override {
    note("expect", from, number, into.size());
  }
  void send_bulk(rank_t to, std::uint64_t number, bytes_view bytes) override { note("send", to, number, bytes.size()); }
  void forget(rank_t from, std::uint64_t number) override { note("forget", from, number, 0); }

  std::string address() const override { return {}; }
  void meet(std::vector<std::string>) override {}
  void send(rank_t, base::buffer) override {}
  std::size_t unsent(rank_t) const override { return 0; }
  std::size_t unsent() const override { return 0; }
  void flush() override {}
  base::buffer spare() override { return {}; }
  bool poll() override { return false; }
  std::uint64_t moved() const override { return 0; }
  bool take(listener&) override { return false; }
  int event_fd() const override { return -1; }
  bool arm() override { return true; }
  void sever(rank_t) override {}
  void close(std::chrono::steady_clock::time_point) override {}
};

struct noting_outbox final : wire::outbox {
  std::vector<std::pair<rank_t, wire::lend_head>> asked;
  void send(rank_t to, bytes_view record) override {
    asked.emplace_back(to, base::cursor(record).get<wire::lend_head>());
  }
};

class transfers_of_a_rank : public testing::Test {
 protected:
  transfers_of_a_rank() : transfers_(out_) { transfers_.use(&way_); }
  transfers::ended note() {
    return [this](fetch_outcome outcome) { ended_.push_back(outcome); };
  }

  noting_fabric way_;
  noting_outbox out_;
  transfers transfers_;
  std::array<std::byte, 100> bytes_{};
  std::vector<fetch_outcome> ended_;
};

TEST_F(transfers_of_a_rank, a_pull_announces_its_memory_before_it_asks) {
  transfers_.pull(3, 4711, bytes_, note());
  ASSERT_EQ(out_.asked.size(), 1u);
  EXPECT_EQ(out_.asked[0].first, 3u);
  EXPECT_EQ(out_.asked[0].second.place, 4711u);
  EXPECT_EQ(out_.asked[0].second.size, 100u);
  const std::uint64_t number = out_.asked[0].second.number;
  EXPECT_EQ(way_.told, std::vector{"expect 3 " + std::to_string(number) + " 100"});
  EXPECT_TRUE(ended_.empty());
  transfers_.received(number, true);
  EXPECT_EQ(ended_, std::vector{fetch_outcome::whole});
}

TEST_F(transfers_of_a_rank, a_broken_pull_ends_as_that) {
  transfers_.pull(3, 4711, bytes_, note());
  transfers_.received(out_.asked[0].second.number, false);
  EXPECT_EQ(ended_, std::vector{fetch_outcome::broken});
}

TEST_F(transfers_of_a_rank, a_refused_pull_ends_once_its_memory_is_free) {
  for (const fetch_outcome why : {fetch_outcome::lost, fetch_outcome::no_room}) {
    ended_.clear();
    transfers_.pull(3, 4711, bytes_, note());
    wire::refuse_head no;
    no.number = out_.asked.back().second.number;
    no.outcome = why;
    transfers_.refused(no);
    EXPECT_EQ(way_.told.back(), "forget 3 " + std::to_string(no.number) + " 0");
    EXPECT_TRUE(ended_.empty()) << "what was under way may still land";
    transfers_.received(no.number, false);
    EXPECT_EQ(ended_, std::vector{why});
    transfers_.refused(no);  // that comes too late
  }
}

TEST_F(transfers_of_a_rank, what_is_lent_stays_until_it_was_sent_to_that_rank) {
  std::vector<int> over;
  transfers_.lend(1, 7, bytes_, [&] { over.push_back(1); });
  transfers_.lend(2, 7, bytes_, [&] { over.push_back(2); });  // numbers are the receivers' own
  transfers_.sent(2, 7);
  EXPECT_EQ(over, std::vector{2});
  transfers_.sent(1, 7);
  EXPECT_EQ(over, (std::vector{2, 1}));
  EXPECT_EQ(way_.told, (std::vector<std::string>{"send 1 7 100", "send 2 7 100"}));
}

}  // namespace
}  // namespace rota::detail
