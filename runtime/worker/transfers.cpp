#include "runtime/worker/transfers.h"

#include <algorithm>

#include "mpi/fabric.h"

namespace rota::detail {
namespace {

constexpr auto patience = std::chrono::seconds(1);
constexpr auto pause = std::chrono::milliseconds(10);

}  // namespace

void transfers::fetch(std::uint64_t number, rank_t from, std::uint64_t place, std::uint64_t size) {
  fetching_[number] = {from, place, size, 0};
  if (begin(number)) return;
  waiting w;
  w.number = number;
  w.until = std::chrono::steady_clock::now() + patience;
  waiting_.push_back(w);
  try_waiting();
}

// True once the fetch is under way, or has failed: false while there is no room for it.
bool transfers::begin(std::uint64_t number) {
  fetching& f = fetching_.find(number)->second;
  const std::optional<place> room = store_.try_reserve(f.size);
  if (!room) return false;
  f.here = room->offset;
  way_->expect(f.from, number, {room->data, f.size});
  wire::lend_head ask;
  ask.number = number;
  ask.place = f.place;
  ask.size = f.size;
  out_.send(f.from, wire::as_bytes(ask));
  return true;
}

void transfers::try_waiting() {
  const auto now = std::chrono::steady_clock::now();
  std::vector<std::uint64_t> hopeless;
  std::erase_if(waiting_, [&](waiting& w) {
    const std::uint32_t extents = objectstore::heap::extents_for(fetching_.find(w.number)->second.size);
    if (w.request != 0) {
      const std::optional<grant_head> answer = store_.answer(w.request);
      if (!answer) return false;
      w.request = 0;
      w.again = now + pause;
      const objectstore::run granted{answer->first, answer->count};
      if (granted.count > 0 && !store_.adopt(granted)) store_.give_back(granted, out_);
    }
    if (begin(w.number)) return true;
    if (now > w.until || extents > store_.extents()) {
      hopeless.push_back(w.number);
      return true;
    }
    if (now < w.again) return false;
    if (extents > 1) store_.give_back_all(out_);
    w.request = store_.request(extents, out_);
    return false;
  });
  for (std::uint64_t number : hopeless) end(number, wire::fetch_outcome::no_room);
}

void transfers::lend(rank_t to, const wire::lend_head& asked) {
  way_->send_bulk(to, asked.number, {store_.at(asked.place), asked.size});
}

void transfers::received(std::uint64_t number, bool whole) {
  auto found = fetching_.find(number);
  if (!whole) store_.free(found->second.here, out_);
  end(number, whole ? wire::fetch_outcome::whole : wire::fetch_outcome::broken);
}

void transfers::end(std::uint64_t number, wire::fetch_outcome outcome) {
  const std::uint64_t here = fetching_.find(number)->second.here;
  fetching_.erase(number);
  ended(number, outcome, here);
}

}  // namespace rota::detail
