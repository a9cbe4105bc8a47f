#pragma once

#include <deque>
#include <string>
#include <vector>

#include "mpi/fabric.h"

namespace rota::mpi {

// What a fabric has to tell its listener, in the order in which it happened, and the buffers of batches that were told
// or sent, to be used again. One thread at a time; lives with its fabric.
class fabric_events {
 public:
  // As the listener's functions of these names.
  void batch(rank_t from, base::buffer bytes) {
    news_.push_back({.what = event::kind::batch, .peer = from, .bytes = std::move(bytes)});
  }
  void received(std::uint64_t number, bool whole) {
    news_.push_back({.what = event::kind::received, .whole = whole, .number = number});
  }
  void heard(rank_t from) { news_.push_back({.what = event::kind::heard, .peer = from}); }
  void sent(rank_t to, std::uint64_t number, bool whole) {
    news_.push_back({.what = event::kind::sent, .whole = whole, .peer = to, .number = number});
  }
  void broken(rank_t peer, const std::string& why) {
    news_.push_back({.what = event::kind::broken, .peer = peer, .why = why});
  }

  bool empty() const { return news_.empty(); }
  // Tells all, also what is added meanwhile. True if there was anything.
  bool take(fabric::listener& to);

  // An empty buffer, one that was kept if there is any.
  base::buffer spare();
  // Keeps the buffer of a batch, within bounds.
  void keep(base::buffer used);

 private:
  struct event {
    enum class kind : std::uint8_t { batch, received, heard, sent, broken } what;
    bool whole = true;
    rank_t peer = no_rank;
    std::uint64_t number = 0;
    base::buffer bytes = {};
    std::string why = {};
  };
  std::deque<event> news_;
  std::vector<base::buffer> spares_;
};

}  // namespace rota::mpi
