#pragma once

#include <rota/config.h>

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include "mpi/window.h"
#include "runtime/agent/work.h"
#include "runtime/wire/store_messages.h"
#include "runtime/worker/disk_thread.h"
#include "runtime/worker/rank_setup.h"
#include "runtime/worker/restoring.h"
#include "runtime/worker/rooms.h"
#include "runtime/worker/spiller.h"
#include "runtime/worker/store_link.h"
#include "runtime/worker/transfers.h"

namespace rota::detail {

// This rank's part of the object store and all that moves values into it and out of it: extents, disk, other nodes.
// Used by the thread that holds the pump, save link(), whose books any thread may use; nothing blocks but stop().
class local_store {
 public:
  // `fetched` hears of each fetch how it ended, and by which cell its bytes are found.
  using fetch_end = std::function<void(std::uint64_t number, wire::fetch_outcome outcome, std::uint64_t cell)>;
  local_store(mpi::node_window& window, const rank_setup& setup, const config& values, wire::outbox& out,
              std::function<void(const std::function<void()>&)> at_the_pump, fetch_end fetched);

  store_link& link() { return link_; }
  rooms& room() { return rooms_; }
  void use(mpi::fabric* way) { transfers_.use(way); }

  // Brings a value from the store of another node.
  void fetch(std::uint64_t number, const agent::source& from, std::uint64_t size);
  void received(std::uint64_t number, bool whole) { transfers_.received(number, whole); }
  void sent(rank_t to, std::uint64_t number) { transfers_.sent(to, number); }

  // Has the owner bring a value back into memory. The answer is there once, until no_answer().
  std::uint32_t ask_back(rank_t owner, std::uint64_t cell);
  struct brought {
    wire::fetch_outcome outcome;
    std::string why;
  };
  const brought* answer(std::uint32_t number) const;
  void no_answer(std::uint32_t number) { asked_.erase(number); }

  // Searches for room go on in tend().
  bool searching() const { return rooms_.searching(); }
  bool tend() { return rooms_.tend(); }  // true if one has ended
  // True if the message was the store's.
  bool receive(rank_t from, bytes_view record);

  bool has_thread() const { return disk_.started(); }
  void stop() { disk_.stop(); }  // not with the pump

 private:
  void lend(rank_t to, const wire::lend_head& asked);
  void lend_bytes(rank_t to, const wire::lend_head& asked);
  void lend_next();
  void lend_over(std::uint64_t place);
  void refuse(rank_t to, const wire::lend_head& asked, wire::fetch_outcome why);
  void came_back(std::uint32_t number, wire::fetch_outcome outcome, const std::string& why);

  rank_t self_;
  wire::outbox& out_;
  fetch_end fetched_;
  objectstore::node_memory memory_;
  disk_thread disk_;
  store_link link_;
  spiller spiller_;
  rooms rooms_;
  transfers transfers_;
  restoring restoring_;
  struct loan {  // of a value on disk
    rank_t to = no_rank;
    wire::lend_head asked;
    objectstore::disk_place from;
  };
  std::deque<loan> loans_;  // that wait for their turn
  bool lends_ = false;      // one is read or sent
  std::uint32_t last_asked_ = 0;
  std::unordered_map<std::uint32_t, std::optional<brought>> asked_;
};

}  // namespace rota::detail
