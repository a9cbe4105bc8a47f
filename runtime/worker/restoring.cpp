#include "runtime/worker/restoring.h"

#include <algorithm>

namespace rota::detail {

using objectstore::values;

namespace {

constexpr int most_values_ahead = 16;

}  // namespace

void restoring::want(std::uint64_t cell, answer then) {
  switch (store_.books([&](const values& v) { return v.where(cell); })) {
    case values::whereabouts::unknown:
      return then(wire::fetch_outcome::lost, "it was let go of");
    case values::whereabouts::in_memory:
      return then(wire::fetch_outcome::whole, {});
    case values::whereabouts::on_its_way:
      return waiting_[cell].push_back(std::move(then));
    case values::whereabouts::away:
      waiting_[cell].push_back(std::move(then));
      return begin(cell);
  }
}

void restoring::begin(std::uint64_t cell) {
  const auto [size, back] = store_.books([&](values& v) { return std::pair(v.size_of(cell), v.begin_return(cell)); });
  ahead_ = expected_ == cell ? std::min(std::max<std::size_t>(2 * ahead_, size), spiller_.batch_size()) : 0;
  auto take = [this, cell, size, back] {
    const auto offset = store_.books([&](values& v) { return v.memory().allocate(size); });
    if (!offset) return false;
    if (back.from.rank == no_rank) {
      read(cell, back.disk, *offset);
      read_ahead(back.next);
    } else {
      transfers_.pull(back.from.rank, back.from.place, memory_.pool.subspan(*offset, size),
                      [this, cell, at = *offset](wire::fetch_outcome outcome) { came(cell, at, outcome, {}); });
    }
    return true;
  };
  auto gave_up = [this, cell](const rooms::search& s) {
    std::vector<objectstore::disk_place> gone;
    store_.books([&](values& v) { v.not_returned(cell, gone); });
    store_.forget(std::move(gone));
    tell(cell, wire::fetch_outcome::no_room, rooms_.why(s));
  };
  rooms_.find(size, std::move(take), std::move(gave_up));
}

// Only into room that is free: nothing leaves memory for what nobody has asked for.
void restoring::read_ahead(std::optional<std::uint64_t> next) {
  std::size_t left = ahead_;
  for (int i = 0; i < most_values_ahead && next; ++i) {
    const auto early = store_.books([&](values& v) { return v.begin_early_return(*next, left); });
    if (!early) break;
    left -= early->size;
    read(*next, early->back.disk, early->offset);
    next = early->back.next;
  }
  expected_ = next;
}

void restoring::read(std::uint64_t cell, const objectstore::disk_place& from, std::uint64_t offset) {
  auto why = std::make_shared<std::string>();
  disk_.now([this, from, offset, why] { *why = store_.files().read(from, memory_.pool.subspan(offset, from.size)); },
            [this, cell, offset, why] {
              came(cell, offset, why->empty() ? wire::fetch_outcome::whole : wire::fetch_outcome::lost, *why);
            });
}

void restoring::came(std::uint64_t cell, std::uint64_t offset, wire::fetch_outcome outcome, const std::string& why) {
  std::vector<objectstore::disk_place> gone;
  store_.books([&](values& v) {
    if (outcome == wire::fetch_outcome::whole) {
      if (!v.returned(cell, offset, gone)) outcome = wire::fetch_outcome::lost;
    } else {
      v.memory().free(offset);
      v.not_returned(cell, gone);
    }
  });
  store_.forget(std::move(gone));
  tell(cell, outcome, why);
}

void restoring::tell(std::uint64_t cell, wire::fetch_outcome outcome, const std::string& why) {
  auto waiting = waiting_.extract(cell);
  if (waiting.empty()) return;
  for (const answer& one : waiting.mapped()) one(outcome, why);
}

}  // namespace rota::detail
