#pragma once

#include <mpi.h>

#include <cstddef>
#include <span>
#include <vector>

#include "mpi/doorbell.h"
#include "mpi/mailbox.h"
#include "mpi/world.h"

namespace rota::mpi {

inline constexpr std::size_t extent_bytes = std::size_t{2} << 20;
inline constexpr std::size_t notes_bytes = 256;
inline constexpr std::size_t board_bytes = 4096;

struct window_options {
  std::size_t pool_bytes = 0;                               // a multiple of extent_bytes
  std::size_t ledger_bytes = 4096;                          // of each slice
  std::size_t books_bytes = 0;                              // behind the pool for each rank; a multiple of 4096
  std::size_t ring_budget = std::size_t{16} << 20;          // all mailboxes of a node that do not touch the head
  std::size_t head_ring_bytes = std::size_t{256} << 10;     // each mailbox from or to the head; a power of two
  std::size_t usable_bytes = static_cast<std::size_t>(-1);  // a node of one rank maps no more than this
};

// Where everything lies in a node's memory; the same on each rank of the node. Offsets are in bytes.
class window_layout {
 public:
  // n ranks on the node; head: the head's node rank, or -1 when it lives elsewhere.
  window_layout(int n, int head, const window_options& options);

  std::size_t total() const { return pool_ + pool_bytes_ + (slices_.size() - 1) * books_bytes_; }
  std::size_t pool() const { return pool_; }
  std::size_t pool_bytes() const { return pool_bytes_; }
  std::size_t books_bytes() const { return books_bytes_; }
  std::size_t slice(int owner) const { return slices_[static_cast<std::size_t>(owner)]; }
  std::size_t slice_end(int owner) const { return slices_[static_cast<std::size_t>(owner) + 1]; }
  std::size_t notes(int owner) const { return slice(owner) + sizeof(doorbell); }
  std::size_t ledger(int owner) const { return notes(owner) + notes_bytes; }
  std::size_t board(int owner) const { return ledger(owner) + ledger_bytes_; }
  std::size_t ring(int consumer, int producer) const;
  std::size_t ring_capacity(int consumer, int producer) const {
    return consumer == head_ || producer == head_ ? head_ring_ : peer_ring_;
  }

 private:
  int head_;
  std::size_t ledger_bytes_, head_ring_, peer_ring_, pool_bytes_, books_bytes_;
  std::size_t pool_ = 0;
  std::vector<std::size_t> slices_;  // n + 1: the last is the end
};

// The memory that the ranks of a node share: a slice for each rank (doorbell, notes, ledger, board, one mailbox for
// each other rank as producer), one pool of extents, and behind it books for each rank. Every byte has one writer, see
// DESIGN rule 1. The accessors may be called by any thread; what they return lives until close(). Fresh memory is zero.
// Slices are populated, pool and books are not: a store into pages that were not populated may die with SIGBUS. The
// destructor leaves the mapping to the process's end.
class node_window {
 public:
  // Collective over the node. All its ranks throw out_of_memory alike when the node lacks the room.
  node_window(const world& w, const window_options& options);
  node_window(const node_window&) = delete;
  node_window& operator=(const node_window&) = delete;
  ~node_window() = default;

  // Gives the memory back. Collective over the node; waits for its other ranks, so call world::meet before. A window
  // that lost a rank is never closed.
  void close();
  bool is_open() const { return base_ != nullptr; }

  int rank() const { return rank_; }
  int size() const { return size_; }
  const window_layout& layout() const { return layout_; }

  // The mailbox of node rank `to` that this rank fills. At most one writer in use. REQUIRES: to != rank().
  mailbox_writer writer_to(int to);
  // The mailbox of this rank that node rank `from` fills. At most one reader in use. REQUIRES: from != rank().
  mailbox_reader reader_from(int from);

  doorbell& bell(int owner) { return *reinterpret_cast<doorbell*>(base_ + layout_.slice(owner)); }

  // Written by `owner` alone, read by all.
  std::span<std::byte> notes(int owner) { return {base_ + layout_.notes(owner), notes_bytes}; }
  std::span<std::byte> ledger(int owner) { return {base_ + layout_.ledger(owner), ledger_bytes_}; }
  std::byte* board(int owner) { return base_ + layout_.board(owner); }  // board_bytes, at a multiple of 64

  // Where the books of `owner` begin, from the pool's beginning.
  std::size_t books(int owner) const {
    return layout_.pool_bytes() + static_cast<std::size_t>(owner) * layout_.books_bytes();
  }
  // Extent i begins at i * extent_bytes. Aligned to pages, not to extents.
  std::span<std::byte> pool() { return {base_ + layout_.pool(), layout_.pool_bytes()}; }

 private:
  ring_header* ring(int consumer, int producer);
  void map_alone(const world& w, std::size_t usable);
  void map_shared(const world& w);
  void prepare_slice(const world& w);

  int rank_;
  int size_;
  std::size_t ledger_bytes_;
  window_layout layout_;
  std::byte* base_ = nullptr;
  MPI_Win win_ = MPI_WIN_NULL;  // null for a node of one rank, which maps its memory itself
};

}  // namespace rota::mpi
