#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "mpi/window.h"
#include "runtime/base/buffer.h"
#include "runtime/wire/messages.h"
#include "runtime/wire/outbox.h"
#include "runtime/worker/far_links.h"
#include "runtime/worker/wake.h"

namespace rota::detail {

// The links of one rank: a mailbox to and from each other rank of the node, and what leads to other nodes. Used by the
// thread that holds the pump. send() never blocks: what finds no room waits here, and throttled() tells programs to
// slow down.
class links final : public wire::outbox {
 public:
  // `ranks`: the world rank of each node rank; `self`: this one's node rank.
  links(mpi::node_window& window, std::vector<rank_t> ranks, int self);

  // Before anything is sent to ranks of other nodes. `ranks`: of the world.
  void connect(std::unique_ptr<far_links> far, std::size_t ranks);
  far_links* far() { return far_.get(); }  // null on a node that is alone

  void send(rank_t to, bytes_view record) override;

  // Hands each record that has come to use(from, record), oldest first per sender, at most a bounded number of each
  // sender. True if there was any.
  template <class F>
  bool receive(F&& use);

  bool anything_waits();
  // Shows what was sent to its receivers, and wakes those that sleep as far as `whom` says; the others are owed a wake.
  void publish(wake whom) {
    if (far_) far_->publish(whom);
    publish_near(whom);
  }
  // As publish(all), but what goes to other nodes may wait for company: see far_links.
  void publish_leisurely() {
    if (far_) far_->publish_leisurely();
    publish_near(wake::all);
  }
  bool wakes_owed() const { return !owed_.empty() || (far_ && far_->holds_back()); }
  // Before sleeping: ask full receivers to ring when there is room. False if some room has come meanwhile.
  bool await_room();

  // The last look before a thread sleeps on the doorbell: false if something came from another node.
  bool arm() { return !far_ || far_->arm(); }

  enum class backlog : std::uint8_t { none, some, too_much };
  backlog waits() const {
    const std::size_t bytes = backlog_bytes();
    return bytes == 0 ? backlog::none : bytes <= most_backlog ? backlog::some : backlog::too_much;
  }
  bool throttled() const { return waits() == backlog::too_much; }
  bool clogged() const { return waits() != backlog::none; }
  void flush() {
    if (far_) far_->flush();
  }
  // Everything that was sent before flush() has left this rank.
  bool all_sent() const { return backlog_bytes_ == 0 && (!far_ || far_->all_sent()); }

  mpi::doorbell& own_bell() { return window_.bell(self_); }

 private:
  static constexpr std::size_t most_backlog = std::size_t{64} << 10;
  static constexpr int batch = 256;

  struct peer {
    rank_t rank = no_rank;
    mpi::mailbox_writer out;
    mpi::mailbox_reader in;
    mpi::doorbell* bell = nullptr;
    std::deque<base::buffer> backlog;
    base::buffer partial;       // of a record that comes in parts
    std::uint32_t rung_at = 0;  // the doorbell's value after our last ring
    wake need = wake::all;      // of what was sent since the last publish
    bool dirty = false, owed = false;
  };

  void publish_near(wake whom);
  void write(peer& p, bytes_view record);
  bool try_write(peer& p, bytes_view record);
  void drain_backlog(peer& p);
  void ring(peer& p);
  std::size_t backlog_bytes() const { return backlog_bytes_ + (far_ ? far_->backlog_bytes() : 0); }

  mpi::node_window& window_;
  int self_;
  rank_t self_rank_;
  std::vector<peer> peers_;  // by node rank; the own one unused
  static constexpr std::uint32_t elsewhere = 0xffff'ffff;
  std::vector<std::uint32_t> by_rank_;  // world rank -> node rank
  std::vector<std::uint32_t> dirty_, owed_;
  std::size_t backlog_bytes_ = 0;
  std::unique_ptr<far_links> far_;
};

// A record too large for a ring comes as several of these.
struct part_head {
  wire::message type = wire::message::part;
  std::uint8_t last = 0;
  std::uint8_t spare[6] = {};
};

template <class F>
bool links::receive(F&& use) {
  bool any = false;
  for (peer& p : peers_) {
    if (!p.bell) continue;
    for (int i = 0; i < batch && !p.in.empty(); ++i) {
      any = true;
      bytes_view record = p.in.front();
      if (wire::type_of(record) != wire::message::part) {
        use(p.rank, record);
      } else {
        auto head = base::cursor(record).get<part_head>();
        p.partial.append(record.subspan(sizeof(part_head)));
        if (head.last) {
          base::buffer whole = std::move(p.partial);
          p.partial = {};
          use(p.rank, whole.view());
        }
      }
      if (p.in.pop()) mpi::ring(*p.bell);
    }
  }
  if (far_ && far_->anything_waits()) any |= far_->receive(use);
  return any;
}

}  // namespace rota::detail
