#include "mpi/window.h"

#include <gtest/gtest.h>
#include <rota/error.h>
#include <sys/resource.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "mpi/world.h"
#include "runtime/base/pages.h"

namespace {

using namespace std::chrono_literals;
using namespace rota::mpi;

constexpr auto patience = 20s;

class window : public testing::Test {
 protected:
  window() : world_(world::adopt(MPI_COMM_WORLD)), window_(*world_, {.pool_bytes = 4 * extent_bytes}) {}

  void TearDown() override {
    world_->meet(patience);
    window_.close();
    world_->finish(patience);
  }

  std::unique_ptr<world> world_;
  node_window window_;
};

std::uint64_t word_of(int from, int to, std::uint64_t number) {
  return number * 1'000'003 + static_cast<std::uint64_t>(from * 1000 + to);
}

std::size_t size_of(std::uint64_t number) { return 16 + number % 200; }

bool is_record(std::span<const std::byte> record, std::size_t size, std::uint64_t word) {
  if (record.size() != size) return false;
  return std::memcmp(record.data(), &word, 8) == 0 && std::memcmp(record.data() + size - 8, &word, 8) == 0;
}

// One direction between two ranks: records of 16 to 215 bytes that begin and end with their word.
struct outgoing {
  mailbox_writer writer;
  int to;
  std::uint64_t sent = 0;
};

struct incoming {
  mailbox_reader reader;
  int from;
  std::uint64_t received = 0;
  std::uint64_t wrong = 0;
};

bool send_some(outgoing& out, int me, std::uint64_t records, doorbell& bell) {
  bool moved = false;
  for (int burst = 0; burst < 64 && out.sent < records; ++burst) {
    const std::size_t size = size_of(out.sent);
    std::byte* at = out.writer.try_reserve(size);
    if (at == nullptr) break;
    const std::uint64_t word = word_of(me, out.to, out.sent);
    std::memcpy(at + size - 8, &word, 8);
    std::memcpy(at, &word, 8);
    out.writer.commit(size);
    ++out.sent;
    moved = true;
  }
  if (out.writer.has_unpublished()) out.writer.publish();
  if (moved) ring_if_sleeping(bell);
  return moved;
}

bool receive_some(incoming& in, int me, doorbell& bell) {
  bool moved = false;
  for (; !in.reader.empty(); moved = true) {
    const auto record = in.reader.front();
    if (!is_record(record, size_of(in.received), word_of(in.from, me, in.received))) ++in.wrong;
    ++in.received;
    if (in.reader.pop()) ring(bell);
  }
  return moved;
}

TEST_F(window, every_pair_exchanges_100000_records) {
  constexpr std::uint64_t records = 100'000;
  const int me = window_.rank();
  std::vector<outgoing> outs;
  std::vector<incoming> ins;
  for (int peer = 0; peer < window_.size(); ++peer) {
    if (peer == me) continue;
    outs.push_back({window_.writer_to(peer), peer});
    ins.push_back({window_.reader_from(peer), peer});
  }
  doorbell& mine = window_.bell(me);
  const auto work = [&] {
    bool moved = false;
    for (auto& in : ins) moved |= receive_some(in, me, window_.bell(in.from));
    for (auto& out : outs) moved |= send_some(out, me, records, window_.bell(out.to));
    return moved;
  };
  const auto done = [&] {
    for (auto& out : outs)
      if (out.sent < records) return false;
    for (auto& in : ins)
      if (in.received < records) return false;
    return true;
  };
  while (!done()) {
    if (work()) continue;
    const std::uint32_t value = mine.prepare();
    for (auto& out : outs) out.writer.want_room(out.sent < records);
    if (!work() && !done()) mine.wait(value);  // no limit: a lost wake-up would hang
    mine.awake();
  }
  for (auto& in : ins) EXPECT_EQ(in.wrong, 0u) << "from " << in.from;
}

TEST_F(window, sleepers_wake_each_other_in_a_circle) {
  constexpr std::uint64_t rounds = 5'000;
  const int me = window_.rank(), n = window_.size();
  if (n == 1) return;
  const int next = (me + 1) % n;
  mailbox_writer out = window_.writer_to(next);
  mailbox_reader in = window_.reader_from((me + n - 1) % n);
  doorbell& mine = window_.bell(me);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (int part = 0; part < 2; ++part) {
      if ((me == 0) == (part == 0)) {  // rank 0 sends first, all others receive first
        std::byte* at = out.try_reserve(8);
        ASSERT_NE(at, nullptr);
        std::memcpy(at, &round, 8);
        out.commit(8);
        out.publish();
        ring_if_sleeping(window_.bell(next));
        continue;
      }
      while (in.empty()) {
        const std::uint32_t value = mine.prepare();
        if (in.empty()) mine.wait(value);
        mine.awake();
      }
      std::uint64_t got = 0;
      std::memcpy(&got, in.front().data(), 8);
      ASSERT_EQ(got, round);
      if (in.pop()) ring(window_.bell((me + n - 1) % n));
    }
  }
}

