#include "runtime/simulator/throughput.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/scheduler/scheduler.h"

namespace rota::simulator {
namespace {

constexpr std::uint64_t most_in_flight = 200'000;
constexpr std::uint32_t most_counts = 1024;  // refs given up in one message

// Every rank at once: what is assigned waits to be answered, values free their objects.
class all_ranks : public wire::outbox {
 public:
  void send(rank_t to, bytes_view record) override {
    switch (wire::type_of(record)) {
      case wire::message::assign: {
        auto head = base::cursor(record).get<wire::assign_head>();
        assigned_.push_back({head.id, to, head.attempt});
        break;
      }
      case wire::message::value:
        finished_.push_back(base::cursor(record).get<wire::value_head>().object);
        break;
      default:
        break;
    }
  }

  void submit(scheduler::scheduler& head, object_id id) {
    wire::spawned_head spawned;
    spawned.function = 7;
    spawned.id = id;
    spawned.bytes = sizeof(int);
    int argument = 41;
    record_.clear();
    record_.put(spawned);
    record_.put(argument);
    head.receive(0, record_.view());
  }

  // Answers what has been assigned so far, and what that brings.
  void answer_all(scheduler::scheduler& head) {
    for (std::size_t i = 0; i < assigned_.size(); ++i) {
      handed task = assigned_[i];
      wire::done_head done;
      done.attempt = task.attempt;
      done.id = task.id;
      done.nanoseconds = 1000;
      int result = 42;
      wire::value_view value;
      value.kind = wire::value_kind::inlined;
      value.size = sizeof(result);
      value.data = {reinterpret_cast<const std::byte*>(&result), sizeof(result)};
      record_.clear();
      record_.put(done);
      wire::put_value(record_, value);
      head.receive(task.rank, record_.view());
      if (finished_.size() >= most_counts) drop_finished(head);
    }
    assigned_.clear();
    drop_finished(head);
  }

  std::uint64_t freed() const { return freed_; }

 private:
  struct handed {
    object_id id;
    rank_t rank;
    std::uint16_t attempt;
  };

  void drop_finished(scheduler::scheduler& head) {
    if (finished_.empty()) return;
    wire::count_head counts;
    counts.minus = static_cast<std::uint32_t>(finished_.size());
    record_.clear();
    record_.put(counts);
    record_.append(finished_.data(), finished_.size() * sizeof(object_id));
    freed_ += finished_.size();
    finished_.clear();
    head.receive(0, record_.view());
  }

  std::vector<handed> assigned_;
  std::vector<object_id> finished_;
  std::uint64_t freed_ = 0;
  base::buffer record_;
};

}  // namespace

throughput_result simulate_throughput(std::uint32_t ranks, std::uint64_t tasks) {
  all_ranks out;
  scheduler::scheduler head(out);
  head.join(0, {0, {}, "head"});
  wire::resources slot;
  slot.cpus = wire::resources::unit;
  for (rank_t r = 1; r <= ranks; ++r) head.join(r, {r / 64, slot, "host"});

  std::uint64_t started = base::now_ns();
  for (std::uint64_t i = 0; i < tasks;) {
    for (std::uint64_t end = std::min(tasks, i + most_in_flight); i < end; ++i) out.submit(head, make_id(0, i + 1));
    out.answer_all(head);
  }
  double seconds = static_cast<double>(base::now_ns() - started) * 1e-9;
  bool once = out.freed() == tasks && head.live_objects() == 0 && head.count().assigned == tasks;
  if (!once) throw std::logic_error("the scheduler lost or repeated tasks: " + head.describe_live(3));
  return {static_cast<double>(tasks) / seconds};
}

}  // namespace rota::simulator
