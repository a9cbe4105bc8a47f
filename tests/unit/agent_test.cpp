// A rank's state machine, message by message: tasks and values.
#include "runtime/agent/agent.h"

#include <algorithm>

#include "tests/unit/one_rank.h"

namespace {

using namespace machines;

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

// Told twice, for a DONE in between said that none waited.
TEST_F(one_rank, a_task_that_waits_again_is_told_of_after_a_call_of_the_rank_returned) {
  get(0, assign(a_));
  const std::optional<work> task = agent_.next();
  ASSERT_TRUE(task);
  object* result = fresh();
  agent_.call(*result, agent_.adopt(actor_, true), {});
  get(0, actor_on(5));
  object* dependent = fresh();
  submission s;
  s.deps = {&result, 1};
  agent_.submit(*dependent, s);
  agent_.blocked(task->job, true);
  out_.take();
  agent_.unblocked(task->job);
  buffer returned;
  wire::returned_head head;
  head.id = result->id;
  returned.put(head);
  wire::put_value(returned, number(value_));
  get(5, returned);
  std::vector<letter> told = out_.take(wire::message::done);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].head<wire::done_head>().blocked, 0u);
  agent_.blocked(task->job, true);
  told = out_.take(wire::message::blocked);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].head<wire::blocked_head>().count, 1u);
}

TEST_F(one_rank, a_wide_task_that_waits_in_the_place_of_a_narrow_one_is_told_of) {
  get(0, assign(a_));
  get(0, wide(b_, 2));
  const std::optional<work> narrow = agent_.next();
  ASSERT_TRUE(narrow);
  agent_.blocked(narrow->job, true);
  const std::optional<work> task = agent_.next();
  ASSERT_TRUE(task);
  agent_.unblocked(narrow->job);
  out_.take();
  agent_.blocked(task->job, true);
  const std::vector<letter> told = out_.take(wire::message::blocked);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].head<wire::blocked_head>().count, 1u);
  EXPECT_EQ(told[0].head<wire::blocked_head>().cpus, 2 * wire::resources::unit);
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

}  // namespace
