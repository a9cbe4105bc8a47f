#include "mpi/fabric_events.h"

namespace rota::mpi {

bool fabric_events::take(fabric::listener& to) {
  if (news_.empty()) return false;
  while (!news_.empty()) {
    event e = std::move(news_.front());
    news_.pop_front();
    switch (e.what) {
      case event::kind::batch:
        to.batch(e.peer, e.bytes.view());
        keep(std::move(e.bytes));
        break;
      case event::kind::received:
        to.received(e.number, e.whole);
        break;
      case event::kind::heard:
        to.heard(e.peer);
        break;
      case event::kind::sent:
        to.sent(e.peer, e.number, e.whole);
        break;
      case event::kind::broken:
        to.broken(e.peer, e.why);
        break;
    }
  }
  return true;
}

base::buffer fabric_events::spare() {
  if (spares_.empty()) return {};
  base::buffer empty = std::move(spares_.back());
  spares_.pop_back();
  empty.clear();
  return empty;
}

void fabric_events::keep(base::buffer used) {
  constexpr std::size_t most_spares = 64, most_kept = std::size_t{256} << 10;
  if (spares_.size() < most_spares && used.capacity() <= most_kept) spares_.push_back(std::move(used));
}

}  // namespace rota::mpi
