#pragma once

#include <mpi.h>

#include <array>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "mpi/fabric_events.h"
#include "mpi/rma_layout.h"
#include "mpi/rma_ring.h"
#include "mpi/rma_watch.h"

namespace rota::mpi {

// The fabric of MPI's one-sided communication: rings in the receiver's part of a window, filled by puts that nobody
// waits for; how far they were read comes back by puts too. Each rank has rings to and from rank 0. Any other ring is
// granted by its receiver when a sender asks with a message of MPI's; when none is free, the one that was quiet for
// longest is recalled. Bulk transfers are messages of MPI's, in pieces whose receiver grants them once it has posted
// their receive: they land where they belong, and in most networks are faster than puts. MPI makes progress only in its
// calls: poll() gives it some, and so does the thread of rma_watch while the rank sleeps.
class rma_fabric final : public fabric {
 public:
  rma_fabric(const world& w, const fabric_options& options);

  std::string address() const override { return {}; }
  void meet(std::vector<std::string>) override {}
  void send(rank_t to, base::buffer batch) override;
  std::size_t unsent(rank_t to) const override { return peers_[to] ? peers_[to]->unsent : 0; }
  std::size_t unsent() const override { return unsent_ + (flush_asked_ ? 1 : 0); }
  void flush() override;
  base::buffer spare() override { return events_.spare(); }
  void expect(rank_t from, std::uint64_t number, std::span<std::byte> into) override;
  void send_bulk(rank_t to, std::uint64_t number, bytes_view bytes) override;
  void forget(rank_t from, std::uint64_t number) override;
  bool poll() override;
  std::uint64_t moved() const override { return moved_; }
  bool take(listener& to) override { return events_.take(to); }
  int event_fd() const override { return watch_->event_fd(); }
  bool arm() override;
  void sever(rank_t who) override { broke(who, {}); }
  void close(std::chrono::steady_clock::time_point until) override;

 private:
  static constexpr int tag_poll = 1, tag_watch = 2, tag_control = 3, tag_piece = 16;  // and the slot
  // Messages of MPI's that are no piece of a transfer.
  struct control {
    enum class kind : std::uint32_t {
      ask,       // writer to owner: may I have a ring?
      granted,   // owner to writer: the ring `which`
      recall,    // owner to writer: give it back once all was read
      returned,  // writer to owner: it is no longer used
      piece,     // receiver to sender: send this piece of transfer `number`, to slot `which`
      forgotten  // receiver to sender: no piece of transfer `number` is waited for
    } what;
    std::uint32_t which = 0, size = 0, spare = 0;
    std::uint64_t number = 0, offset = 0;
  };
  enum class way_out : std::uint8_t { none, asked, open, leaving };
  static constexpr std::size_t no_ring = ~std::size_t{0};
  struct peer {
    peer(rank_t r, std::size_t ring_bytes, const std::byte* credits, std::uint64_t seed_out, std::uint64_t seed_in)
        : rank(r), out(ring_bytes, seed_out, credits), in(ring_bytes, seed_in) {}
    rank_t rank;
    frame_writer out;
    way_out state = way_out::none;
    MPI_Aint ring_there = 0;  // in its part of the window
    frame_reader in;
    bool reads = false;          // it has a ring here
    std::size_t ring = no_ring;  // of those that were granted
    bool recalled = false;
    std::uint64_t used = 0;  // when, of uses_
    std::deque<base::buffer> batches;
    std::size_t begun = 0;   // bytes of the first batch that are on their way
    std::size_t unsent = 0;  // of batches, less begun
    base::buffer coming;     // a batch, as far as it has come
    std::string failure;     // why nothing goes there any more; poll() then breaks with it
    bool broken = false;
    bool gone() const { return broken || !failure.empty(); }
    bool busy() const { return !batches.empty() || state == way_out::leaving; }
  };
  struct expected {
    rank_t from;
    std::span<std::byte> into;
    std::size_t left;
    std::size_t granted = 0;
    int pending = 0;
    bool failed = false;
  };
  struct slot {  // a piece that was granted
    MPI_Request request = MPI_REQUEST_NULL;
    std::uint64_t number = 0;
    std::size_t size = 0;
  };
  using bulk_key = std::pair<rank_t, std::uint64_t>;  // receiver and its number
  struct bulk {
    bytes_view bytes;
    bool given = false;            // send_bulk was called
    std::vector<control> granted;  // before that
    std::size_t left = 0;
    int pending = 0;
    bool failed = false;
  };
  struct sending {
    MPI_Request request;
    bulk_key key;
    std::size_t size;
  };

  void open_window();
  void add_peer(rank_t r);
  void put(peer& p, std::size_t there, bytes_view bytes);
  void push(peer& p);
  void push_parts(peer& p);
  bool hear(peer& p);
  void part_came(peer& p, const frame_reader::frame& f);
  void give_credit(peer& p);
  void tell(peer& p, const control& what);
  bool poll_control();
  void heard(peer& p, const control& what);
  void grant_rings();
  void recall_rings();
  void ring_returned(peer& p);
  void send_piece(peer& p, bulk& b, const control& grant);
  void grant_pieces();
  bool poll_pieces();
  void settle(std::uint64_t number);
  void settle(const bulk_key& key);
  void break_bulk(rank_t who);
  void fail(peer& p, int rc, const char* call);
  void broke(rank_t who, const std::string& why);
  void flush_now();

  fabric_options options_;
  rma_layout layout_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  MPI_Win win_ = MPI_WIN_NULL;
  std::byte* mine_ = nullptr;                 // our part of the window
  std::vector<std::unique_ptr<peer>> peers_;  // by rank; null for those of our node
  std::vector<peer*> readable_;               // those that have a ring here
  std::vector<peer*> busy_;                   // those with something to send, or a ring to give back
  std::vector<std::size_t> free_rings_;
  std::deque<peer*> askers_;
  std::uint64_t uses_ = 0;
  std::list<std::pair<MPI_Request, control>> controls_;  // on their way
  mpi_progress progress_;
  std::optional<rma_watch> watch_;
  std::vector<put_word> words_;
  fabric_events events_;
  std::unordered_map<std::uint64_t, expected> expected_;
  std::deque<std::uint64_t> to_grant_;  // of expected_, those of which not all was granted
  std::array<slot, 4> slots_;
  std::map<bulk_key, bulk> bulks_;
  std::vector<sending> sending_;
  std::size_t unsent_ = 0;
  std::uint64_t moved_ = 0;
  bool flush_asked_ = false, flushing_ = false;
  bool failed_ = false;  // some peer has a failure
  bool leaving_ = false;
};

}  // namespace rota::mpi
