#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mpi/event_ringer.h"
#include "mpi/fabric.h"
#include "runtime/base/buffer.h"
#include "runtime/worker/wake.h"

namespace rota::detail {

// The links of one rank to ranks of other nodes, over a fabric. What is sent to a rank between two publishes goes as
// one batch: each record behind its size. Used by the thread that holds the pump. send() never blocks: what a slow
// receiver does not take waits here, and throttled() of `links` tells programs to slow down.
class far_links final : mpi::fabric::listener {
 public:
  // What becomes of transfers and of peers.
  struct hearer {
    virtual void received(std::uint64_t number, bool whole) = 0;
    virtual void sent(rank_t to, std::uint64_t number) = 0;
    // The peer is lost. At most once for each.
    virtual void broken(rank_t peer, const std::string& why) = 0;
    // Nothing has come from it for a while; or has again.
    virtual void suspected(rank_t peer, bool silent) = 0;

   protected:
    ~hearer() = default;
  };

  // Networks may go silent without a word: the head and each rank of another node exchange a heartbeat, of
  // `suspect_after` / 5, at most a second.
  struct limits {
    std::chrono::nanoseconds suspect_after, lost_after;
  };
  // `watched`: the ranks whose silence matters. `bell`: of this rank; rung when something comes while a thread sleeps
  // on it, and once a heartbeat.
  far_links(std::unique_ptr<mpi::fabric> way, std::size_t ranks, std::vector<rank_t> watched, limits silence,
            mpi::doorbell& bell, hearer& who);

  void send(rank_t to, bytes_view record);
  // Sends the batches that somebody waits for as far as `whom` says; the others are held back.
  void publish(wake whom);
  // For a thread that may be back at once, to send more: what was sent to a rank just now lets the next batch wait.
  // holds_back() then, and somebody must publish() soon.
  void publish_leisurely();
  bool holds_back() const { return !dirty_.empty(); }

  // To be called often: sends heartbeats, and judges silence.
  void tend();
  // The session ends: ranks go quiet one by one, as they are done. Nobody is lost by silence any more.
  void forgive_silence() { forgiving_ = true; }

  bool anything_waits() { return way_->poll(); }
  // Bytes have moved since the last call, though there may be nothing to receive: a large value is coming or going.
  bool moves() {
    const std::uint64_t now = way_->moved();
    return std::exchange(moved_, now) != now;
  }
  // Hands each record that has come to use(from, record). True if there was any.
  bool receive(const std::function<void(rank_t, bytes_view)>& use);
  // How long to look for something before sleeping: not at all when what comes takes longer than waking up does.
  std::uint64_t patience_ns(std::uint64_t now) {
    waits_since_ = now;
    return mean_wait_ns_ < longest_wait_ns ? std::min(most_patience_ns, static_cast<std::uint64_t>(2 * mean_wait_ns_))
                                           : 0;
  }

  // Before sleeping: the doorbell rings when something comes. False: something has come.
  bool arm();

  std::size_t backlog_bytes() const { return backlog_bytes_; }  // what slow receivers hold up
  void flush() {
    publish(wake::all);
    way_->flush();
  }
  bool all_sent() const { return dirty_.empty() && way_->unsent() == 0; }
  mpi::fabric& way() { return *way_; }
  // Closes the fabric; the doorbell is not rung any more.
  void close(std::chrono::steady_clock::time_point until) {
    ringer_.end();
    way_->close(until);
  }

 private:
  struct peer {
    base::buffer batch;
    wake need = wake::all;
    bool dirty = false;
    bool watched = false, suspected = false, lost = false;
    std::uint64_t heard = 0;  // when
    std::uint64_t sent = 0;   // when the last batch was
    std::string why;          // the connection broke
  };

  template <class May>
  void send_batches(May&& may);
  void batch(rank_t from, bytes_view bytes) override;
  void received(std::uint64_t number, bool whole) override { who_.received(number, whole); }
  void sent(rank_t to, std::uint64_t number, bool) override { who_.sent(to, number); }
  void heard(rank_t from) override { peers_[from].heard = last_beat_; }  // as exactly as it is needed
  void broken(rank_t who, const std::string& why) override;
  void lose(rank_t who, const std::string& why);

  // To sleep and be woken by the ringer takes two wake-ups, some 35 µs each.
  static constexpr std::uint64_t most_patience_ns = 100'000;
  static constexpr float longest_wait_ns = 300'000;

  std::unique_ptr<mpi::fabric> way_;
  const std::uint64_t beat_ns_;
  limits silence_;
  mpi::event_ringer ringer_;
  hearer& who_;
  std::vector<rank_t> watched_;
  std::uint64_t last_beat_ = 0, last_look_ = 0;
  std::vector<peer> peers_;    // by rank
  std::vector<rank_t> dirty_;  // those whose batch has not left
  bool forgiving_ = false;
  std::size_t backlog_bytes_ = 0;
  std::uint64_t waits_since_ = 0;  // 0: something has come since
  std::uint64_t moved_ = 0;
  std::uint64_t moved_when_armed_ = 0;
  std::uint32_t rings_when_armed_ = 0, rings_in_vain_ = 0;  // in vain: in a row, nothing moved after them
  float mean_wait_ns_ = most_patience_ns;
  const std::function<void(rank_t, bytes_view)>* use_ = nullptr;
};

}  // namespace rota::detail
