#pragma once

#include "runtime/wire/messages.h"

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
};

enum class fetch_outcome : std::uint8_t { whole, no_room, broken };

// rank -> head: the answer. `place`: in the sender's own heap.
struct fetched_head {
  message type = message::fetched;
  fetch_outcome outcome = fetch_outcome::whole;
  std::uint8_t spare[6] = {};
  object_id object = 0;
  std::uint64_t place = 0;
};

// rank -> owner of the place: send me these bytes. They come as a bulk transfer with this number.
struct lend_head {
  message type = message::lend;
  std::uint8_t spare[7] = {};
  std::uint64_t number = 0;
  std::uint64_t place = 0;
  std::uint64_t size = 0;
};

}  // namespace rota::wire
