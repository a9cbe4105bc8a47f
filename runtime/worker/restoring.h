#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/wire/store_messages.h"
#include "runtime/worker/disk_thread.h"
#include "runtime/worker/rooms.h"
#include "runtime/worker/store_link.h"
#include "runtime/worker/transfers.h"

namespace rota::detail {

// Brings values of this rank's part of the store back into memory: from disk, or, copies, from the node where they came
// from. While values are wanted in the order in which they left, those that follow are read ahead, twice as much each
// time, as far as there is room. Used by the thread that holds the pump; nothing blocks.
class restoring {
 public:
  using answer = std::function<void(wire::fetch_outcome, const std::string& why)>;

  restoring(store_link& store, const objectstore::node_memory& memory, disk_thread& disk, rooms& room,
            const spiller& leaving, transfers& others)
      : store_(store), memory_(memory), disk_(disk), rooms_(room), spiller_(leaving), transfers_(others) {}

  // Calls then() once the value is in memory, at once if it is, or when it cannot be brought back.
  void want(std::uint64_t cell, answer then);

 private:
  void begin(std::uint64_t cell);
  void read_ahead(std::optional<std::uint64_t> next);
  void read(std::uint64_t cell, const objectstore::disk_place& from, std::uint64_t offset);
  void came(std::uint64_t cell, std::uint64_t offset, wire::fetch_outcome outcome, const std::string& why);
  void tell(std::uint64_t cell, wire::fetch_outcome outcome, const std::string& why);

  store_link& store_;
  const objectstore::node_memory& memory_;
  disk_thread& disk_;
  rooms& rooms_;
  const spiller& spiller_;
  transfers& transfers_;
  std::unordered_map<std::uint64_t, std::vector<answer>> waiting_;  // by cell
  std::optional<std::uint64_t> expected_;                           // the cell behind the one that was read last
  std::size_t ahead_ = 0;                                           // bytes to read ahead
};

}  // namespace rota::detail
