#pragma once

#include <functional>
#include <map>
#include <unordered_map>

#include "runtime/wire/outbox.h"
#include "runtime/wire/store_messages.h"

namespace rota::mpi {
class fabric;
}

namespace rota::detail {

// The bytes of values on their way between nodes. Used by the thread that holds the pump; nothing blocks.
class transfers {
 public:
  using ended = std::function<void(wire::fetch_outcome)>;

  explicit transfers(wire::outbox& out) : out_(out) {}
  void use(mpi::fabric* way) { way_ = way; }

  // Has a value sent from the store of another node into `into`, which nobody else touches until `then`.
  void pull(rank_t from, std::uint64_t place, std::span<std::byte> into, ended then);
  void received(std::uint64_t number, bool whole);
  // Instead of the bytes; received() follows.
  void refused(const wire::refuse_head& head);

  // Sends bytes that stay until `then`.
  void lend(rank_t to, std::uint64_t number, bytes_view bytes, std::function<void()> then);
  void sent(rank_t to, std::uint64_t number);

 private:
  struct pulling {
    rank_t from = no_rank;
    ended then;
    wire::fetch_outcome otherwise = wire::fetch_outcome::broken;
  };

  wire::outbox& out_;
  mpi::fabric* way_ = nullptr;
  std::uint64_t last_ = 0;
  std::unordered_map<std::uint64_t, pulling> pulling_;
  std::map<std::pair<rank_t, std::uint64_t>, std::function<void()>> lending_;
};

}  // namespace rota::detail
