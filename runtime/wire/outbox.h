#pragma once

#include "runtime/base/types.h"

namespace rota::wire {

// Where a state machine puts the messages that it wants sent: FIFO per destination. The record is copied before send
// returns; send never calls back into the machine.
class outbox {
 public:
  virtual ~outbox() = default;
  virtual void send(rank_t to, bytes_view record) = 0;
};

}  // namespace rota::wire
