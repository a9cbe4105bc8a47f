#pragma once

#include <rota/detail/core.h>

#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "objectstore/extents.h"
#include "objectstore/heap.h"
#include "objectstore/pins.h"
#include "objectstore/spill_files.h"
#include "objectstore/values.h"
#include "runtime/wire/messages.h"
#include "runtime/wire/outbox.h"
#include "runtime/worker/disk_thread.h"

namespace rota::detail {

// rank <-> keeper (the node's lowest rank): extents of the store.
struct grant_head {
  wire::message type = wire::message::grant;  // grant: count wanted; granted, give_back: the run (count 0: none)
  objectstore::extent_table::side from = objectstore::extent_table::side::low;
  std::uint8_t spare[2] = {};
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t number = 0;   // of the request
  std::uint32_t largest = 0;  // granted: the longest run that is free
};

// This rank's part of the node's object store, and, on the node's lowest rank, the keeper's table of extents. The books
// of its values may be used by any thread (they lock); messages go out and come in under the pump.
class store_link {
 public:
  // `node_rank`: of this rank. Spilled values go to files in `folder`.
  store_link(const objectstore::node_memory& memory, std::span<std::byte> ledger, rank_t self, std::size_t node_rank,
             rank_t keeper, objectstore::values::books books, disk_thread& disk, std::string folder);

  // use(values), with their lock.
  template <class F>
  decltype(auto) books(F&& use) {
    const std::lock_guard lock(mutex_);
    return use(values_);
  }
  // Room in this rank's own extents: nullopt where they have none.
  std::optional<place> try_reserve(std::size_t bytes);
  // The place has a value now, which may be moved out of memory.
  void seal(std::uint64_t cell, objectstore::origin from = {});
  void free(std::uint64_t cell, wire::outbox& out);        // under the pump
  void forget(std::vector<objectstore::disk_place> gone);  // under the pump

  // Tells the node how much is on disk.
  void note_spilled() { board_.spilled.store(files_.bytes(), std::memory_order_relaxed); }  // relaxed: a number

  objectstore::pins& pins() { return pins_; }
  objectstore::spill_files& files() { return files_; }
  std::uint32_t extents() const { return static_cast<std::uint32_t>(memory_.pool.size() / objectstore::extent_bytes); }

  // Under the pump: asks the keeper; the answer comes to receive().
  std::uint32_t request(std::uint32_t count, objectstore::extent_table::side from, wire::outbox& out);
  // Under the pump: the answer, once it is there.
  std::optional<grant_head> answer(std::uint32_t number);
  // The answer is not wanted any more: what it grants goes back.
  void withdraw(std::uint32_t number, wire::outbox& out);
  // Populates what was granted (not under the pump: it takes milliseconds) and adds it. False if the machine has no
  // memory for it: the run is then to be given back.
  bool adopt(objectstore::run granted, bool for_books);
  void give_back(objectstore::run r, wire::outbox& out);
  void give_back_all(wire::outbox& out);

  // True if the message was the store's.
  bool receive(rank_t from, bytes_view record, wire::outbox& out);

  std::size_t live_objects();  // values, wherever they are

 private:
  void forget_some();
  void trim(std::size_t keep, wire::outbox& out);
  grant_head answer_to(rank_t rank, grant_head request);

  const objectstore::node_memory& memory_;
  objectstore::board& board_;
  rank_t self_;
  rank_t keeper_;
  std::size_t keep_bytes_;
  std::optional<objectstore::extent_table> table_;  // keeper
  disk_thread& disk_;
  objectstore::spill_files files_;
  std::mutex mutex_;
  objectstore::values values_;  // guarded by mutex_
  objectstore::pins pins_;
  std::vector<objectstore::disk_place> gone_;  // to be forgotten
  bool forgetting_ = false;                    // others are
  std::uint32_t next_number_ = 0;
  std::unordered_map<std::uint32_t, grant_head> answers_;
  std::unordered_set<std::uint32_t> withdrawn_;
};

}  // namespace rota::detail
