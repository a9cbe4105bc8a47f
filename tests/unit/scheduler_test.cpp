// The head's state machine, message by message. What random orders and losses do to it is simulator_test's matter.
#include "runtime/scheduler/scheduler.h"

#include <algorithm>
#include <set>

#include "tests/unit/machines.h"

namespace {

using namespace machines;
using rota::make_id;
using rota::scheduler::scheduler;

class head : public testing::Test {
 protected:
  void join(rank_t rank, std::int64_t slots, std::int64_t lamps = 0) {
    wire::resources total;
    total.cpus = slots * wire::resources::unit;
    if (lamps > 0) total.others = {{"lamp", lamps * wire::resources::unit}};
    head_.join(rank, {0, total, "host" + std::to_string(rank)});
  }
  void get(rank_t from, const buffer& record) {
    head_.receive(from, record.view());
    head_.check();
  }
  std::vector<letter> assigned() { return out_.take(wire::message::assign); }
  rank_t place_of(const std::vector<letter>& letters, object_id id) {
    for (const letter& l : letters) {
      if (l.type() == wire::message::assign && l.head<wire::assign_head>().id == id) return l.to;
    }
    return rota::no_rank;
  }

  post out_;
  scheduler head_{out_};
  const int value_ = 42;
  const object_id a_ = make_id(0, 1), b_ = make_id(0, 2), c_ = make_id(0, 3);
};

TEST_F(head, spreads_tasks_over_idle_ranks) {
  join(0, 0);
  for (rank_t r = 1; r <= 3; ++r) join(r, 1);
  for (std::uint64_t i = 1; i <= 3; ++i) get(0, spawned(make_id(0, i)));
  std::set<rank_t> used;
  for (const letter& l : assigned()) used.insert(l.to);
  EXPECT_EQ(used, (std::set<rank_t>{1, 2, 3}));
}

TEST_F(head, hands_out_by_priority_whatever_their_number) {
  constexpr std::uint64_t count = 2'000;
  join(0, 0);
  join(1, 1);
  wire::spawned_head with;
  for (std::uint64_t i = 0; i < count; ++i) {
    with.priority = static_cast<std::int32_t>(i * 7 % count);
    head_.receive(0, spawned(make_id(0, i + 1), {}, with).view());
  }
  std::vector<object_id> left;
  for (const letter& l : assigned()) left.push_back(l.head<wire::assign_head>().id);
  ASSERT_LT(left.size(), count / 2);  // those that came first; the others wait
  std::int32_t last = count;
  for (std::size_t i = 0; i < left.size(); ++i) {
    head_.receive(1, done(left[i], number(value_)).view());
    for (const letter& l : assigned()) {
      auto next = l.head<wire::assign_head>();
      EXPECT_LT(next.priority, last);
      last = next.priority;
      left.push_back(next.id);
    }
  }
  EXPECT_EQ(left.size(), count);
  head_.check();
}

TEST_F(head, hands_out_a_consumer_before_its_argument_exists) {
  join(0, 0);
  join(1, 1);
  join(2, 1);
  wire::spawned_head there;
  there.where = wire::where_kind::on_rank;
  there.target = 2;
  get(0, spawned(a_));
  rank_t maker = place_of(out_.take(), a_);
  there.target = maker == 1 ? 2 : 1;
  get(0, spawned(b_, {a_}, there));
  std::vector<letter> letters = out_.take();
  ASSERT_EQ(letters.size(), 2u) << types_of(letters);
  EXPECT_EQ(letters[0].type(), wire::message::route);
  EXPECT_EQ(letters[0].to, maker);
  EXPECT_EQ(letters[0].head<wire::route_head>().rank, there.target);
  EXPECT_EQ(carried(letters[1], sizeof(wire::assign_head) + sizeof(object_id)).kind, wire::value_kind::awaited);
}

TEST_F(head, serves_the_consumers_that_the_maker_did_not) {
  join(0, 0);
  join(1, 3);
  get(0, spawned(a_));
  get(0, spawned(b_, {a_}));
  get(0, spawned(c_, {a_}));
  out_.take();
  get(1, done(a_, number(value_), {{1, 1, 0}}));
  std::vector<letter> values = out_.take(wire::message::value);
  std::uint32_t deliveries = 0;
  for (const letter& l : values) {
    if (l.to == 1) deliveries += l.head<wire::value_head>().count;
  }
  EXPECT_EQ(deliveries, 1u);
}

// The first consumer got its delivery from the maker and is done before the maker's own DONE comes, which names it.
TEST_F(head, does_not_take_a_used_delivery_for_one_of_a_later_consumer) {
  join(0, 0);
  join(1, 1);
  join(2, 1);
  get(0, spawned(a_));
  rank_t maker = place_of(out_.take(), a_), other = maker == 1 ? 2 : 1;
  wire::spawned_head there;
  there.where = wire::where_kind::on_rank;
  there.target = other;
  get(0, spawned(b_, {a_}, there));
  get(other, done(b_, number(value_)));
  get(0, spawned(c_, {a_}, there));
  out_.take();
  get(maker, done(a_, number(value_), {{other, 1, 0}}));
  std::vector<letter> values = out_.take(wire::message::value);
  bool served = std::any_of(values.begin(), values.end(),
                            [&](const letter& l) { return l.to == other && l.head<wire::value_head>().count == 1; });
  EXPECT_TRUE(served);
}

TEST_F(head, fails_dependents_with_the_failure_of_their_argument) {
  join(0, 0);
  join(1, 1);
  get(0, spawned(a_));
  buffer why = wire::encode({wire::failure_kind::task, "boom", {}});
  get(1, done(a_, wire::failed_value(why.view())));
  out_.take();
  get(0, spawned(b_, {a_}));
  std::vector<letter> letters = out_.take();
  ASSERT_EQ(letters.size(), 1u) << types_of(letters);
  EXPECT_EQ(letters[0].type(), wire::message::value);
  EXPECT_EQ(wire::decode_failure(carried(letters[0], sizeof(wire::value_head)).data).what, "boom");
}

TEST_F(head, says_at_once_that_no_rank_is_large_enough) {
  join(0, 0);
  join(1, 2);
  wire::spawned_head wide;
  wide.needs = wire::explicit_needs;
  wire::resources needs;
  needs.cpus = 3 * wire::resources::unit;
  buffer record = spawned(a_, {}, wide);
  wire::put_resources(record, needs);
  get(0, record);
  std::vector<letter> letters = out_.take();
  ASSERT_EQ(letters.size(), 1u) << types_of(letters);
  wire::failure f = wire::decode_failure(carried(letters[0], sizeof(wire::value_head)).data);
  EXPECT_EQ(f.kind, wire::failure_kind::infeasible);
  EXPECT_NE(f.what.find("3 cpus"), std::string::npos) << f.what;
  EXPECT_NE(f.what.find("2 cpus"), std::string::npos) << f.what;
}

TEST_F(head, names_the_rank_that_comes_nearest_to_what_is_asked_for) {
  join(0, 0);
  join(1, 8);
  join(2, 2, 3);
  wire::spawned_head many_lamps;
  many_lamps.needs = wire::explicit_needs;
  wire::resources needs;
  needs.cpus = wire::resources::unit;
  needs.others = {{"lamp", 77 * wire::resources::unit}};
  buffer record = spawned(a_, {}, many_lamps);
  wire::put_resources(record, needs);
  get(0, record);
  wire::failure f = wire::decode_failure(carried(out_.take().at(0), sizeof(wire::value_head)).data);
  EXPECT_NE(f.what.find("77 lamp"), std::string::npos) << f.what;
  EXPECT_NE(f.what.find("3 lamp"), std::string::npos) << f.what;
}

TEST_F(head, frees_an_object_and_its_place_with_the_last_account) {
  join(0, 0);
  join(1, 1);
  get(0, spawned(a_));
  wire::value_view placed;
  placed.kind = wire::value_kind::placed;
  placed.owner = 1;
  placed.place = 4096;
  placed.size = 100;
  get(1, done(a_, placed));
  get(1, counts({a_}, {}));
  get(0, counts({}, {a_}));
  EXPECT_TRUE(out_.take(wire::message::free_place).empty());
  EXPECT_EQ(head_.live_objects(), 1u);
  get(1, counts({}, {a_}));
  std::vector<letter> letters = out_.take(wire::message::free_place);
  ASSERT_EQ(letters.size(), 1u);
  EXPECT_EQ(letters[0].head<wire::free_place_head>().place, 4096u);
  EXPECT_EQ(head_.live_objects(), 0u);
}

TEST_F(head, keeps_what_a_value_contains) {
  join(0, 0);
  join(1, 1);
  const object_id inner = make_id(1, 1);
  get(0, spawned(a_));
  buffer published;
  wire::publish_head named;
  named.id = inner;
  published.put(named);
  wire::put_value(published, number(value_));
  get(1, published);
  wire::value_view box = number(value_);
  box.contains = {reinterpret_cast<const std::byte*>(&inner), sizeof(inner)};
  get(1, done(a_, box));
  get(1, counts({}, {inner}));
  EXPECT_TRUE(head_.covered(inner));
  get(0, counts({}, {a_}));
  EXPECT_EQ(head_.live_objects(), 0u);
}

TEST_F(head, gives_what_came_back_to_another_rank) {
  join(0, 0);
  join(1, 1);
  for (std::uint64_t i = 1; i <= 4; ++i) get(0, spawned(make_id(0, i)));
  ASSERT_EQ(assigned().size(), 4u);
  join(2, 1);
  std::vector<letter> recalls = out_.take(wire::message::recall);
  ASSERT_EQ(recalls.size(), 1u);
  EXPECT_EQ(recalls[0].to, 1u);
  buffer answer;
  wire::recall_head given;
  given.type = wire::message::recalled;
  given.count = 1;
  answer.put(given);
  answer.put(wire::recalled_item{make_id(0, 4), 0, 0});
  get(1, answer);
  EXPECT_EQ(place_of(out_.take(), make_id(0, 4)), 2u);
}

// Tasks that wait for arguments fill their rank's depth, and what they wait for needs just that rank.
TEST_F(head, a_task_that_can_start_finds_a_slot_among_tasks_that_wait) {
  join(0, 0);
  join(1, 1);
  const object_id late = make_id(1, 9);
  buffer announced;
  wire::publish_head named;
  named.id = late;
  announced.put(named);
  wire::put_value(announced, {});
  get(1, announced);
  for (std::uint64_t i = 1; i <= 10'000; ++i) head_.receive(0, spawned(make_id(0, i), {late}).view());
  out_.take();
  get(0, spawned(make_id(0, 10'001)));
  EXPECT_EQ(place_of(out_.take(), make_id(0, 10'001)), 1u);
}

// -- loss ------------------------------------------------------------------------------------------------------------

class loss : public head {
 protected:
  void SetUp() override {
    join(0, 0);
    join(1, 1);
    join(2, 1);
    get(0, spawned(a_));
    lost_ = place_of(out_.take(), a_);
    left_ = lost_ == 1 ? 2 : 1;
  }
  void lose() {
    head_.lose(lost_);
    head_.check();
  }

  rank_t lost_ = 0, left_ = 0;
};

TEST_F(loss, tries_again_only_when_every_survivor_has_answered) {
  lose();
  EXPECT_EQ(out_.take(wire::message::lost).size(), 2u);
  get(0, sync_without_items(lost_, 1));
  EXPECT_TRUE(assigned().empty());
  get(left_, sync_without_items(lost_, 1));
  std::vector<letter> letters = assigned();
  ASSERT_EQ(letters.size(), 1u);
  EXPECT_EQ(letters[0].to, left_);
  EXPECT_EQ(letters[0].head<wire::assign_head>().attempt, 1u);
}

TEST_F(loss, commits_what_a_survivor_had_got) {
  lose();
  out_.take();
  get(0, sync_without_items(lost_, 1));
  buffer record;
  wire::lost_head answer;
  answer.type = wire::message::sync;
  answer.rank = lost_;
  answer.view = 1;
  answer.items = 1;
  record.put(answer);
  record.put(wire::synced_item{a_, 0, 0});
  wire::put_value(record, number(value_));
  get(left_, record);
  std::vector<letter> letters = out_.take();
  EXPECT_EQ(place_of(letters, a_), rota::no_rank);
  bool pushed = std::any_of(letters.begin(), letters.end(),
                            [](const letter& l) { return l.to == 0 && l.type() == wire::message::value; });
  EXPECT_TRUE(pushed);
}

TEST_F(loss, ignores_what_the_lost_rank_still_says) {
  lose();
  get(lost_, done(a_, number(value_)));
  EXPECT_TRUE(out_.take(wire::message::value).empty());
}

TEST_F(loss, fails_tasks_that_are_pinned_to_the_lost_rank) {
  wire::spawned_head there;
  there.where = wire::where_kind::on_rank;
  there.target = lost_;
  get(0, spawned(b_, {}, there));
  lose();
  get(0, sync_without_items(lost_, 1));
  get(left_, sync_without_items(lost_, 1));
  bool failed = false;
  for (const letter& l : out_.take(wire::message::value)) {
    if (l.head<wire::value_head>().object != b_) continue;
    failed = failure_in(carried(l, sizeof(wire::value_head))) == wire::failure_kind::rank_lost;
  }
  EXPECT_TRUE(failed);
}

TEST_F(loss, closes_the_accounts_of_the_lost_rank) {
  const object_id put = make_id(lost_, 1);
  buffer published;
  wire::publish_head named;
  named.id = put;
  published.put(named);
  wire::put_value(published, number(value_));
  get(lost_, published);
  lose();
  EXPECT_TRUE(head_.covered(put));
  get(0, sync_without_items(lost_, 1));
  get(left_, sync_without_items(lost_, 1));
  EXPECT_FALSE(head_.covered(put));
}

// A survivor has the name of an object from the lost rank, which had not come to tell the head of it.
TEST_F(loss, fails_objects_that_the_head_has_never_heard_of) {
  const object_id never = make_id(lost_, 7), later = make_id(lost_, 8);
  get(left_, counts({never}, {}));
  get(left_, about(wire::message::pull, never));
  lose();
  get(0, sync_without_items(lost_, 1));
  get(left_, sync_without_items(lost_, 1));
  get(left_, counts({later}, {}));
  get(left_, about(wire::message::pull, later));
  std::vector<letter> values = out_.take(wire::message::value);
  ASSERT_EQ(values.size(), 2u);
  for (const letter& l : values) {
    EXPECT_EQ(failure_in(carried(l, sizeof(wire::value_head))), wire::failure_kind::object_lost);
  }
}

// -- actors ----------------------------------------------------------------------------------------------------------

TEST_F(head, a_kill_that_comes_before_its_actor_is_not_forgotten) {
  join(0, 0);
  join(1, 1);
  get(1, about(wire::message::end_actor, a_, wire::end_now));
  wire::spawned_head actor;
  actor.flags = wire::spawn_actor;
  actor.needs = wire::no_cpu;
  get(0, spawned(a_, {}, actor));
  EXPECT_EQ(place_of(out_.take(), a_), rota::no_rank);
  get(0, about(wire::message::where, a_));
  std::vector<letter> answers = out_.take(wire::message::actor_at);
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(failure_in(carried(answers[0], sizeof(wire::actor_at_head))), wire::failure_kind::actor_died);
}

TEST_F(head, ends_an_actor_with_its_last_handle) {
  join(0, 0);
  join(1, 1);
  wire::spawned_head actor;
  actor.flags = wire::spawn_actor;
  actor.needs = wire::no_cpu;
  get(0, spawned(a_, {}, actor));
  get(1, done(a_, number(value_)));
  out_.take();
  get(0, counts({}, {a_}));
  std::vector<letter> ends = out_.take(wire::message::end_actor);
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0].to, 1u);
  EXPECT_EQ(head_.live_objects(), 1u);
  get(1, about(wire::message::end_actor, a_));
  EXPECT_EQ(head_.live_objects(), 0u);
}

}  // namespace
