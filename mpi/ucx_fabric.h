#pragma once

#include <ucp/api/ucp.h>

#include <map>
#include <unordered_map>

#include "mpi/fabric_events.h"

namespace rota::mpi {

// The fabric that UCX is: one worker a rank, active messages over endpoints in peer-error-handling mode. Batches go by
// whatever protocol UCX takes for their size; bulk transfers land where the receiver wants them (rendezvous).
class ucx_fabric final : public fabric {
 public:
  explicit ucx_fabric(const fabric_options& options);

  std::string address() const override { return address_; }
  void meet(std::vector<std::string> addresses) override;
  void send(rank_t to, base::buffer batch) override;
  std::size_t unsent(rank_t to) const override { return peers_[to].unsent; }
  std::size_t unsent() const override { return unsent_; }
  void flush() override;
  base::buffer spare() override { return events_.spare(); }
  void expect(rank_t from, std::uint64_t number, std::span<std::byte> into) override;
  void send_bulk(rank_t to, std::uint64_t number, bytes_view bytes) override;
  void forget(rank_t from, std::uint64_t number) override;
  bool poll() override;
  std::uint64_t moved() const override { return moved_; }
  bool take(listener& to) override { return events_.take(to); }
  int event_fd() const override { return event_fd_; }
  bool arm() override { return events_.empty() && ucp_worker_arm(worker_) == UCS_OK; }
  std::string way_to(rank_t to) override;
  void sever(rank_t from) override { broke(from, {}); }
  void close(std::chrono::steady_clock::time_point until) override;

 private:
  // Active messages keep no order, so batches carry their place in it.
  struct batch_header {
    std::uint64_t cookie;
    rank_t from;
    std::uint32_t sequence;
  };
  struct piece_header {
    std::uint64_t cookie;
    std::uint64_t number;
    std::uint64_t offset;
    std::uint64_t from;
  };
  struct peer {
    std::string address;
    ucp_ep_h ep = nullptr;
    std::uint32_t next_out = 0, next_in = 0;
    std::map<std::uint32_t, base::buffer> early;  // batches that overtook others
    std::size_t unsent = 0;
    bool broken = false;
  };
  // What a request of UCX's needs until it ends.
  struct outgoing {
    ucx_fabric& owner;
    rank_t to;
    batch_header header;
    base::buffer bytes;
  };
  struct incoming {
    ucx_fabric& owner;
    batch_header header;
    base::buffer bytes;
  };
  struct outgoing_piece {
    ucx_fabric& owner;
    std::uint64_t key;
    piece_header header;
  };
  struct incoming_piece {
    ucx_fabric& owner;
    std::uint64_t number;
    std::size_t size;
  };
  struct bulk {  // send_bulk
    rank_t to;
    std::uint64_t number;
    bytes_view bytes;
    std::size_t next = 0;
    int pending = 0;
    bool failed = false;
  };
  struct expected {
    rank_t from;
    std::span<std::byte> into;
    std::size_t left;
    int pending = 0;
    bool failed = false;
  };

  ucp_ep_h endpoint(rank_t to);
  void broke(rank_t to, const std::string& why);
  void batch_came(const batch_header& header, base::buffer bytes);
  void batch_sent(outgoing* out);
  void push_pieces(std::uint64_t key);
  void piece_sent(std::uint64_t key, bool whole);
  void piece_came(std::uint64_t number, std::size_t size, bool whole);
  void settle(std::uint64_t number);
  static ucs_status_t on_batch(void* arg, const void* header, std::size_t header_bytes, void* data, std::size_t size,
                               const ucp_am_recv_param_t* param);
  static ucs_status_t on_piece(void* arg, const void* header, std::size_t header_bytes, void* data, std::size_t size,
                               const ucp_am_recv_param_t* param);
  static void on_broken(void* arg, ucp_ep_h ep, ucs_status_t status);

  fabric_options options_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int event_fd_ = -1;
  std::string address_;
  std::vector<peer> peers_;         // by rank
  std::vector<ucp_ep_h> to_close_;  // of broken peers; not from within a callback
  fabric_events events_;
  std::unordered_map<std::uint64_t, expected> expected_;  // by the receiver's number
  std::unordered_map<std::uint64_t, bulk> bulks_;         // by a key of our own
  std::uint64_t next_bulk_ = 0;
  std::size_t unsent_ = 0;
  std::uint64_t moved_ = 0;
  bool leaving_ = false;
};

}  // namespace rota::mpi
