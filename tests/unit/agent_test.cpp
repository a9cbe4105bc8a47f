// A rank's state machine, message by message.
#include "runtime/agent/agent.h"

#include <algorithm>

#include "tests/unit/machines.h"

namespace {

using namespace machines;
using rota::make_id;
using rota::agent::agent;
using rota::agent::job_kind;
using rota::agent::made_value;
using rota::agent::object;
using rota::agent::object_state;
using rota::agent::submission;
using rota::agent::work;

constexpr rank_t self = 3;

wire::resources slots(std::int64_t n) {
  wire::resources r;
  r.cpus = n * wire::resources::unit;
  return r;
}

class one_rank : public testing::Test {
 protected:
  one_rank() {
    agent_.free_place = [this](std::uint64_t place) { freed_.push_back(place); };
  }
  void get(rank_t from, const buffer& record) { ASSERT_TRUE(agent_.receive(from, record.view())); }
  object* fresh() {
    object& made = agent_.make(make_id(self, ++sequence_));
    rota::agent::add_handle(made);
    return &made;
  }
  object* put() {
    object* o = fresh();
    agent_.put(*o, {number(value_), {}});
    return o;
  }
  void drop(object* o) {
    if (rota::agent::drop_handle(*o)) agent_.dropped(*o);
  }
  void finish(const work& w) { agent_.finished(w.job, {number(value_), {}}, 1000); }
  void fail(const work& w) {
    buffer why = wire::encode({wire::failure_kind::task, "boom", {}});
    agent_.finished(w.job, {wire::failed_value(why.view()), {}}, 1000);
  }
  buffer call(object_id id, std::uint64_t caller, std::vector<object_id> deps = {}) {
    buffer record;
    wire::call_head head;
    head.actor = actor_;
    head.id = id;
    head.caller = caller;
    head.deps = static_cast<std::uint32_t>(deps.size());
    record.put(head);
    record.append(deps.data(), deps.size() * sizeof(object_id));
    return record;
  }
  void make_actor() {
    get(0, assign(actor_, {}, {}, wire::spawn_actor));
    std::optional<work> w = agent_.next();
    ASSERT_TRUE(w && w->kind == job_kind::construct);
    finish(*w);
    out_.take();
  }

