#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "objectstore/board.h"
#include "objectstore/spill_files.h"
#include "objectstore/values.h"
#include "runtime/worker/disk_thread.h"
#include "runtime/worker/store_link.h"

namespace rota::detail {

// Moves values of this rank's part of the store out of memory when somebody needs the room: copies that can be fetched
// again, values that are on disk already, then, in batches, those least lately used to disk. While room is wanted the
// next batch is written ahead, so that the disk works while the room is filled; but where room is wanted for what comes
// back, which will be on disk already when it leaves again, only now and then, so that values which nobody reads give
// way in time. Used by the thread that holds the pump; nothing blocks.
class spiller {
 public:
  struct limits {
    std::string folder;
    std::uint64_t quota = 0;  // bytes on disk of all ranks of the node; 0: nothing is written; chosen: by free room
  };
  static constexpr std::uint64_t chosen = ~std::uint64_t{0};

  spiller(store_link& store, const objectstore::node_memory& memory, std::size_t self, disk_thread& disk, limits most)
      : store_(store), memory_(memory), board_(*memory.boards[self]), disk_(disk), limits_(std::move(most)) {}

  // Whom room is made for.
  struct taker {
    bool returning = false;     // the value could leave again without being written
    bool another_rank = false;  // what comes free goes to it
  };
  // Begins, unless it is at it.
  void make_room(std::size_t bytes, taker whom, wire::outbox& out);
  // Why nothing more is written; empty while nothing stands against it.
  const std::string& why_full() const { return why_full_; }
  const limits& most() const { return limits_; }
  // Bytes that leave memory at once.
  std::size_t batch_size() const;

 private:
  struct batch;
  bool may_write();
  std::uint64_t room_left();
  void write(objectstore::values::evicted found, std::shared_ptr<batch> b, wire::outbox& out);
  void wrote(batch& b, wire::outbox& out);
  void write_ahead(wire::outbox& out);

  store_link& store_;
  const objectstore::node_memory& memory_;
  objectstore::board& board_;
  disk_thread& disk_;
  limits limits_;
  bool writing_ = false;
  bool failed_ = false;   // the last write
  unsigned returns_ = 0;  // times that room was found for what returns
  // What came free last is fresh until then: for this rank, and for others.
  std::chrono::steady_clock::time_point own_fresh_until_{}, others_fresh_until_{};
  std::size_t freed_for_others_ = 0;                // bytes, last
  bool wanted_ = false, wanted_elsewhere_ = false;  // while it was writing; by another rank
  std::string why_full_;
  std::chrono::steady_clock::time_point again_{};  // the disk was full: not before
  std::chrono::steady_clock::time_point warns_again_{};
};

}  // namespace rota::detail
