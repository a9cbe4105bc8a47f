#pragma once

#include <rota/detail/core.h>

#include <mutex>
#include <optional>
#include <unordered_map>

#include "objectstore/extents.h"
#include "objectstore/heap.h"
#include "runtime/wire/messages.h"
#include "runtime/wire/outbox.h"

namespace rota::detail {

// rank <-> keeper (the node's lowest rank): extents of the store.
struct grant_head {
  wire::message type = wire::message::grant;  // grant: count wanted; granted, give_back: the run (count 0: none)
  std::uint8_t spare[3] = {};
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t number = 0;   // of the request
  std::uint32_t largest = 0;  // granted: the longest run that is free
};

// This rank's part of the node's object store, and, on the node's lowest rank, the keeper's table of extents. The heap
// may be used by any thread (it locks); messages go out and come in under the pump.
class store_link {
 public:
  store_link(std::span<std::byte> pool, std::span<std::byte> ledger, rank_t self, rank_t keeper);

  // Room in this rank's own extents: nullopt where they have none.
  std::optional<place> try_reserve(std::size_t bytes);
  void free(std::uint64_t offset, wire::outbox& out);  // under the pump

  std::byte* at(std::uint64_t offset) const { return pool_.data() + offset; }
  std::uint32_t extents() const { return static_cast<std::uint32_t>(pool_.size() / objectstore::extent_bytes); }

  // Under the pump: asks the keeper; the answer comes to receive().
  std::uint32_t request(std::uint32_t count, wire::outbox& out);
  // Under the pump: the answer, once it is there.
  std::optional<grant_head> answer(std::uint32_t number);
  // Populates what was granted (not under the pump: it takes milliseconds) and adds it. False if the machine has no
  // memory for it: the run is then to be given back.
  bool adopt(objectstore::run granted);
  void give_back(objectstore::run r, wire::outbox& out);
  void give_back_all(wire::outbox& out);

  // True if the message was the store's.
  bool receive(rank_t from, bytes_view record, wire::outbox& out);

  std::size_t live_objects();
  std::size_t used_bytes();

 private:
  void trim(std::size_t keep, wire::outbox& out);
  grant_head answer_to(rank_t rank, grant_head request);

  std::span<std::byte> pool_;
  rank_t self_;
  rank_t keeper_;
  std::size_t keep_bytes_;
  std::optional<objectstore::extent_table> table_;  // keeper
  std::mutex mutex_;
  objectstore::heap heap_;
  std::uint32_t next_number_ = 0;
  std::unordered_map<std::uint32_t, grant_head> answers_;
};

}  // namespace rota::detail