  post out_;
  std::vector<std::uint64_t> freed_;
  agent agent_{self, slots(2), out_};
  std::uint64_t sequence_ = 0;
  const int value_ = 42;
  const object_id a_ = make_id(0, 1), b_ = make_id(0, 2), c_ = make_id(0, 3), actor_ = make_id(0, 9);
};

// x holds z and y by pins, z holds y by a handle: y is found twice when x goes.
TEST_F(one_rank, what_lies_in_two_values_that_go_together_is_erased_once) {
  const std::vector<std::byte> large(100);
  wire::value_view bytes;
  bytes.kind = wire::value_kind::inlined;
  bytes.size = large.size();
  bytes.data = large;
  object* y = fresh();
  agent_.put(*y, {bytes, {}});
  object* z = fresh();
  object* inside[] = {y};
  agent_.put(*z, {number(value_), inside});
  object* x = &agent_.adopt(a_, true);
  const object_id held[] = {y->id, z->id};
  wire::value_view v = number(value_);
  v.contains = {reinterpret_cast<const std::byte*>(held), sizeof(held)};
  get(0, value_of(a_, v, 0));
  drop(y);
  drop(z);
  EXPECT_EQ(agent_.live_objects(), 3u);
  drop(x);
  EXPECT_EQ(agent_.live_objects(), 0u);
  EXPECT_NE(fresh(), fresh());
}

TEST_F(one_rank, a_put_costs_no_message_until_its_ref_leaves) {
  object* o = put();
  EXPECT_TRUE(out_.take().empty());
  object* result = fresh();
  submission s;
  object* deps[] = {o};
  s.deps = deps;
  agent_.submit(*result, s);
  std::vector<letter> letters = out_.take();
  ASSERT_EQ(letters.size(), 2u) << types_of(letters);
  EXPECT_EQ(letters[0].type(), wire::message::publish);
  EXPECT_EQ(letters[1].type(), wire::message::spawned);
  drop(o);
  drop(result);
  agent_.flush();
  letters = out_.take(wire::message::count);
  ASSERT_EQ(letters.size(), 1u);
  EXPECT_EQ(letters[0].head<wire::count_head>().minus, 2u);
  EXPECT_EQ(agent_.live_objects(), 0u);
}

TEST_F(one_rank, keeps_a_value_that_overtakes_its_consumer) {
  get(5, value_of(a_, number(value_), 1));
  EXPECT_EQ(agent_.live_objects(), 1u);
  get(0, assign(b_, {awaited(a_)}));
  std::optional<work> w = agent_.next();
  ASSERT_TRUE(w);
  EXPECT_EQ(w->id, b_);
  finish(*w);
  EXPECT_EQ(agent_.live_objects(), 0u);
}

TEST_F(one_rank, each_task_waits_for_a_delivery_of_its_own) {
  get(0, assign(b_, {awaited(a_)}));
  get(0, assign(c_, {awaited(a_)}));
  get(5, value_of(a_, number(value_), 1));
  EXPECT_TRUE(agent_.next());
  EXPECT_FALSE(agent_.next());
  get(0, value_of(a_, number(value_), 1));
  EXPECT_TRUE(agent_.next());
}

TEST_F(one_rank, drops_a_copy_that_nobody_wants) {
  get(5, value_of(a_, number(value_), 0));
  EXPECT_EQ(agent_.live_objects(), 0u);
}

TEST_F(one_rank, sends_its_result_to_whom_it_was_told_of) {
  get(0, assign(a_, {}, {{7, 2, 0}}));
  buffer hint;
  wire::route_head route;
  route.object = a_;
  route.rank = 8;
  hint.put(route);
  get(0, hint);
  std::optional<work> w = agent_.next();
  ASSERT_TRUE(w);
  finish(*w);
  std::vector<letter> letters = out_.take();
  ASSERT_EQ(letters.size(), 3u) << types_of(letters);
  EXPECT_EQ(letters[0].to, 7u);
  EXPECT_EQ(letters[0].head<wire::value_head>().count, 2u);
  EXPECT_EQ(letters[1].to, 8u);
  EXPECT_EQ(letters[2].type(), wire::message::done);
  EXPECT_EQ(letters[2].head<wire::done_head>().served, 2u);
  EXPECT_EQ(agent_.live_objects(), 0u);
}

TEST_F(one_rank, counts_a_ref_that_outlives_its_task_before_the_head_hears_that_it_is_done) {
  get(0, assign(b_, {{a_, number(value_)}}));
  std::optional<work> w = agent_.next();
  ASSERT_TRUE(w);
  object* kept = w->deps[0];
  rota::agent::add_handle(*kept);
  finish(*w);
  std::vector<letter> letters = out_.take();
  ASSERT_EQ(letters.size(), 2u) << types_of(letters);
  EXPECT_EQ(letters[0].type(), wire::message::count);
  EXPECT_EQ(letters[0].head<wire::count_head>().plus, 1u);
  EXPECT_EQ(letters[1].type(), wire::message::done);
  drop(kept);
}

TEST_F(one_rank, a_long_chain_of_failures_is_no_recursion) {
  constexpr std::uint64_t length = 200'000;
  get(0, assign(make_id(0, 1)));
  for (std::uint64_t i = 2; i <= length; ++i) get(0, assign(make_id(0, i), {awaited(make_id(0, i - 1), true)}));
  std::optional<work> first = agent_.next();
  ASSERT_TRUE(first);
  fail(*first);
  EXPECT_EQ(out_.take(wire::message::done).size(), length);
  EXPECT_TRUE(agent_.idle());
  EXPECT_EQ(agent_.live_objects(), 0u);
}

TEST_F(one_rank, a_task_that_waits_runs_its_child) {
  get(0, assign(a_));
  std::optional<work> parent = agent_.next();
  ASSERT_TRUE(parent);
  object* result = fresh();
  submission s;
  s.parent = parent->job;
  agent_.submit(*result, s);
  EXPECT_TRUE(out_.take(wire::message::spawned)[0].head<wire::spawned_head>().flags & wire::spawn_kept);
  agent_.want(*result);
  agent_.blocked(parent->job, false);
  std::optional<work> child = agent_.next_child(parent->job);
  ASSERT_TRUE(child);
  finish(*child);
  EXPECT_EQ(result->state, object_state::ready);
  agent_.unblocked(parent->job);
  drop(result);
  finish(*parent);
  EXPECT_TRUE(agent_.idle());
}

TEST_F(one_rank, gives_back_tasks_that_have_not_started) {
  for (std::uint64_t i = 1; i <= 4; ++i) get(0, assign(make_id(0, i)));
  agent_.next();
  buffer record;
  wire::recall_head ask;
  ask.count = 2;
  record.put(ask);
  get(0, record);
  std::vector<letter> answers = out_.take(wire::message::recalled);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].head<wire::recall_head>().count, 2u);
  EXPECT_EQ(agent_.live_jobs(), 2u);
}

// -- actors ----------------------------------------------------------------------------------------------------------