TEST_F(window, memory_is_aligned_zero_and_seen_by_all) {
  const auto me = static_cast<std::size_t>(window_.rank());
  for (int owner = 0; owner < window_.size(); ++owner) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&window_.bell(owner)) % 4096, 0u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(window_.ledger(owner).data()) % 64, 0u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(window_.notes(owner).data()) % 64, 0u);
  }
  const auto pool = window_.pool();
  ASSERT_EQ(pool.size(), 4 * extent_bytes);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pool.data()) % 4096, 0u);

  const auto extent = pool.subspan(me * extent_bytes, extent_bytes);
  ASSERT_TRUE(rota::base::populate(extent.data(), extent.size()));
  for (std::size_t i = 0; i < extent_bytes; i += 4096) ASSERT_EQ(extent[i], std::byte{0});
  std::memset(extent.data(), static_cast<int>(me + 1), extent.size());
  std::memset(window_.notes(window_.rank()).data(), static_cast<int>(me + 1), notes_bytes);
  std::memset(window_.ledger(window_.rank()).data(), static_cast<int>(me + 1), 4096);
  world_->meet(patience);
  for (int owner = 0; owner < window_.size(); ++owner) {
    const auto value = static_cast<std::byte>(owner + 1);
    const std::size_t at = static_cast<std::size_t>(owner) * extent_bytes;
    EXPECT_EQ(pool[at], value);
    EXPECT_EQ(pool[at + extent_bytes - 1], value);
    EXPECT_EQ(window_.notes(owner)[notes_bytes - 1], value);
    EXPECT_EQ(window_.ledger(owner)[4095], value);
    EXPECT_TRUE(owner == window_.rank() || window_.reader_from(owner).empty());
  }
  world_->meet(patience);
  rota::base::release(extent.data(), extent.size());
  EXPECT_EQ(extent[0], std::byte{0});
  world_->meet(patience);
  for (int owner = 0; owner < window_.size(); ++owner) {
    EXPECT_EQ(pool[static_cast<std::size_t>(owner) * extent_bytes], std::byte{0});
  }
}

TEST_F(window, mailboxes_with_the_head_are_larger) {
  const int me = window_.rank();
  for (int peer = 0; peer < window_.size(); ++peer) {
    if (peer == me) continue;
    const std::size_t expected = (me == 0 || peer == 0 ? 256u : 64u) << 10;
    EXPECT_EQ(window_.writer_to(peer).max_record(), expected / 4);
  }
}

TEST_F(window, a_store_larger_than_the_node_is_refused_by_all_ranks_alike) {
  try {
    node_window too_large(*world_, {.pool_bytes = (std::size_t{1} << 45)});
    FAIL() << "32 TiB were there";
  } catch (const rota::out_of_memory& refused) {
    const std::string what = refused.what();
    EXPECT_NE(what.find("--rota-store"), std::string::npos) << what;
    EXPECT_NE(what.find(world_->facts(world_->rank()).host), std::string::npos) << what;
  }
  EXPECT_THROW(node_window(*world_, {.pool_bytes = 1}), rota::config_error);
}

