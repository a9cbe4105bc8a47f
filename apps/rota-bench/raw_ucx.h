#pragma once

#include <cstddef>
#include <memory>
#include <string>

// Bare UCX, as a limit for what crosses nodes: one worker, active messages, nothing else.
namespace bench {

class raw_ucx {
 public:
  virtual ~raw_ucx() = default;
  virtual std::string address() = 0;
  virtual void connect(const std::string& peer) = 0;
  // Seconds of an 8-byte round trip; the peer calls answer(rounds) meanwhile.
  virtual double ask(int rounds) = 0;
  virtual void answer(int rounds) = 0;
  // By rendezvous. Seconds from asking for the bytes to having them; the peer calls lend(bytes, rounds) meanwhile.
  virtual double fetch(std::size_t bytes, int rounds) = 0;
  virtual void lend(std::size_t bytes, int rounds) = 0;
};

// Null where this build has no UCX.
std::unique_ptr<raw_ucx> make_raw_ucx();

}  // namespace bench
