#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/buffer.h"
#include "runtime/base/types.h"

namespace rota::mpi {

// How a rank exchanges bytes with ranks that share no memory with it. One thread at a time calls, and nothing blocks
// but close(). Batches of one sender come in the order in which they were sent; bulk transfers keep no order. A peer
// with which the connection broke is told once; what is sent to it afterwards vanishes. Lives until the process ends
// or close() was called.
class fabric {
 public:
  // Hears what has come, from within take().
  class listener {
   public:
    virtual void batch(rank_t from, bytes_view bytes) = 0;  // the bytes are gone when it returns
    // What expect() announced is there, or will not come; the memory is not written to any more.
    virtual void received(std::uint64_t number, bool whole) = 0;
    virtual void heard(rank_t) {}  // a part of a bulk transfer has come from it
    // The bytes of send_bulk() are not read any more.
    virtual void sent(rank_t to, std::uint64_t number, bool whole) = 0;
    virtual void broken(rank_t peer, const std::string& why) = 0;

   protected:
    ~listener() = default;
  };

  fabric() = default;
  fabric(const fabric&) = delete;
  fabric& operator=(const fabric&) = delete;
  virtual ~fabric() = default;

  // What others need to reach this rank.
  virtual std::string address() const = 0;
  // Others' addresses by rank; empty for ranks that are not reached this way. Connections are made when first needed.
  virtual void meet(std::vector<std::string> addresses) = 0;

  // REQUIRES: meet() gave an address for `to`.
  virtual void send(rank_t to, base::buffer batch) = 0;
  // Bytes of batches that this rank still keeps for `to`: a slow receiver, or a connection in the making.
  virtual std::size_t unsent(rank_t to) const = 0;
  virtual std::size_t unsent() const = 0;  // to all
  // What was sent before counts as unsent until it has left this rank for good, whatever becomes of its threads.
  virtual void flush() = 0;
  // An empty buffer to build a batch in: those of earlier batches are used again.
  virtual base::buffer spare() = 0;

  // Announces a transfer: `number` is the receiver's own, fresh for each; bytes() of it land in `into`, which stays
  // untouched by others until received(). The other side then calls send_bulk with the same number and size.
  virtual void expect(rank_t from, std::uint64_t number, std::span<std::byte> into) = 0;
  virtual void send_bulk(rank_t to, std::uint64_t number, bytes_view bytes) = 0;
  // The other side has said that it will not send what expect() announced: received(number, false) follows.
  virtual void forget(rank_t from, std::uint64_t number) = 0;

  // Moves bytes. True if take() has something to tell.
  virtual bool poll() = 0;
  // Changes with each poll() that has moved something, also a part of what take() will tell of.
  virtual std::uint64_t moved() const = 0;
  // Tells all that poll() has brought. True if there was anything.
  virtual bool take(listener& to) = 0;

  // Readable after arm() returned true and something came. False from arm(): poll() first.
  virtual int event_fd() const = 0;
  virtual bool arm() = 0;

  // By which transports and devices `to` is reached, as "tcp/eth0"; empty where it is not, or where the fabric does not
  // tell. Makes the connection if there is none.
  virtual std::string way_to(rank_t) { return {}; }

  // Forgets a peer, whatever is under way.
  virtual void sever(rank_t peer) = 0;
  // Waits until what was sent has left, at most until the deadline, and closes all connections.
  virtual void close(std::chrono::steady_clock::time_point until) = 0;
};

struct fabric_options {
  std::uint64_t cookie = 0;  // of the session: messages of others are dropped
  rank_t self = 0;
  std::string devices;          // of UCX's network, comma-separated; empty: all
  std::size_t peer_rings = 64;  // of MPI's windows: so many ranks, besides rank 0, have a ring here at once
};

// Through UCX: active messages, by any network that UCX speaks. Throws rota::error with UCX's words, or config_error
// where this build has no UCX.
std::unique_ptr<fabric> open_ucx(const fabric_options& options);
bool has_ucx();
std::string ucx_version();  // of the UCX in use; empty without UCX

class world;
// Through one-sided communication of MPI: puts into a window over all ranks, for networks that UCX does not speak.
// Collective, and close() too; meet() does nothing. Throws rota::error with MPI's words where it gives no such window.
std::unique_ptr<fabric> open_rma(const world& w, const fabric_options& options);

// A batch goes between each rank and rank 0, and around the nodes' first ranks. Returns once those for this rank have
// come; all ranks call it before anything else is sent. Throws rota::error naming those from which nothing came by the
// deadline, or to which the connection broke.
void check_fabric(fabric& way, const world& w, std::chrono::steady_clock::time_point until);

}  // namespace rota::mpi
