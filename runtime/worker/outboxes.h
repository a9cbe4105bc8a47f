#pragma once

#include <utility>

#include "runtime/base/buffer.h"
#include "runtime/scheduler/scheduler.h"
#include "runtime/wire/outbox.h"
#include "runtime/worker/links.h"

namespace rota::detail {

// Where the machines of a rank put their messages: on its links, or, where they are for its own agent, in a queue here.
// What the agent of rank 0 says to the head goes straight in: the head never calls the agent, it answers through the
// queue. Used by the thread that holds the pump.
class outboxes {
 public:
  outboxes(rank_t self, links& others) : self_(self), links_(others), agent_(*this), head_(*this) {}
  outboxes(const outboxes&) = delete;
  outboxes& operator=(const outboxes&) = delete;

  wire::outbox& of_agent() { return agent_; }
  wire::outbox& of_head() { return head_; }
  void set_head(scheduler::scheduler& head) { scheduler_ = &head; }

  // Nothing waits for the agent.
  bool empty() const { return queue_.empty(); }

  // Hands the records for the agent to use(record), in order, until it has caused no more. Inside use it does nothing.
  template <class F>
  void drain(F&& use) {
    if (draining_) return;
    draining_ = true;
    while (!queue_.empty()) {
      std::swap(queue_, taken_);
      base::cursor cursor(taken_.view());
      for (std::size_t left = taken_.size(); left > 0;) {
        auto size = cursor.get<std::uint64_t>();
        use(cursor.take(size));
        left -= sizeof(size) + size;
      }
      taken_.clear();
    }
    draining_ = false;
  }

 private:
  class of_this_agent final : public wire::outbox {
   public:
    explicit of_this_agent(outboxes& all) : all_(all) {}
    void send(rank_t to, bytes_view record) override {
      if (to != all_.self_) return all_.links_.send(to, record);
      if (all_.scheduler_ && wire::for_head(wire::type_of(record))) return all_.scheduler_->receive(to, record);
      all_.push(record);
    }

   private:
    outboxes& all_;
  };
  class of_this_head final : public wire::outbox {
   public:
    explicit of_this_head(outboxes& all) : all_(all) {}
    void send(rank_t to, bytes_view record) override {
      if (to != all_.self_) return all_.links_.send(to, record);
      all_.push(record);
    }

   private:
    outboxes& all_;
  };

  void push(bytes_view record) {
    queue_.put(static_cast<std::uint64_t>(record.size()));
    queue_.append(record);
  }

  rank_t self_;
  links& links_;
  scheduler::scheduler* scheduler_ = nullptr;  // rank 0
  of_this_agent agent_;
  of_this_head head_;
  base::buffer queue_, taken_;  // each record after its size
  bool draining_ = false;
};

}  // namespace rota::detail
