#pragma once

#include <deque>
#include <queue>
#include <vector>

#include "runtime/base/buffer.h"
#include "runtime/simulator/random.h"

namespace rota::simulator {

enum class event_kind : std::uint8_t { deliver, step, hunt, flush, drop, die, lose, arrive };

struct event {
  std::uint64_t time = 0;
  std::uint64_t order = 0;
  event_kind kind = event_kind::step;
  std::uint32_t a = 0;  // the rank; deliver: from
  std::uint64_t b = 0;  // deliver: to; step: the activity; drop: the object; arrive: the transfer
};

// Virtual time and virtual links: FIFO for each ordered pair of ranks, delayed at random across pairs.
class network {
 public:
  network(std::uint32_t ranks, random& chance);

  void send(rank_t from, rank_t to, bytes_view record);
  void schedule(event_kind kind, std::uint32_t a, std::uint64_t b, std::uint64_t delay);
  // False: nothing is left to happen.
  bool next(event& e);
  std::uint64_t now() const { return now_; }

  using records = std::deque<base::buffer>;
  records& link(rank_t from, rank_t to) { return links_[from * ranks_ + to].waiting; }
  const records& link(rank_t from, rank_t to) const { return links_[from * ranks_ + to].waiting; }
  // The oldest record of the link, if there is one.
  bool take(rank_t from, rank_t to, base::buffer& record);

 private:
  struct one_link {
    records waiting;
    std::uint64_t last = 0;  // delivery time of the youngest
    std::uint32_t slow = 0;  // its usual delay
  };
  struct later {
    bool operator()(const event& x, const event& y) const {
      return x.time != y.time ? x.time > y.time : x.order > y.order;
    }
  };

  std::uint32_t ranks_;
  random& random_;
  std::vector<one_link> links_;
  std::priority_queue<event, std::vector<event>, later> events_;
  std::uint64_t now_ = 0;
  std::uint64_t order_ = 0;
};

}  // namespace rota::simulator
