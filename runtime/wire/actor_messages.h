#pragma once

#include "runtime/wire/messages.h"

// The messages about actors and their calls; see messages.h.
namespace rota::wire {

// head -> rank: where an actor is. Then: a value (none: it lives; failed: it does not, and why).
struct actor_at_head {
  message type = message::actor_at;
  std::uint8_t spare[3] = {};
  rank_t rank = no_rank;
  object_id actor = 0;
  std::uint32_t incarnation = 0;
  std::uint32_t spare2 = 0;
};

// caller -> actor's rank. Then: deps ids, held ids, with call_named the call's name (its size in 4 bytes, the text),
// bytes. The calls of one caller, which is a task, another call or (0) a program's own thread, run in the order of
// their sequence numbers.
struct call_head {
  message type = message::call;
  std::uint8_t flags = 0;
  std::uint8_t spare[2] = {};
  std::uint32_t function = 0;
  object_id actor = 0;
  object_id id = 0;  // of the result
  object_id caller = 0;
  std::uint64_t mask = 0;
  std::uint64_t sequence = 0;
  std::uint32_t incarnation = 0;
  std::uint32_t deps = 0;
  std::uint32_t held = 0;
  std::uint32_t bytes = 0;
};
inline constexpr std::uint8_t call_named = 1;  // few calls are: the others carry no size of a name

// actor's rank -> caller. Then: the value. flags: returned_settled, the caller's hold on the call's refs may go;
// otherwise a settle follows.
struct returned_head {
  message type = message::returned;
  std::uint8_t flags = 0;
  std::uint8_t spare[6] = {};
  object_id id = 0;
};
inline constexpr std::uint8_t returned_settled = 1;

}  // namespace rota::wire
