#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "mpi/rma_layout.h"
#include "mpi/rma_ring.h"
#include "mpi/rma_settings.h"

namespace {

using namespace rota::mpi;
using rota::bytes_view;

constexpr std::size_t capacity = 4096;

// A window and puts that are under way: they arrive in any order, and in parts.
class fake_window {
 public:
  explicit fake_window(unsigned seed) : random_(seed) {}

  const std::byte* ring() const { return memory_.data(); }
  void put(const frame_writer::placed& frame) {
    for (std::size_t at = 0; at < frame.bytes.size();) {
      const std::size_t size = std::min<std::size_t>(1 + random_() % 300, frame.bytes.size() - at);
      flying_.push_back({frame.offset + at, frame.bytes.subspan(at, size)});
      at += size;
    }
  }
  // Some part arrives: MPI reads the sender's memory only now.
  bool arrive() {
    if (flying_.empty()) return false;
    const auto which = flying_.begin() + static_cast<std::ptrdiff_t>(random_() % flying_.size());
    std::copy(which->bytes.begin(), which->bytes.end(), memory_.begin() + static_cast<std::ptrdiff_t>(which->at));
    flying_.erase(which);
    return true;
  }

 private:
  struct part {
    std::size_t at;
    bytes_view bytes;
  };
  std::mt19937 random_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(capacity);
  std::vector<part> flying_;
};

std::vector<std::byte> body_of(std::mt19937& random, std::size_t size) {
  std::vector<std::byte> body(size);
  for (std::byte& b : body) b = static_cast<std::byte>(random() % 3);  // few values: old bytes look like new ones
  return body;
}

// Both ends of a ring, with the puts between them.
struct ring {
  explicit ring(unsigned seed = 1, std::uint64_t sums = 7)
      : puts(seed), out(capacity, sums, line()), in(capacity, sums) {
    in.use(puts.ring());
  }
  const std::byte* line() const { return reinterpret_cast<const std::byte*>(credits.data()); }
  void send(bytes_view body) { puts.put(out.write(true, body)); }
  void settle() {
    while (puts.arrive()) {
    }
  }
  std::optional<frame_reader::frame> take() {
    const auto f = in.front();
    if (f) in.pop(*f);
    return f;
  }
  void give_credit() {
    const frame_reader::credit c = in.tell();
    std::memcpy(reinterpret_cast<std::byte*>(credits.data()) + c.offset, c.bytes.data(), c.bytes.size());
  }

  fake_window puts;
  std::array<std::uint64_t, credit_words> credits{};
  frame_writer out;
  frame_reader in;
};

TEST(rma_ring, frames_come_whole_and_in_order_however_their_bytes_arrive) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    ring r(seed);
    std::deque<std::vector<std::byte>> sent;
    int received = 0;
    while (received < 2000) {
      if (const auto room = r.out.room(); room && random() % 3 == 0) {
        sent.push_back(body_of(random, random() % (*room + 1)));
        r.send(sent.back());
      }
      r.puts.arrive();
      if (r.in.owes(random() % 8 == 0)) r.give_credit();
      const auto f = r.in.front();
      if (!f) continue;
      ASSERT_FALSE(sent.empty());
      ASSERT_TRUE(std::equal(f->body.begin(), f->body.end(), sent.front().begin(), sent.front().end()));
      sent.pop_front();
      r.in.pop(*f);
      ++received;
    }
  }
}

TEST(rma_ring, what_was_not_read_is_never_written_over) {
  ring r;
  std::size_t frames = 0;
  for (; r.out.room(); ++frames) r.send({});
  EXPECT_EQ(frames, capacity / frame_unit);
  EXPECT_FALSE(r.out.all_read());
  r.credits[3] = capacity + 1;  // more than was sent: nonsense is no credit
  EXPECT_FALSE(r.out.room());
  r.credits[3] = 0;
  r.credits[0] = 3 * frame_unit;
  r.credits[1] = frame_unit;  // overtaken
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(r.out.room());
    r.send({});
  }
  EXPECT_FALSE(r.out.room());
}

TEST(rma_ring, who_waits_for_room_is_not_forgotten) {
  for (std::size_t size : {0, 40, 100, 1000}) {
    ring r;
    const std::vector<std::byte> body(size);
    for (int lap = 0; lap < 100; ++lap) {
      for (auto room = r.out.room(); room && *room >= size; room = r.out.room()) r.send(body);
      r.settle();
      const put_word credit = r.out.next_credit();
      while (r.take()) {
        if (r.in.owes(false)) r.give_credit();
      }
      ASSERT_TRUE(credit.filled());
      if (auto room = r.out.room(); room && *room < size) r.send({});  // past the ring's end
    }
    r.settle();
    while (r.take()) {
    }
    if (r.in.owes(true)) r.give_credit();
    EXPECT_TRUE(r.out.all_read());
  }
}

