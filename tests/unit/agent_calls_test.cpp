// A rank's state machine, message by message: actors and calls.
#include <algorithm>

#include "tests/unit/one_rank.h"

namespace {

using namespace machines;

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
  get(0, actor_on(self));
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
  get(0, actor_on(5));
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