TEST_F(one_rank, starts_by_priority_whatever_their_number) {
  constexpr std::uint64_t count = 500;
  for (std::uint64_t i = 0; i < count; ++i) {
    buffer record = assign(make_id(0, i + 1));
    wire::assign_head head;
    std::memcpy(&head, record.data(), sizeof(head));
    head.priority = static_cast<std::int32_t>(i * 7 % count);
    std::memcpy(record.data(), &head, sizeof(head));
    get(0, record);
  }
  for (std::uint64_t i = count; i-- > 0;) {
    std::optional<work> w = agent_.next();
    ASSERT_TRUE(w);
    EXPECT_EQ(((w->id - make_id(0, 1)) * 7 % count), i);
    finish(*w);
  }
  EXPECT_FALSE(agent_.next());
}

TEST_F(one_rank, calls_of_one_caller_run_in_order_and_pass_those_of_another_that_wait) {
  make_actor();
  get(1, call(make_id(1, 1), 11, {a_}));
  get(1, call(make_id(1, 2), 11));
  get(1, call(make_id(1, 3), 12));
  std::optional<work> w = agent_.next();
  ASSERT_TRUE(w);
  EXPECT_EQ(w->id, make_id(1, 3));
  finish(*w);
  EXPECT_FALSE(agent_.next());
  get(0, value_of(a_, number(value_), 0));
  w = agent_.next();
  ASSERT_TRUE(w);
  EXPECT_EQ(w->id, make_id(1, 1));
  finish(*w);
  w = agent_.next();
  ASSERT_TRUE(w);
  EXPECT_EQ(w->id, make_id(1, 2));
  finish(*w);
}

TEST_F(one_rank, a_call_may_come_before_its_actor) {
  get(1, call(make_id(1, 1), 0));
  EXPECT_FALSE(agent_.next());
  make_actor();
  std::optional<work> w = agent_.next();
  ASSERT_TRUE(w);
  EXPECT_EQ(w->kind, job_kind::call);
  finish(*w);
}

TEST_F(one_rank, a_call_bears_its_name_and_carries_no_more_where_it_has_none) {
  make_actor();
  object* actor = &agent_.adopt(actor_, true);
  submission plain, named;
  named.name = "doubtful";
  plain.bytes = named.bytes = number(value_).data;
  agent_.call(*fresh(), *actor, plain);
  agent_.call(*fresh(), *actor, named);
  buffer where;
  wire::actor_at_head at;
  at.actor = actor_;
  at.rank = self;
  where.put(at);
  wire::put_value(where, {});
  get(0, where);
  const std::vector<letter> calls = out_.take(wire::message::call);
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].record.size(), sizeof(wire::call_head) + plain.bytes.size());
  for (std::string_view name : {"", "doubtful"}) {
    get(self, calls[name.empty() ? 0 : 1].record);
    std::optional<work> w = agent_.next();
    ASSERT_TRUE(w);
    EXPECT_EQ(w->name, name);
    EXPECT_TRUE(std::ranges::equal(w->bytes, plain.bytes));
    finish(*w);
  }
}

TEST_F(one_rank, a_killed_actor_answers_until_nobody_can_name_it) {
  make_actor();
  get(0, about(wire::message::end_actor, actor_, wire::end_now));
  std::optional<work> w = agent_.next();
  ASSERT_TRUE(w && w->kind == job_kind::destroy);
  finish(*w);
  out_.take();
  get(1, call(make_id(1, 1), 0));
  std::vector<letter> answers = out_.take(wire::message::returned);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(failure_in(carried(answers[0], sizeof(wire::returned_head))), wire::failure_kind::actor_died);
  EXPECT_EQ(agent_.actors_alive(), 1u);
  get(0, about(wire::message::end_actor, actor_, wire::end_forgotten));
  EXPECT_EQ(agent_.actors_alive(), 0u);
}

TEST_F(one_rank, a_call_in_flight_to_a_lost_rank_may_or_may_not_have_run) {
  object* actor = &agent_.adopt(actor_, true);
  object* result = fresh();
  agent_.call(*result, *actor, {});
  buffer where;
  wire::actor_at_head at;
  at.actor = actor_;
  at.rank = 5;
  where.put(at);
  wire::put_value(where, {});
  get(0, where);
  ASSERT_EQ(out_.take(wire::message::call).size(), 1u);
  buffer record;
  wire::lost_head lost;
  lost.rank = 5;
  lost.view = 1;
  record.put(lost);
  get(0, record);
  ASSERT_EQ(result->state, object_state::failed);
  EXPECT_EQ(wire::decode_failure(result->bytes()).kind, wire::failure_kind::actor_unavailable);
  EXPECT_EQ(out_.take(wire::message::sync).size(), 1u);
  // The next call asks where the actor is now.
  object* next = fresh();
  agent_.call(*next, *actor, {});
  EXPECT_EQ(out_.take(wire::message::where).size(), 1u);
}

}  // namespace
