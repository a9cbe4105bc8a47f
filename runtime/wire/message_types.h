#pragma once

#include <cstdint>

#include "runtime/base/types.h"

namespace rota::wire {

inline constexpr std::uint32_t version = 1;

enum class message : std::uint8_t {
  spawned = 1,
  assign,
  route,
  value,
  done,
  recall,
  recalled,
  blocked,
  count,
  counted,
  pull,
  publish,
  where,
  actor_at,
  end_actor,
  call,
  returned,
  settle,
  free_place,
  query,
  reply,
  lost,
  sync,
  close,
  grant,      // the object store's own: runtime/worker/store_link.h
  granted,    //
  give_back,  //
  part,       // of a record too large for a ring: runtime/worker/links.h
  spawned_all,
  fetch,
  fetched,
  heartbeat,  // between the processes: runtime/worker/far_links.h
  run_ends,   // head -> all, where it goes without them
  lend,       // between the ranks' stores: runtime/wire/store_messages.h
  refuse,     //
  restore,    //
  restored,   //
  make_room,  //
};

inline message type_of(bytes_view record) { return static_cast<message>(record[0]); }

// What a rank says to the head's scheduler. Rank 0 has an agent too, and gets both kinds on the same links.
inline bool for_head(message type) {
  switch (type) {
    case message::spawned:
    case message::spawned_all:
    case message::done:
    case message::recalled:
    case message::blocked:
    case message::count:
    case message::pull:
    case message::publish:
    case message::where:
    case message::end_actor:
    case message::query:
    case message::sync:
    case message::fetched:
      return true;
    default:
      return false;
  }
}

}  // namespace rota::wire