TEST(world, gathers_texts_of_different_sizes) {
  auto w = world::adopt(MPI_COMM_WORLD);
  const auto text_of = [](rota::rank_t rank) {
    return std::string(rank == 1 ? 0 : 1 + rank * 100'000, static_cast<char>('a' + rank));
  };
  const auto all = w->allgather(text_of(w->rank()));
  ASSERT_EQ(all.size(), w->size());
  for (rota::rank_t rank = 0; rank < w->size(); ++rank) EXPECT_EQ(all[rank], text_of(rank));
  const rota::rank_t root = w->size() - 1;
  EXPECT_EQ(w->broadcast(w->rank() == root ? text_of(root) : "not this", root), text_of(root));
  EXPECT_EQ(w->broadcast(""), "");
  w->finish(patience);
}

TEST(world, knows_every_rank) {
  auto w = world::adopt(MPI_COMM_WORLD);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  EXPECT_EQ(w->rank(), static_cast<rota::rank_t>(rank));
  EXPECT_EQ(w->size(), static_cast<rota::rank_t>(size));
  EXPECT_EQ(w->facts(w->rank()).pid, getpid());
  EXPECT_FALSE(w->facts(0).host.empty());
  EXPECT_EQ(w->nodes(), 1u);
  ASSERT_EQ(w->node_ranks().size(), w->size());
  for (rota::rank_t r = 0; r < w->size(); ++r) {
    EXPECT_EQ(w->node_ranks()[r], r);
    EXPECT_EQ(w->facts(r).node_rank, r);
    EXPECT_EQ(w->facts(r).node, 0u);
  }
  w->finish(patience);
}

TEST(world, uses_an_mpi_that_is_there_and_leaves_it_alone) {
  int argc = 0;
  char** argv = nullptr;
  auto w = world::start(argc, argv);
  EXPECT_EQ(w->init_time().count(), 0);
  w->finish(patience);
  int finalized = 1;
  MPI_Finalized(&finalized);
  EXPECT_EQ(finalized, 0);
}

TEST(world, names_the_rank_that_does_not_come) {
  auto w = world::adopt(MPI_COMM_WORLD);
  const rota::rank_t late = w->size() - 1;
  if (late == 0) return w->finish(patience);
  if (w->rank() == late) {
    MPI_Barrier(MPI_COMM_WORLD);  // comes only when the others have given up
  } else {
    try {
      w->meet(50ms);
      ADD_FAILURE() << "nobody was missing";
    } catch (const rota::error& missed) {
      if (w->rank() == 0) {
        const std::string name = "rank " + std::to_string(late) + " (" + w->facts(late).host;
        EXPECT_NE(std::string(missed.what()).find(name), std::string::npos) << missed.what();
      }
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  w->abandon();
}

TEST(world, waiting_for_others_takes_little_cpu) {
  auto w = world::adopt(MPI_COMM_WORLD);
  const auto cpu_now = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return std::chrono::seconds(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           std::chrono::microseconds(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  };
  const auto before = cpu_now();
  if (w->rank() == w->size() - 1) std::this_thread::sleep_for(300ms);  // what the others wait for
  w->meet(patience);
  EXPECT_LT(cpu_now() - before, 100ms);
  w->finish(patience);
}

TEST(world, errors_of_mpi_carry_the_name_of_the_call) {
  try {
    check(MPI_ERR_COMM, "MPI_Something");
    FAIL();
  } catch (const rota::error& failure) {
    EXPECT_NE(std::string(failure.what()).find("MPI_Something"), std::string::npos);
    EXPECT_NE(std::string(failure.what()).find("communicator"), std::string::npos);
  }
}

}  // namespace
