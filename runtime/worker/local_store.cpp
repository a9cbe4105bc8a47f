#include "runtime/worker/local_store.h"

#include <algorithm>

namespace rota::detail {
namespace {

objectstore::node_memory memory_of(mpi::node_window& window) {
  objectstore::node_memory m;
  m.pool = window.pool();
  for (int r = 0; r < window.size(); ++r) m.boards.push_back(&objectstore::board_at(window.board(r)));
  return m;
}

}  // namespace

local_store::local_store(mpi::node_window& window, const rank_setup& setup, const config& values, wire::outbox& out,
                         std::function<void(const std::function<void()>&)> at_the_pump, fetch_end fetched)
    : self_(setup.rank),
      out_(out),
      fetched_(std::move(fetched)),
      memory_(memory_of(window)),
      disk_(std::move(at_the_pump)),
      link_(memory_, window.ledger(window.rank()), setup.rank, static_cast<std::size_t>(window.rank()),
            setup.node_ranks.front(), {window.books(window.rank()), window.layout().books_bytes()}, disk_,
            values.spill_dir),
      spiller_(link_, memory_, static_cast<std::size_t>(window.rank()), disk_, {values.spill_dir, values.spill_quota}),
      rooms_(link_, memory_, disk_, spiller_, out,
             {setup.rank, static_cast<std::size_t>(window.rank()), setup.node_ranks, setup.host},
             values.store_patience),
      transfers_(out),
      restoring_(link_, memory_, disk_, rooms_, spiller_, transfers_) {}

void local_store::fetch(std::uint64_t number, const agent::source& from, std::uint64_t size) {
  auto take = [this, number, from, size] {
    const std::optional<detail::place> room = link_.try_reserve(size);
    if (!room) return false;
    transfers_.pull(from.rank, from.place, {room->data, size},
                    [this, number, from, cell = room->cell](wire::fetch_outcome outcome) {
                      if (outcome != wire::fetch_outcome::whole) {
                        link_.free(cell, out_);
                      } else {
                        link_.seal(cell, {from.home, from.home_place});
                      }
                      fetched_(number, outcome, cell);
                    });
    return true;
  };
  rooms_.find(size, std::move(take),
              [this, number](const rooms::search&) { fetched_(number, wire::fetch_outcome::no_room, 0); });
}

void local_store::refuse(rank_t to, const wire::lend_head& asked, wire::fetch_outcome why) {
  wire::refuse_head no;
  no.outcome = why;
  no.number = asked.number;
  out_.send(to, wire::as_bytes(no));
}

// Whoever asks holds room for it, so lending must not wait for room here: nodes that fetch from each other would all
// wait. What is on disk goes out by private memory; a copy that has left is to be had from its home.
void local_store::lend(rank_t to, const wire::lend_head& asked) {
  using whereabouts = objectstore::values::whereabouts;
  std::optional<objectstore::disk_place> from;
  const whereabouts where = link_.books([&](objectstore::values& v) {
    // Of another size is another value: the one that was asked for is wanted no more.
    const whereabouts now = v.size_of(asked.place) == asked.size ? v.where(asked.place) : whereabouts::unknown;
    if (now == whereabouts::away || now == whereabouts::on_its_way) from = v.lend_from_disk(asked.place);
    return now;
  });
  if (where == whereabouts::unknown) return refuse(to, asked, wire::fetch_outcome::lost);
  if (where == whereabouts::in_memory) return lend_bytes(to, asked);
  if (!from) return refuse(to, asked, wire::fetch_outcome::away);
  loans_.push_back({to, asked, *from});
  lend_next();
}

void local_store::lend_bytes(rank_t to, const wire::lend_head& asked) {
  const bytes_view bytes = link_.books([&](objectstore::values& v) { return v.lend(asked.place); });
  transfers_.lend(to, asked.number, bytes, [this, place = asked.place] { lend_over(place); });
}

// One at a time: private memory holds no more than one value.
void local_store::lend_next() {
  if (lends_ || loans_.empty()) return;
  lends_ = true;
  const loan next = loans_.front();
  loans_.pop_front();
  auto bytes = std::make_shared<std::vector<std::byte>>();
  auto outcome = std::make_shared<wire::fetch_outcome>(wire::fetch_outcome::whole);
  disk_.now(
      [this, next, bytes, outcome] {
        try {
          bytes->resize(next.from.size);
          if (!link_.files().read(next.from, *bytes).empty()) *outcome = wire::fetch_outcome::lost;
        } catch (const std::bad_alloc&) {
          *outcome = wire::fetch_outcome::no_room;
        }
      },
      [this, next, bytes, outcome] {
        auto over = [this, bytes, place = next.asked.place] {
          lend_over(place);
          lends_ = false;
          lend_next();
        };
        if (*outcome == wire::fetch_outcome::whole) return transfers_.lend(next.to, next.asked.number, *bytes, over);
        refuse(next.to, next.asked, *outcome);
        over();
      });
}

void local_store::lend_over(std::uint64_t place) {
  std::vector<objectstore::disk_place> gone;
  link_.books([&](objectstore::values& v) { v.lend_over(place, gone); });
  link_.forget(std::move(gone));
}

std::uint32_t local_store::ask_back(rank_t owner, std::uint64_t cell) {
  const std::uint32_t number = ++last_asked_;
  asked_[number];
  if (owner == self_) {
    restoring_.want(
        cell, [this, number](wire::fetch_outcome outcome, const std::string& why) { came_back(number, outcome, why); });
  } else {
    wire::restore_head head;
    head.number = number;
    head.place = cell;
    out_.send(owner, wire::as_bytes(head));
  }
  return number;
}

void local_store::came_back(std::uint32_t number, wire::fetch_outcome outcome, const std::string& why) {
  auto asked = asked_.find(number);
  if (asked != asked_.end()) asked->second = brought{outcome, why};  // else nobody waits any more
}

const local_store::brought* local_store::answer(std::uint32_t number) const {
  auto asked = asked_.find(number);
  return asked != asked_.end() && asked->second ? &*asked->second : nullptr;
}

bool local_store::receive(rank_t from, bytes_view record) {
  base::cursor cursor(record);
  switch (wire::type_of(record)) {
    case wire::message::lend:
      lend(from, cursor.get<wire::lend_head>());
      return true;
    case wire::message::refuse:
      transfers_.refused(cursor.get<wire::refuse_head>());
      return true;
    case wire::message::restore: {
      const auto head = cursor.get<wire::restore_head>();
      restoring_.want(head.place,
                      [this, from, number = head.number](wire::fetch_outcome outcome, const std::string& why) {
                        wire::restored_head answer;
                        answer.outcome = outcome;
                        answer.number = number;
                        base::buffer reply;
                        reply.put(answer);
                        reply.append(why.data(), why.size());
                        out_.send(from, reply.view());
                      });
      return true;
    }
    case wire::message::restored: {
      const auto head = cursor.get<wire::restored_head>();
      const bytes_view why = cursor.rest();
      came_back(head.number, head.outcome, {reinterpret_cast<const char*>(why.data()), why.size()});
      return true;
    }
    case wire::message::make_room: {
      const auto head = cursor.get<wire::make_room_head>();
      spiller_.make_room(head.bytes, {.returning = head.returning, .another_rank = true}, out_);
      return true;
    }
    default:
      return link_.receive(from, record, out_);
  }
}

}  // namespace rota::detail
