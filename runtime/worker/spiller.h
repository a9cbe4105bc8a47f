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

  // Whom room is made for: a value that is being made; one that comes here and could leave again without being
  // written; another rank, whom what comes free goes to.
  enum class taker : std::uint8_t { fresh, returning, another };
  // Begins, unless it is at it.
  void make_room(std::size_t bytes, taker whom, wire::outbox& out);
  // Why nothing more is written; empty while nothing stands against it.
  const std::string& why_full() const { return why_full_; }
  const limits& most() const { return limits_; }

 private:
  struct batch;
  bool may_write();
  std::uint64_t room_left();
  void write(objectstore::values::evicted found, std::shared_ptr<batch> b, wire::outbox& out);
  void wrote(batch& b, wire::outbox& out);
  void write_ahead(wire::outbox& out);
  std::size_t batch_size() const;

  store_link& store_;
  const objectstore::node_memory& memory_;
  objectstore::board& board_;
  disk_thread& disk_;
  limits limits_;
  bool writing_ = false;
  bool failed_ = false;   // the last write
  unsigned returns_ = 0;  // times that room was found for what returns, since a batch was written ahead for it
  struct freed {
    std::size_t bytes = 0;
    std::chrono::steady_clock::time_point fresh_until{};
  };
  freed own_, elsewhere_;                           // what came free last for this rank, and for others
  bool wanted_ = false, wanted_elsewhere_ = false;  // while it was writing; by another rank
  std::string why_full_;
  std::chrono::steady_clock::time_point again_{};  // the disk was full: not before
  std::chrono::steady_clock::time_point warns_again_{};
};

}  // namespace rota::detail
