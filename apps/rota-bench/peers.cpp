#include "apps/rota-bench/peers.h"

#include <mpi.h>
#include <rota/rota.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <stdexcept>

#include "apps/rota-bench/bench.h"
#include "mpi/launcher.h"
#include "mpi/mailbox.h"
#include "runtime/base/futex.h"
#include "runtime/base/id_map.h"

namespace bench {
namespace {

using rota::mpi::mailbox_reader;
using rota::mpi::mailbox_writer;
using rota::mpi::ring_header;

constexpr std::size_t ring_capacity = std::size_t{256} << 10;
constexpr std::uint64_t last_call = ~std::uint64_t{0};

struct ring {
  ring_header header;
  std::array<std::byte, ring_capacity> bytes;
};

// In memory that all ranks share.
struct shared_page {
  alignas(64) std::atomic<std::uint32_t> gate_open;
  ring calls;
  ring answers;
};

struct message {
  std::uint64_t id;
  std::uint64_t value;
};

// Of this process; set by open_peers, before any other thread can look.
MPI_Comm comm = MPI_COMM_NULL;
shared_page* page = nullptr;
int nodes = 1;

void check(int rc, const char* call) {
  if (rc != MPI_SUCCESS) throw std::runtime_error(std::string(call) + " failed");
}

void map_page() {
  MPI_Comm node = MPI_COMM_NULL;
  check(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node), "MPI_Comm_split_type");
  int size = 0;
  int rank = 0;
  check(MPI_Comm_size(node, &size), "MPI_Comm_size");
  check(MPI_Comm_rank(node, &rank), "MPI_Comm_rank");
  nodes = 1;
  if (size != rank_count()) {  // what is measured between nodes needs no common memory
    nodes = 2;
    return;
  }

  constexpr std::size_t slack = alignof(shared_page);
  const MPI_Aint bytes = rank == 0 ? sizeof(shared_page) + slack : 0;
  MPI_Win window = MPI_WIN_NULL;  // lives as long as the process
  void* start = nullptr;
  check(MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, node, &start, &window), "MPI_Win_allocate_shared");
  MPI_Aint whole = 0;
  int unit = 0;
  check(MPI_Win_shared_query(window, 0, &whole, &unit, &start), "MPI_Win_shared_query");
  auto at = reinterpret_cast<std::uintptr_t>(start);
  at = (at + slack - 1) / slack * slack;  // each rank may see the window elsewhere, but at whole pages
  page = reinterpret_cast<shared_page*>(at);
  if (rank == 0) new (page) shared_page{};
  check(MPI_Barrier(comm), "MPI_Barrier");
}

int answer_mpi(int rounds, int peer) {
  std::uint64_t word = 0;
  for (int i = 0; i < rounds; ++i) {
    MPI_Recv(&word, 1, MPI_UINT64_T, peer, 0, comm, MPI_STATUS_IGNORE);
    MPI_Send(&word, 1, MPI_UINT64_T, peer, 0, comm);
  }
  return rounds;
}

// Seconds a round trip, of which the first eighth is not counted.
double ask_mpi(int rounds, int peer) {
  const int warm_up = rounds / 8;
  std::uint64_t word = 0;
  std::uint64_t start = 0;
  for (int i = 0; i < rounds; ++i) {
    if (i == warm_up) start = rota::base::now_ns();
    MPI_Send(&word, 1, MPI_UINT64_T, peer, 0, comm);
    MPI_Recv(&word, 1, MPI_UINT64_T, peer, 0, comm, MPI_STATUS_IGNORE);
  }
  return static_cast<double>(rota::base::now_ns() - start) * 1e-9 / (rounds - warm_up);
}

// Between two looks at a ring that was empty or full: gives the core away now and then, for ranks that share one.
class patience {
 public:
  void wait() {
    if (++looks_ % 1024 == 0) sched_yield();
    __builtin_ia32_pause();
  }

 private:
  unsigned looks_ = 0;
};

bool try_write(mailbox_writer& to, const message& what) {
  std::byte* room = to.try_reserve(sizeof(what));
  if (room == nullptr) return false;
  new (room) message(what);
  to.commit(sizeof(what));
  return true;
}

