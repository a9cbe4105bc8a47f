#include "runtime/simulator/network.h"

#include <algorithm>

namespace rota::simulator {

network::network(std::uint32_t ranks, random& chance) : ranks_(ranks), random_(chance), links_(ranks * ranks) {
  constexpr std::uint32_t speeds[] = {2, 5, 20, 100, 500};
  for (one_link& l : links_) l.slow = speeds[random_.below(5)];
}

void network::send(rank_t from, rank_t to, bytes_view record) {
  one_link& l = links_[from * ranks_ + to];
  l.waiting.emplace_back();
  l.waiting.back().append(record);
  std::uint32_t usual = random_.chance(5) ? l.slow * 10 : l.slow;
  l.last = std::max(l.last, now_ + 1 + random_.below(usual));
  events_.push({l.last, ++order_, event_kind::deliver, from, to});
}

void network::schedule(event_kind kind, std::uint32_t a, std::uint64_t b, std::uint64_t delay) {
  events_.push({now_ + delay, ++order_, kind, a, b});
}

bool network::next(event& e) {
  if (events_.empty()) return false;
  e = events_.top();
  events_.pop();
  now_ = e.time;
  return true;
}

bool network::take(rank_t from, rank_t to, base::buffer& record) {
  records& waiting = link(from, to);
  if (waiting.empty()) return false;
  record = std::move(waiting.front());
  waiting.pop_front();
  return true;
}

}  // namespace rota::simulator
