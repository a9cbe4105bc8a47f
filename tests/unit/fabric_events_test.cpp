#include "mpi/fabric_events.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

using rota::bytes_view;
using rota::rank_t;
using rota::base::buffer;
using rota::mpi::fabric_events;

buffer filled(std::size_t size) {
  buffer b;
  b.extend(size);
  return b;
}

struct listener final : rota::mpi::fabric::listener {
  std::vector<std::string> told;

  void batch(rank_t from, bytes_view bytes) override {
    told.push_back("batch " + std::to_string(from) + " " + std::to_string(bytes.size()));
  }
  void received(std::uint64_t number, bool whole) override { end("received", number, whole); }
  void heard(rank_t from) override { told.push_back("heard " + std::to_string(from)); }
  void sent(rank_t to, std::uint64_t number, bool whole) override { end("sent " + std::to_string(to), number, whole); }
  void broken(rank_t peer, const std::string& why) override {
    told.push_back("broken " + std::to_string(peer) + " " + why);
  }
  void end(const std::string& what, std::uint64_t number, bool whole) {
    told.push_back(what + " " + std::to_string(number) + (whole ? " whole" : " failed"));
  }
};

TEST(fabric_events, are_told_once_and_in_order) {
  fabric_events events;
  listener to;
  EXPECT_TRUE(events.empty());
  EXPECT_FALSE(events.take(to));
  events.heard(3);
  events.batch(2, filled(5));
  events.received(7, true);
  events.sent(4, 8, false);
  events.broken(3, "cut");
  EXPECT_FALSE(events.empty());
  EXPECT_TRUE(events.take(to));
  EXPECT_EQ(to.told,
            (std::vector<std::string>{"heard 3", "batch 2 5", "received 7 whole", "sent 4 8 failed", "broken 3 cut"}));
  EXPECT_FALSE(events.take(to));
}

TEST(fabric_events, buffers_of_batches_are_used_again_but_large_ones) {
  fabric_events events;
  listener to;
  events.batch(1, filled(1000));
  events.keep(filled(std::size_t{1} << 20));
  events.take(to);
  const buffer again = events.spare();
  EXPECT_TRUE(again.empty());
  EXPECT_GE(again.capacity(), 1000u);
  EXPECT_LT(again.capacity(), std::size_t{1} << 20);
  EXPECT_EQ(events.spare().capacity(), 0u);
}

}  // namespace
