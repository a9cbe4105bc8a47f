#pragma once

#include "runtime/wire/messages.h"
#include "runtime/wire/store_messages.h"

// The messages about copies of values on other nodes; see messages.h.
namespace rota::wire {

// head -> rank: bring a copy of this value to your node.
struct fetch_head {
  message type = message::fetch;
  std::uint8_t spare[3] = {};
  rank_t from = no_rank;  // in whose heap it lies now
  object_id object = 0;
  std::uint64_t place = 0;
  std::uint64_t size = 0;
  rank_t home = no_rank;  // where it was made: there it lies for as long as anybody needs it
  std::uint32_t spare2 = 0;
  std::uint64_t home_place = 0;
};

// rank -> head: the answer. `place`: in the sender's own heap.
struct fetched_head {
  message type = message::fetched;
  fetch_outcome outcome = fetch_outcome::whole;
  std::uint8_t spare[6] = {};
  object_id object = 0;
  std::uint64_t place = 0;
};

}  // namespace rota::wire
