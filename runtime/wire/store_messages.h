#pragma once

#include "runtime/wire/messages.h"

// The messages between the ranks' parts of the object store; see messages.h.
namespace rota::wire {

// What became of bytes that were asked for.
enum class fetch_outcome : std::uint8_t {
  whole,
  no_room,  // to keep them, in time; or, where they lie, to read them back
  broken,   // the connection
  lost,     // their owner cannot read them back
  away,     // a copy that has left memory: they are to be had from the value's own place
};

// rank -> owner of the place: send me these bytes. They come as a bulk transfer with this number, or REFUSE does.
struct lend_head {
  message type = message::lend;
  std::uint8_t spare[7] = {};
  std::uint64_t number = 0;
  std::uint64_t place = 0;
  std::uint64_t size = 0;
};
struct refuse_head {
  message type = message::refuse;
  fetch_outcome outcome = fetch_outcome::lost;
  std::uint8_t spare[6] = {};
  std::uint64_t number = 0;
};

// rank -> owner of the place, on its node: bring it back into memory. restored is the answer, with the same number;
// then: why not, as text.
struct restore_head {
  message type = message::restore;
  std::uint8_t spare[3] = {};
  std::uint32_t number = 0;
  std::uint64_t place = 0;
};
struct restored_head {
  message type = message::restored;
  fetch_outcome outcome = fetch_outcome::whole;
  std::uint8_t spare[2] = {};
  std::uint32_t number = 0;
};

// rank -> rank of its node: somebody needs so many bytes of the node's store.
struct make_room_head {
  message type = message::make_room;
  bool returning = false;  // it could leave again without being written
  std::uint8_t spare[6] = {};
  std::uint64_t bytes = 0;
};

}  // namespace rota::wire
