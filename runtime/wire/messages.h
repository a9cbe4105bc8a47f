#pragma once

#include <type_traits>

#include "runtime/base/buffer.h"
#include "runtime/base/types.h"
#include "runtime/wire/message_types.h"
#include "runtime/wire/resources.h"
#include "runtime/wire/value.h"

// The messages of docs/protocol.md as they lie in memory: a fixed head, memcpy'd, then the variable parts in the
// order that the head's comment gives. Ranks of one session run one executable, so there is no byte order and no
// version inside a message. Cookie and sender are properties of a shared link and are not repeated in its records.
namespace rota::wire {

enum class where_kind : std::uint8_t { anywhere, spread, on_node, on_rank, near };

// rank -> head: a task or actor that a task or the driver of this rank made. Then: deps ids, held ids, needs (where
// explicit), name, bytes.
struct spawned_head {
  message type = message::spawned;
  std::uint8_t flags = 0;  // of `spawn_flag`
  where_kind where = where_kind::anywhere;
  std::uint8_t needs = one_cpu;
  std::uint32_t function = 0;
  object_id id = 0;
  object_id parent = 0;      // the task that submitted it, 0: the driver
  std::uint64_t target = 0;  // of `where`: node, rank or object
  std::uint64_t mask = 0;    // bit i: argument i is the next of deps
  std::int32_t priority = 0;
  std::uint32_t deps = 0;  // arguments that are resolved before it starts
  std::uint32_t held = 0;  // refs inside its arguments
  std::uint32_t name = 0;  // bytes of its name
  std::uint32_t bytes = 0;
  std::uint32_t spare = 0;
};

enum spawn_flag : std::uint8_t {
  spawn_kept = 1,   // this rank runs it in slots that it holds
  spawn_actor = 2,  // the function constructs an actor, whose id is the task's
};

// rank -> head: `count` tasks of one function, which need one CPU anywhere, with ids in a row and without refs in their
// arguments. Then, for each: its size in 4 bytes, bytes.
struct spawned_all_head {
  message type = message::spawned_all;
  std::uint8_t spare[3] = {};
  std::uint32_t function = 0;
  object_id first = 0;
  object_id parent = 0;
  std::uint32_t count = 0;
  std::uint32_t spare2 = 0;
};

// head -> rank: run this. Then: for each dep its id and value, held ids, serves (rank, count) pairs, needs, name,
// bytes.
struct assign_head {
  message type = message::assign;
  std::uint8_t flags = 0;  // of `spawn_flag`, and assign_to_submitter
  std::uint16_t attempt = 0;
  std::uint8_t needs = one_cpu;
  std::uint8_t spare[3] = {};
  std::uint32_t function = 0;
  std::int32_t priority = 0;
  object_id id = 0;
  object_id parent = 0;
  std::uint64_t mask = 0;
  std::uint32_t deps = 0;
  std::uint32_t held = 0;
  std::uint32_t serves = 0;
  std::uint32_t name = 0;
  std::uint32_t bytes = 0;
  std::uint32_t spare2 = 0;
};
inline constexpr std::uint8_t assign_to_submitter = 4;  // send the result to the rank that named the task, too

// Who is to get a value, or has been sent it: so many tasks that wait there, so many that asked for a copy.
struct serve {
  rank_t rank = 0;
  std::uint32_t count = 0;
  std::uint32_t copies = 0;
};

// head -> producer: `count` more consumers of `object` wait at `rank`; 0: it only asks for a copy.
struct route_head {
  message type = message::route;
  std::uint8_t spare[3] = {};
  rank_t rank = 0;
  object_id object = 0;
  std::uint32_t attempt = 0;
  std::uint32_t count = 1;
};

// producer or head -> consumer. Then: the value. `count` is how many tasks that were handed out before their argument
// it is for: each takes exactly one delivery, so a value that comes before its consumer's ASSIGN is kept. 0: a copy for
// whoever asked, dropped where nobody names the object.
struct value_head {
  message type = message::value;
  std::uint8_t spare[3] = {};
  std::uint32_t count = 0;
  object_id object = 0;
  std::uint32_t attempt = 0;
  std::uint32_t spare2 = 0;
};

// rank -> head. Then: served (rank, count) pairs, the value.
struct done_head {
  message type = message::done;
  std::uint8_t flags = 0;  // done_to_submitter: the submitter has been sent the result
  std::uint16_t attempt = 0;
  std::uint32_t nanoseconds = 0;  // that it ran, saturating
  object_id id = 0;
  std::uint32_t served = 0;
  std::uint32_t blocked = 0;      // tasks of this rank that wait in get now: they need no slot
  std::int64_t blocked_cpus = 0;  // what they asked for, in ten-thousandths
};
inline constexpr std::uint8_t done_to_submitter = 1;

// recall: head -> rank, give back up to `count` tasks that have not started. recalled: the answer, then `count`
// recalled_item (0: all have started or wait for arguments); recalled_unasked: they do not fit beside the rank's
// actors.
struct recall_head {
  message type = message::recall;
  std::uint8_t flags = 0;
  std::uint8_t spare[2] = {};
  std::uint32_t count = 0;
};
inline constexpr std::uint8_t recalled_unasked = 1;
// rank -> head: `count` tasks wait in get now, which asked for `cpus`.
struct blocked_head {
  message type = message::blocked;
  std::uint8_t spare[3] = {};
  std::uint32_t count = 0;
  std::int64_t cpus = 0;
};
struct recalled_item {
  object_id id = 0;
  std::uint32_t attempt = 0;
  std::uint32_t spare = 0;
};

// rank -> head. Then: increments, decrements (8 bytes an id each). With a token the head answers counted.
struct count_head {
  message type = message::count;
  std::uint8_t spare[3] = {};
  std::uint32_t plus = 0;
  std::uint32_t minus = 0;
  std::uint32_t token = 0;
};
struct counted_head {
  message type = message::counted;
  std::uint8_t spare[3] = {};
  std::uint32_t token = 0;
};

// pull, where, end_actor, settle: one id. pull: rank -> head, a copy is wanted here. where: rank -> head, which
// rank has the actor. end_actor: rank -> head, kill it (end_now), or it has ended (0); head -> rank, end it, at once
// (end_now) or after the calls that have come. settle: the refs that came with a call or its result are recorded; the
// sender's hold may go.
struct id_head {
  message type = message::pull;
  std::uint8_t flags = 0;
  std::uint8_t spare[2] = {};
  std::uint32_t spare2 = 0;
  object_id id = 0;
};

inline constexpr std::uint8_t end_now = 1;
inline constexpr std::uint8_t end_forgotten = 2;  // head -> rank: nobody can call it any more

// rank -> head: an object of this rank's own making becomes known. Then: the value (none: it will follow as a DONE).
struct publish_head {
  message type = message::publish;
  std::uint8_t spare[7] = {};
  object_id id = 0;
};

// -> owner: a value in the owner's heap is no longer needed.
struct free_place_head {
  message type = message::free_place;
  std::uint8_t spare[7] = {};
  std::uint64_t place = 0;
};

// query: rank -> head; reply: head -> rank. Then: bytes, by kind.
enum class query_kind : std::uint8_t { claim_name, find_name, nodes };
struct query_head {
  message type = message::query;
  query_kind kind = query_kind::nodes;
  std::uint8_t spare[2] = {};
  std::uint32_t number = 0;
};

// lost: head -> all; once more with lost_closed when every survivor has answered. sync: rank -> head. Then (sync): for
// each object that came from the lost rank, or that tasks here wait for, a synced_item and its value (none: it has not
// come); the ids of the copies that were promised and have not come.
struct lost_head {
  message type = message::lost;
  std::uint8_t flags = 0;
  std::uint8_t spare[2] = {};
  rank_t rank = 0;
  std::uint32_t view = 0;
  std::uint32_t items = 0;   // sync
  std::uint32_t copies = 0;  // sync
};
inline constexpr std::uint8_t lost_closed = 1;
struct synced_item {
  object_id object = 0;
  std::uint32_t attempt = 0;
  std::uint32_t waiting = 0;  // tasks that were handed out to this rank and wait for their delivery
};

// A message without variable parts, as a record.
template <class Head>
requires std::is_trivially_copyable_v<Head> bytes_view as_bytes(const Head& head) {
  return {reinterpret_cast<const std::byte*>(&head), sizeof(head)};
}

}  // namespace rota::wire
