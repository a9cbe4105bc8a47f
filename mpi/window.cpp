#include "mpi/window.h"

#include <rota/error.h>
#include <sys/mman.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <bit>
#include <new>
#include <string>

#include "mpi/patience.h"
#include "runtime/base/pages.h"

namespace rota::mpi {
namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t smallest_ring = std::size_t{4} << 10;
constexpr std::size_t largest_peer_ring = std::size_t{64} << 10;
constexpr const char* shared_memory_folder = "/dev/shm";
// MPI adds a header of its own and a page of alignment to each window.
constexpr std::size_t mpi_margin = std::size_t{1} << 20;

std::size_t round_up(std::size_t value, std::size_t unit) { return (value + unit - 1) / unit * unit; }

std::size_t peer_ring_bytes(int n, std::size_t budget) {
  const auto pairs = static_cast<std::size_t>(n) * static_cast<std::size_t>(std::max(n - 1, 1));
  return std::clamp(std::bit_floor(budget / pairs), smallest_ring, largest_peer_ring);
}

void require_valid(const window_options& options) {
  if (options.pool_bytes % extent_bytes != 0) throw config_error("window: pool_bytes is not a multiple of 2 MiB");
  if (options.head_ring_bytes < smallest_ring || !std::has_single_bit(options.head_ring_bytes)) {
    throw config_error("window: head_ring_bytes is not a power of two of at least 4 KiB");
  }
}

int head_on_node(const world& w) { return w.facts(0).node == w.node() ? static_cast<int>(w.facts(0).node_rank) : -1; }

std::uint64_t free_shared_memory() {
  struct statvfs about {};
  if (statvfs(shared_memory_folder, &about) != 0) return 0;
  return std::uint64_t{about.f_bavail} * about.f_frsize;
}

[[noreturn]] void throw_no_room(const world& w, const char* where, std::uint64_t needed, std::uint64_t free) {
  throw out_of_memory("the object store and mailboxes of host " + w.facts(w.rank()).host + " need " +
                      std::to_string(needed) + " bytes of " + where + ", but only " + std::to_string(free) +
                      " are free: choose a smaller store with --rota-store=BYTES, or make room");
}

}  // namespace

window_layout::window_layout(int n, int head, const window_options& options)
    : head_(head),
      ledger_bytes_(round_up(options.ledger_bytes, 64)),
      head_ring_(options.head_ring_bytes),
      peer_ring_(peer_ring_bytes(n, options.ring_budget)),
      pool_bytes_(options.pool_bytes),
      books_bytes_(options.books_bytes) {
  require_valid(options);
  std::size_t at = 0;
  for (int owner = 0; owner < n; ++owner) {
    slices_.push_back(at);
    at += sizeof(doorbell) + notes_bytes + ledger_bytes_ + board_bytes;
    for (int producer = 0; producer < n; ++producer) {
      if (producer != owner) at += ring_bytes(ring_capacity(owner, producer));
    }
    at = round_up(at, page_bytes);
  }
  slices_.push_back(at);
  pool_ = at;
}

std::size_t window_layout::ring(int consumer, int producer) const {
  std::size_t at = board(consumer) + board_bytes;
  for (int before = 0; before < producer; ++before) {
    if (before != consumer) at += ring_bytes(ring_capacity(consumer, before));
  }
  return at;
}

node_window::node_window(const world& w, const window_options& options)
    : rank_(static_cast<int>(w.facts(w.rank()).node_rank)),
      size_(static_cast<int>(w.node_ranks().size())),
      ledger_bytes_(round_up(options.ledger_bytes, 64)),
      layout_(size_, head_on_node(w), options) {
  size_ == 1 ? map_alone(w, options.usable_bytes) : map_shared(w);
  prepare_slice(w);
}

// A node of one shares with nobody: no file, no room in /dev/shm needed, and pages can be given back as in a window
// (Open MPI would take private memory from malloc, where they cannot).
void node_window::map_alone(const world& w, std::size_t usable) {
  if (layout_.total() > usable) throw_no_room(w, "memory", layout_.total(), usable);
  void* memory = mmap(nullptr, layout_.total(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw_no_room(w, "memory", layout_.total(), usable);
  base_ = static_cast<std::byte*>(memory);
}

void node_window::map_shared(const world& w) {
  const std::uint64_t needed = layout_.total() + mpi_margin;
  std::uint64_t free = free_shared_memory();
  // One rank decides for all: they may not see the same number.
  broadcast_over(w.node_comm(), &free, sizeof free, 0);
  if (needed > free) throw_no_room(w, shared_memory_folder, needed, free);

  void* mine = nullptr;
  come_together(w.node_comm());
  const auto bytes = static_cast<MPI_Aint>(rank_ == 0 ? layout_.total() + page_bytes : 0);
  check(MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, w.node_comm(), &mine, &win_), "MPI_Win_allocate_shared");
  check(MPI_Win_set_errhandler(win_, MPI_ERRORS_RETURN), "MPI_Win_set_errhandler");
  MPI_Aint size = 0;
  int unit = 0;
  void* all = nullptr;
  check(MPI_Win_shared_query(win_, 0, &size, &unit, &all), "MPI_Win_shared_query");
  // MPI promises 8 bytes of alignment. Mappings begin at pages, so rounding up gives each rank the same byte.
  const auto address = reinterpret_cast<std::uintptr_t>(all);
  base_ = reinterpret_cast<std::byte*>(round_up(address, page_bytes));
}

void node_window::prepare_slice(const world& w) {
  const std::size_t begin = layout_.slice(rank_);
  int good = base::populate(base_ + begin, layout_.slice_end(rank_) - begin) ? 1 : 0;
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, w.node_comm(), &request), "MPI_Iallreduce");
  await(request);
  if (good == 0) throw_no_room(w, shared_memory_folder, layout_.pool(), free_shared_memory());
  new (base_ + begin) doorbell;
  for (int producer = 0; producer < size_; ++producer) {
    if (producer != rank_) new (base_ + layout_.ring(rank_, producer)) ring_header;
  }
  come_together(w.node_comm());
}

void node_window::close() {
  if (win_ != MPI_WIN_NULL) {
    check(MPI_Win_free(&win_), "MPI_Win_free");
  } else if (base_ != nullptr) {
    munmap(base_, layout_.total());
  }
  base_ = nullptr;
}

ring_header* node_window::ring(int consumer, int producer) {
  return std::launder(reinterpret_cast<ring_header*>(base_ + layout_.ring(consumer, producer)));
}

mailbox_writer node_window::writer_to(int to) { return {ring(to, rank_), layout_.ring_capacity(to, rank_)}; }

mailbox_reader node_window::reader_from(int from) { return {ring(rank_, from), layout_.ring_capacity(rank_, from)}; }

}  // namespace rota::mpi
