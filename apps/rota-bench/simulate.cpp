// The scheduler alone: no links, no agents, ranks that finish whatever they are given.

#include <deque>
#include <stdexcept>
#include <vector>

#include "apps/rota-bench/bench.h"
#include "runtime/scheduler/scheduler.h"
#include "runtime/wire/messages.h"
#include "runtime/wire/outbox.h"

namespace bench {
namespace {

using rota::bytes_view;
using rota::object_id;
using rota::rank_t;
namespace wire = rota::wire;

constexpr rank_t rank_count = 10'000;
constexpr std::uint64_t task_count = 1'000'000;
constexpr std::uint32_t task_nanoseconds = 1'000;

// Stands for all ranks: keeps what the scheduler sent them until answer_one() lets the oldest message be answered.
class echo_ranks final : public wire::outbox {
 public:
  void send(rank_t to, bytes_view record) override {
    rota::base::cursor from(record);
    switch (wire::type_of(record)) {
      case wire::message::assign: {
        const auto head = from.get<wire::assign_head>();
        return waiting_.push_back({to, head.attempt, head.id});
      }
      case wire::message::recall:
        return waiting_.push_back({to, 0, 0});
      case wire::message::value:
        return arrived_.push_back(from.get<wire::value_head>().object);
      default:
        throw std::logic_error("simulate: a message that no plain task needs");
    }
  }

  bool answer_one(rota::scheduler::scheduler& head) {
    if (waiting_.empty()) return false;
    const sent oldest = waiting_.front();
    waiting_.pop_front();
    record_.clear();
    if (oldest.id == 0) {  // a recall: all have started
      wire::recall_head none;
      none.type = wire::message::recalled;
      record_.put(none);
    } else {
      wire::done_head done;
      done.attempt = oldest.attempt;
      done.nanoseconds = task_nanoseconds;
      done.id = oldest.id;
      record_.put(done);
      const int result = 1;
      wire::value_view value;
      value.kind = wire::value_kind::inlined;
      value.size = sizeof(result);
      value.data = {reinterpret_cast<const std::byte*>(&result), sizeof(result)};
      wire::put_value(record_, value);
    }
    head.receive(oldest.rank, record_.view());
    return true;
  }

  // Rank 0 lets go of the results that have come.
  void drop_results(rota::scheduler::scheduler& head) {
    wire::count_head counts;
    counts.minus = static_cast<std::uint32_t>(arrived_.size());
    record_.clear();
    record_.put(counts);
    record_.append(arrived_.data(), arrived_.size() * sizeof(object_id));
    arrived_.clear();
    head.receive(0, record_.view());
  }

  std::size_t results() const { return arrived_.size(); }

 private:
  struct sent {
    rank_t rank;
    std::uint16_t attempt;
    object_id id;  // 0: a recall
  };
  std::deque<sent> waiting_{};
  std::vector<object_id> arrived_{};
  rota::base::buffer record_{};
};

void submit(rota::scheduler::scheduler& head, std::uint64_t number, rota::base::buffer& record) {
  const int argument = 1;
  wire::spawned_head spawned;
  spawned.id = rota::make_id(0, number);
  spawned.bytes = sizeof(argument);
  record.clear();
  record.put(spawned);
  record.put(argument);
  head.receive(0, record.view());
}

// Two tasks are submitted for one that ends until all are, so that ranks fill up and half of the tasks wait.
double schedule_all() {
  constexpr double mega = 1e-6;
  constexpr std::size_t drop_at = 256;
  echo_ranks ranks;
  rota::scheduler::scheduler head(ranks);
  head.join(0, {});
  for (rank_t r = 1; r < rank_count; ++r) {
    rota::scheduler::rank_offer offer;
    offer.node = r / 100;
    offer.total.cpus = wire::resources::unit;
    head.join(r, offer);
  }
  rota::base::buffer record;
  const double seconds = seconds_of([&] {
    for (std::uint64_t i = 1; i <= task_count; ++i) {
      submit(head, i, record);
      if (i % 2 == 0) ranks.answer_one(head);
      if (ranks.results() >= drop_at) ranks.drop_results(head);
    }
    while (ranks.answer_one(head)) {
      if (ranks.results() >= drop_at) ranks.drop_results(head);
    }
    ranks.drop_results(head);
  });
  expect(head.count().committed == task_count && head.live_objects() == 0, "simulate", "tasks or refs are left");
  return task_count * mega / seconds;
}

}  // namespace

void run_simulate(const context& run) {
  report(run, {.bench = "simulate", .value = repeated(run, "simulate", schedule_all), .unit = "M/s"});
}

}  // namespace bench