message read(mailbox_reader& from) {
  const message what = *reinterpret_cast<const message*>(from.front().data());
  (void)from.pop();  // nobody sleeps for room
  return what;
}

int answer_ring() {
  mailbox_reader calls(&page->calls.header, ring_capacity);
  mailbox_writer answers(&page->answers.header, ring_capacity);
  patience idle;
  for (;;) {
    if (calls.empty()) {
      if (answers.has_unpublished()) answers.publish();
      idle.wait();
      continue;
    }
    message call = read(calls);
    if (call.id == last_call) break;
    ++call.value;
    while (!try_write(answers, call)) {
      answers.publish();
      idle.wait();
    }
  }
  answers.publish();
  return 0;
}

// The caller's end: what is in flight, and what came of it.
class ring_client {
 public:
  std::uint64_t run(std::size_t calls, std::size_t window) {
    for (std::size_t i = 0; i < calls; ++i) {
      if (in_flight_.size() >= window) flush();
      while (in_flight_.size() >= window) take_answers();
      in_flight_.set(i + 1, 1);
      write({i + 1, i});
      if (i % 64 == 63) flush();
    }
    flush();
    while (in_flight_.size() > 0) take_answers();
    return sum_;
  }

  void end() {
    write({last_call, 0});
    flush();
  }

 private:
  void write(const message& what) {
    while (!try_write(calls_, what)) {
      flush();
      take_answers();
    }
  }

  void flush() {
    calls_.publish();
    if (!answers_.empty()) take_answers();
  }

  void take_answers() {
    if (answers_.empty()) idle_.wait();
    while (!answers_.empty()) {
      const message answer = read(answers_);
      in_flight_.erase(answer.id);
      sum_ += answer.value;
    }
  }

  mailbox_writer calls_{&page->calls.header, ring_capacity};
  mailbox_reader answers_{&page->answers.header, ring_capacity};
  rota::base::id_map<std::uint8_t> in_flight_{};
  std::uint64_t sum_ = 0;
  patience idle_{};
};

}  // namespace

double open_peers(int& argc, char**& argv) {
  if (!rota::mpi::has_launcher()) rota::mpi::prepare_singleton();
  int threads = 0;
  const double seconds =
      seconds_of([&] { check(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads), "MPI_Init_thread"); });
  std::atexit([] { MPI_Finalize(); });
  if (threads < MPI_THREAD_MULTIPLE) throw std::runtime_error("this MPI has no MPI_THREAD_MULTIPLE");
  check(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup");
  map_page();
  return seconds;
}

int rank_count() {
  int size = 0;
  MPI_Comm_size(comm, &size);
  return size;
}

int node_count() { return nodes; }

double mpi_roundtrip(int rounds) {
  const auto peer = rota::remote<answer_mpi>.with({.where = rota::on_rank(1)})(rounds, 0);
  const double seconds = ask_mpi(rounds, 1);
  peer.get();
  return seconds;
}

double mpi_hop(int rounds) {
  const auto peer = rota::remote<answer_mpi>.with({.where = rota::on_rank(2)})(rounds, 1);
  const auto seconds = rota::remote<ask_mpi>.with({.where = rota::on_rank(1)})(rounds, 2);
  peer.get();
  return seconds.get() / 2;
}

double ring_calls(std::size_t calls, std::size_t window) {
  new (&page->calls.header) ring_header{};
  new (&page->answers.header) ring_header{};
  const auto peer = rota::remote<answer_ring>.with({.where = rota::on_rank(1)})();
  ring_client client;
  client.run(1000, window);  // until the peer has started
  const std::uint64_t before = client.run(0, window);
  const double seconds = seconds_of([&] { client.run(calls, window); });
  const std::uint64_t sum = client.run(0, window) - before;
  client.end();
  peer.get();
  expect(sum == calls * (calls + 1) / 2, "ring", "wrong answers");
  return static_cast<double>(calls) / seconds;
}

void close_gate() { page->gate_open.store(0); }

void open_gate() {
  page->gate_open.store(1);
  rota::base::futex_wake(page->gate_open, 1 << 30);
}

int wait_at_gate() {
  while (page->gate_open.load() == 0) rota::base::futex_wait(page->gate_open, 0);
  return 1;
}

}  // namespace bench
