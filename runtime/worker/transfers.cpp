#include "runtime/worker/transfers.h"

#include "mpi/fabric.h"

namespace rota::detail {

void transfers::pull(rank_t from, std::uint64_t place, std::span<std::byte> into, ended then) {
  const std::uint64_t number = ++last_;
  pulling_[number] = {.from = from, .then = std::move(then)};
  way_->expect(from, number, into);
  wire::lend_head ask;
  ask.number = number;
  ask.place = place;
  ask.size = into.size();
  out_.send(from, wire::as_bytes(ask));
}

void transfers::received(std::uint64_t number, bool whole) {
  auto found = pulling_.extract(number);
  found.mapped().then(whole ? wire::fetch_outcome::whole : found.mapped().otherwise);
}

void transfers::refused(const wire::refuse_head& head) {
  auto found = pulling_.find(head.number);
  if (found == pulling_.end()) return;  // the connection broke meanwhile
  found->second.otherwise = head.outcome;
  way_->forget(found->second.from, head.number);
}

void transfers::lend(rank_t to, std::uint64_t number, bytes_view bytes, std::function<void()> then) {
  lending_[{to, number}] = std::move(then);
  way_->send_bulk(to, number, bytes);
}

void transfers::sent(rank_t to, std::uint64_t number) {
  auto found = lending_.extract({to, number});
  if (!found.empty()) found.mapped()();
}

}  // namespace rota::detail
