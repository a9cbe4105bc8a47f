// Values that lie on other nodes: fetched for this node, since what this rank's program reads lies in its own store.
#include "runtime/agent/agent.h"
#include "runtime/wire/actor_messages.h"
#include "runtime/wire/copy_messages.h"

namespace rota::agent {

// The result that this rank submitted a task for lies on another node: it comes if somebody here needs the bytes.
void agent::note_elsewhere(object& o) {
  o.flags &= static_cast<std::uint16_t>(~object::pushed);
  o.state.store(object_state::elsewhere, std::memory_order_release);  // pairs with the client's look
  news_ = true;
  if (o.flags & object::wanted) ask_for(o);
}

// The head wants a copy on this node.
void agent::on_fetch(bytes_view record) {
  auto head = base::cursor(record).get<wire::fetch_head>();
  const std::uint64_t number = ++fetching_.last;
  fetching_.by_number[number].object = head.object;
  fetch(number, {head.from, head.place, head.home, head.home_place}, head.size);
}

// The result of a call lies on the node of its actor. True: it is on its way, and the call is over when it is here.
bool agent::fetch_result(rank_t from, object_id call, const wire::value_view& v, bytes_view record) {
  if (v.kind != wire::value_kind::placed || !nodes_.far(v.owner)) return false;
  const std::uint64_t number = ++fetching_.last;
  fetching& f = fetching_.by_number[number];
  f.object = call;
  f.from = from;
  f.returned.append(record);
  fetching_.results[call] = number;
  fetch(number, {.rank = v.owner, .place = v.place}, v.size);
  return true;
}

void agent::fetched(std::uint64_t number, wire::fetch_outcome outcome, std::uint64_t place) {
  auto found = fetching_.by_number.extract(number);
  const fetching f = std::move(found.mapped());
  if (!f.returned.empty()) return finish_fetched_result(f, outcome, place);
  wire::fetched_head head;
  head.outcome = outcome;
  head.object = f.object;
  head.place = place;
  send_head(wire::as_bytes(head));
}

// What the caller of an actor gets instead of a result that lies on another node.
static wire::failure not_fetched(wire::fetch_outcome outcome) {
  switch (outcome) {
    case wire::fetch_outcome::no_room:
      return {wire::failure_kind::out_of_memory,
              "no room in the node's store for the result of a call to an actor of another node; raise --rota-store or "
              "let go of refs",
              {}};
    case wire::fetch_outcome::lost:
      return {wire::failure_kind::object_lost,
              "the actor's rank cannot read back the result of a call, which it had spilled to disk",
              {}};
    default:
      return {wire::failure_kind::actor_unavailable,
              "the connection to the actor's rank broke while its result was under way",
              {}};
  }
}

void agent::finish_fetched_result(const fetching& f, wire::fetch_outcome outcome, std::uint64_t place) {
  fetching_.results.erase(f.object);
  base::cursor cursor(f.returned.view());
  auto head = cursor.get<wire::returned_head>();
  wire::value_view v = wire::get_value(cursor);
  release_place(v.owner, v.place);
  object* result = find(f.object);
  if (!result || !(result->flags & object::calling)) {  // the call has failed meanwhile
    if (outcome == wire::fetch_outcome::whole) free_place(place);
    return;
  }
  const bool settled = f.settled || (head.flags & wire::returned_settled);
  if (outcome == wire::fetch_outcome::whole) {
    v.owner = self_;
    v.place = place;
    return complete_call(*result, v, f.from, settled);
  }
  const base::buffer why = wire::encode(not_fetched(outcome));
  if (wire::id_count(v.contains) > 0) {  // lent with the result, and not taken
    wire::id_head settle;
    settle.type = wire::message::settle;
    settle.id = f.object;
    send(f.from, wire::as_bytes(settle));
  }
  complete_call(*result, wire::failed_value(why.view()), f.from, settled);
}

}  // namespace rota::agent
