// Tasks that are submitted in a row: SPAWNED_ALL, from the agent that writes it to the head that takes it.
#include <set>

#include "runtime/agent/agent.h"
#include "runtime/scheduler/scheduler.h"
#include "tests/unit/machines.h"

namespace {

using namespace machines;
using rota::make_id;
namespace agent = rota::agent;

constexpr std::uint32_t function = 17;

wire::resources slots(std::int64_t count) { return {count * wire::resources::unit, {}}; }

// `count` tasks whose argument is their number in the row, submitted by an agent on rank 1.
struct row {
  explicit row(int count, std::uint32_t parent = 0) : numbers(static_cast<std::size_t>(count)) {
    for (int i = 0; i < count; ++i) {
      agent::object& made = agent_.make(make_id(1, static_cast<std::uint64_t>(i) + 1));
      agent::add_handle(made);
      results.push_back(&made);
      numbers[static_cast<std::size_t>(i)] = i;
      bytes.push_back(wire::as_bytes(numbers[static_cast<std::size_t>(i)]));
    }
    alike.function = function;
    alike.parent = parent;
  }
  void submit() { agent_.submit_all(results, alike, bytes); }
  std::vector<letter> take(wire::message type) { return out_.take(type); }

  post out_;
  agent::agent agent_{1, slots(1), out_};
  std::vector<int> numbers;
  std::vector<agent::object*> results;
  std::vector<bytes_view> bytes;
  agent::submission alike;
};

// The argument at the end of an ASSIGN.
int argument_of(const letter& l) {
  int value = 0;
  std::memcpy(&value, l.record.data() + l.record.size() - sizeof(value), sizeof(value));
  return value;
}

struct cluster {
  explicit cluster(std::int64_t slots_of_worker) {
    head.join(0, {0, slots(0), "head"});
    head.join(1, {0, slots(0), "submitter"});
    if (slots_of_worker > 0) head.join(2, {0, slots(slots_of_worker), "worker"});
  }
  void take_all(row& from) {
    for (const letter& l : from.take(wire::message::spawned_all)) head.receive(1, l.record.view());
    head.check();
  }
  post out;
  rota::scheduler::scheduler head{out};
};

TEST(rows, tasks_are_handed_out_in_order_with_their_own_arguments) {
  constexpr int count = 10'000;
  row tasks(count);
  tasks.submit();
  cluster c(1);
  c.take_all(tasks);
  int next = 0;
  std::set<object_id> ids;
  for (std::vector<letter> now = c.out.take(wire::message::assign); !now.empty();) {
    for (const letter& l : now) {
      auto assigned = l.head<wire::assign_head>();
      EXPECT_EQ(assigned.function, function);
      EXPECT_EQ(argument_of(l), next);
      EXPECT_EQ(assigned.id, make_id(1, static_cast<std::uint64_t>(next) + 1));
      ++next;
      ids.insert(assigned.id);
    }
    const std::vector<letter> before = std::exchange(now, {});
    for (const letter& l : before) c.head.receive(2, done(l.head<wire::assign_head>().id, number(1)).view());
    now = c.out.take(wire::message::assign);
  }
  EXPECT_EQ(next, count);
  EXPECT_EQ(ids.size(), static_cast<std::size_t>(count));
  EXPECT_EQ(c.head.count().spawned, static_cast<std::uint64_t>(count));
  c.head.check();
}

TEST(rows, a_record_stays_small) {
  row tasks(10'000);
  tasks.submit();
  std::size_t records = 0;
  for (const letter& l : tasks.out_.take()) {
    EXPECT_LE(l.record.size(), std::size_t{9} << 10);
    ++records;
  }
  EXPECT_GT(records, 1u);
}

TEST(rows, every_result_is_counted_and_freed) {
  row tasks(100);
  tasks.submit();
  cluster c(1);
  c.take_all(tasks);
  EXPECT_EQ(c.head.live_objects(), 100u);
  for (std::uint64_t i = 1; i <= 100; ++i) {
    EXPECT_EQ(c.head.account_of(make_id(1, i), 1), 1u);
    c.head.receive(2, done(make_id(1, i), number(1)).view());
  }
  for (const letter& l : c.out.take(wire::message::value)) tasks.agent_.receive(0, l.record.view());
  for (agent::object* o : tasks.results) {
    EXPECT_EQ(o->state, agent::object_state::ready);
    if (agent::drop_handle(*o)) tasks.agent_.dropped(*o);
  }
  tasks.agent_.flush();
  for (const letter& l : tasks.take(wire::message::count)) c.head.receive(1, l.record.view());
  c.head.check();
  EXPECT_EQ(c.head.live_objects(), 0u);
  EXPECT_EQ(tasks.agent_.live_objects(), 0u);
}

TEST(rows, fail_where_no_rank_runs_tasks) {
  row tasks(3);
  tasks.submit();
  cluster c(0);
  c.take_all(tasks);
  std::vector<letter> failed = c.out.take(wire::message::value);
  ASSERT_EQ(failed.size(), 3u);
  for (const letter& l : failed) {
    EXPECT_EQ(l.to, 1u);
    EXPECT_EQ(failure_in(carried(l, sizeof(wire::value_head))), wire::failure_kind::infeasible);
  }
}

// As with submit: a task's own children stay with it while few wait, so that it can run them while it waits.
TEST(rows, children_stay_with_their_parent_while_few_wait) {
  row tasks(100);
  tasks.agent_.receive(0, assign(make_id(0, 1)).view());
  std::optional<agent::work> parent = tasks.agent_.next();
  ASSERT_TRUE(parent);
  tasks.alike.parent = parent->job;
  tasks.submit();
  std::size_t kept = 0, given = 0;
  for (const letter& l : tasks.out_.take()) {
    if (l.type() == wire::message::spawned) {
      EXPECT_TRUE(l.head<wire::spawned_head>().flags & wire::spawn_kept);
      ++kept;
    }
    if (l.type() == wire::message::spawned_all) {
      EXPECT_EQ(l.head<wire::spawned_all_head>().parent, make_id(0, 1));
      given += l.head<wire::spawned_all_head>().count;
    }
  }
  EXPECT_EQ(kept, 64u);
  EXPECT_EQ(given, 36u);
  tasks.agent_.blocked(parent->job, false);
  EXPECT_TRUE(tasks.agent_.next_child(parent->job));
}

}  // namespace
