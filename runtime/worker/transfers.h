#pragma once

#include <chrono>
#include <functional>
#include <unordered_map>

#include "runtime/wire/copy_messages.h"
#include "runtime/wire/outbox.h"
#include "runtime/worker/store_link.h"

namespace rota::mpi {
class fabric;
}

namespace rota::detail {

// Brings values from the stores of other nodes into this rank's part of its own, and sends what others fetch from here.
// Used by the thread that holds the pump; nothing blocks. A value that finds no room waits for extents, for a second at
// most.
class transfers {
 public:
  // `ended` hears of each fetch how it ended, and where its bytes are.
  transfers(store_link& store, wire::outbox& out) : store_(store), out_(out) {}
  std::function<void(std::uint64_t number, wire::fetch_outcome outcome, std::uint64_t place)> ended;

  void use(mpi::fabric* way) { way_ = way; }

  void fetch(std::uint64_t number, rank_t from, std::uint64_t place, std::uint64_t size);
  void lend(rank_t to, const wire::lend_head& asked);
  void received(std::uint64_t number, bool whole);

  // Fetches wait for room: try() looks again, at GRANTED or after a while.
  bool waits_for_room() const { return !waiting_.empty(); }
  void try_waiting();

 private:
  struct fetching {
    rank_t from = no_rank;
    std::uint64_t place = 0, size = 0;
    std::uint64_t here = 0;
  };
  struct waiting {
    std::uint64_t number = 0;
    std::uint32_t request = 0;  // of extents, 0: none
    std::chrono::steady_clock::time_point until{}, again{};
  };

  bool begin(std::uint64_t number);
  void end(std::uint64_t number, wire::fetch_outcome outcome);

  store_link& store_;
  wire::outbox& out_;
  mpi::fabric* way_ = nullptr;
  std::unordered_map<std::uint64_t, fetching> fetching_;
  std::vector<waiting> waiting_;
};

}  // namespace rota::detail