TEST(rma_ring, a_ring_that_comes_back_goes_on_where_it_was) {
  ring r;
  const fake_window other(2);
  for (int i = 0; i < 5; ++i) r.send({});
  r.settle();
  while (r.take()) {
  }
  r.give_credit();
  ASSERT_TRUE(r.out.all_read());
  r.out.rest();
  r.in.use(nullptr);
  r.in.use(other.ring());  // all zero
  EXPECT_FALSE(r.in.front());
  r.in.use(r.puts.ring());  // with what was there before
  EXPECT_FALSE(r.in.next().filled());
  r.send(bytes_view(r.line(), 8));
  r.settle();
  EXPECT_TRUE(r.in.next().filled());
  EXPECT_TRUE(r.take());
}

TEST(rma_ring, a_frame_of_another_ring_or_of_an_earlier_lap_is_none) {
  ring r(1, 5);
  frame_reader other(capacity, 6);
  other.use(r.puts.ring());
  r.send({});
  r.settle();
  EXPECT_TRUE(other.next().filled());
  EXPECT_FALSE(other.front());
  for (std::size_t i = 0; i < capacity / frame_unit; ++i) {
    ASSERT_TRUE(r.take());
    if (r.in.owes(false)) r.give_credit();
    if (i + 1 == capacity / frame_unit) break;
    r.send({});
    r.settle();
  }
  EXPECT_FALSE(r.in.next().filled());
}

TEST(rma_ring, a_sum_depends_on_each_bit) {
  std::mt19937 random(3);
  std::vector<std::byte> bytes = body_of(random, 203);
  const std::uint64_t sum = sum_of(9, bytes);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_NE(sum_of(9, bytes), sum);
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  EXPECT_NE(sum_of(8, bytes), sum);
  EXPECT_NE(sum_of(9, bytes_view(bytes).first(202)), sum);
}

TEST(rma_layout, each_byte_has_one_writer) {
  const rma_layout layout({0, 0, 1, 2, 1}, 2);
  for (rota::rank_t owner = 0; owner < 5; ++owner) {
    std::map<std::size_t, std::size_t> parts;  // begin to end
    for (rota::rank_t writer = 0; writer < 5; ++writer) {
      EXPECT_TRUE(parts.emplace(layout.line(writer), layout.line(writer) + rma_layout::line_bytes).second);
      if (!layout.far(owner, writer) || (owner != 0 && writer != 0)) continue;
      const std::size_t at = layout.star(owner, writer);
      EXPECT_TRUE(parts.emplace(at, at + layout.star_ring()).second);
    }
    for (std::size_t i = 0; i < layout.granted_rings(owner); ++i) {
      const std::size_t at = layout.granted(owner, i);
      EXPECT_TRUE(parts.emplace(at, at + rma_layout::granted_ring).second);
    }
    std::size_t end = 0;
    for (const auto& [begin, stop] : parts) {
      EXPECT_EQ(begin, end);
      end = stop;
    }
    EXPECT_EQ(end, layout.bytes(owner));
  }
  EXPECT_EQ(layout.granted_rings(0), 0u);
  EXPECT_EQ(layout.granted_rings(1), 2u);  // of 3 that may ask
  EXPECT_EQ(layout.granted_rings(2), 2u);
}

TEST(rma_layout, the_star_of_ten_thousand_ranks_is_bounded) {
  std::vector<std::uint32_t> nodes;
  for (std::uint32_t r = 0; r < 10'000; ++r) nodes.push_back(r / 10);
  EXPECT_EQ(rma_layout({0, 1}, 64).star_ring(), std::size_t{256} << 10);
  const rma_layout layout(nodes, 64);
  EXPECT_LT(layout.bytes(0), std::size_t{256} << 20);
  EXPECT_LT(layout.bytes(1), std::size_t{8} << 20);
}

TEST(rma_settings, what_the_user_set_is_judged) {
  std::map<std::string, std::string> set;
  const variable_lookup lookup = [&](const char* name) -> const char* {
    const auto found = set.find(name);
    return found == set.end() ? nullptr : found->second.c_str();
  };
  EXPECT_TRUE(rma_obstacle(lookup).empty());
  for (const char* good : {"sm,ucx", "ucx,sm", "^pt2pt", "sm,rdma"}) {
    set["OMPI_MCA_osc"] = good;
    EXPECT_TRUE(rma_obstacle(lookup).empty()) << good;
  }
  for (const char* bad : {"ucx", "rdma", "^sm", "^ucx,sm", "sm"}) {
    set["OMPI_MCA_osc"] = bad;
    EXPECT_NE(rma_obstacle(lookup).find(bad), std::string::npos) << bad;
  }
  EXPECT_FALSE(launched_on_nodes(lookup, 0));
  EXPECT_FALSE(launched_on_nodes(lookup, 1));
  EXPECT_TRUE(launched_on_nodes(lookup, 2));
  set["OMPI_COMM_WORLD_SIZE"] = set["OMPI_COMM_WORLD_LOCAL_SIZE"] = "4";
  EXPECT_FALSE(launched_on_nodes(lookup, 2));  // mpirun knows better
  set["OMPI_COMM_WORLD_LOCAL_SIZE"] = "2";
  EXPECT_TRUE(launched_on_nodes(lookup, 0));
}

}  // namespace
