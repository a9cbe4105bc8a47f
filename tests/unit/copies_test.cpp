// Values that ranks of other nodes need: who fetches them, from where, and when copies go.
#include <map>
#include <optional>
#include <set>

#include "runtime/agent/agent.h"
#include "runtime/scheduler/scheduler.h"
#include "runtime/wire/copy_messages.h"
#include "tests/unit/machines.h"

namespace {

using namespace machines;
using rota::make_id;
using rota::scheduler::scheduler;

wire::value_view placed(rank_t owner, std::uint64_t place, std::uint64_t size = 1 << 20) {
  wire::value_view v;
  v.kind = wire::value_kind::placed;
  v.owner = owner;
  v.place = place;
  v.size = size;
  return v;
}

buffer published(object_id id, const wire::value_view& v) {
  buffer record;
  wire::publish_head head;
  head.id = id;
  record.put(head);
  wire::put_value(record, v);
  return record;
}

buffer fetched(object_id id, std::uint64_t place, wire::fetch_outcome outcome = wire::fetch_outcome::whole) {
  buffer record;
  wire::fetched_head head;
  head.object = id;
  head.place = place;
  head.outcome = outcome;
  record.put(head);
  return record;
}

constexpr std::size_t before_value = sizeof(wire::value_head);

// The head alone on node 0; two ranks on each other node: 1 and 2 on node 1, 3 and 4 on node 2, ...
class copies : public testing::Test {
 protected:
  copies() {
    join(0, 0, 0);
    for (rank_t r = 1; r <= 20; ++r) join(r, (r + 1) / 2, 1);
    get(1, published(a_, placed(1, 100)));
    out_.take();
  }
  void join(rank_t rank, std::uint32_t node, std::int64_t slots) {
    wire::resources total;
    total.cpus = slots * wire::resources::unit;
    head_.join(rank, {node, total, "host" + std::to_string(node)});
  }
  void get(rank_t from, const buffer& record) {
    head_.receive(from, record.view());
    head_.check();
  }
  void pull(rank_t from) {
    get(from, counts({a_}, {}));
    get(from, about(wire::message::pull, a_));
  }
  void task_on(rank_t rank, object_id id) {
    wire::spawned_head with;
    with.where = wire::where_kind::on_rank;
    with.target = rank;
    get(0, spawned(id, {a_}, with));
  }

  post out_;
  scheduler head_{out_};
  const object_id a_ = make_id(1, 1);
};

TEST_F(copies, readers_on_the_node_of_the_value_map_it) {
  pull(2);
  const auto values = out_.take();
  ASSERT_EQ(values.size(), 1u) << types_of(values);
  EXPECT_EQ(values[0].to, 2u);
  EXPECT_EQ(carried(values[0], before_value).place, 100u);
}

TEST_F(copies, a_node_fetches_once_however_many_read) {
  pull(3);
  pull(4);
  task_on(4, make_id(0, 1));
  std::vector<letter> sent = out_.take();
  ASSERT_EQ(sent.size(), 2u) << types_of(sent);
  EXPECT_EQ(sent[0].to, 3u);
  const auto fetch = sent[0].head<wire::fetch_head>();
  EXPECT_EQ(sent[0].type(), wire::message::fetch);
  EXPECT_EQ(fetch.from, 1u);
  EXPECT_EQ(fetch.place, 100u);
  EXPECT_EQ(fetch.size, std::uint64_t{1} << 20);
  EXPECT_EQ(sent[1].type(), wire::message::assign);

  get(3, fetched(a_, 300));
  std::map<rank_t, std::uint32_t> deliveries;
  sent = out_.take();
  for (const letter& l : sent) {
    ASSERT_EQ(l.type(), wire::message::value);
    EXPECT_EQ(carried(l, before_value).place, 300u);
    EXPECT_EQ(carried(l, before_value).owner, 3u);
    deliveries[l.to] += l.head<wire::value_head>().count;
  }
  EXPECT_EQ(deliveries, (std::map<rank_t, std::uint32_t>{{3, 0}, {4, 1}}));
  pull(4);
  sent = out_.take();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(carried(sent[0], before_value).place, 300u) << "who comes later maps the copy";
}

TEST_F(copies, go_along_a_tree) {
  for (rank_t r = 3; r <= 19; r += 2) pull(r);
  std::map<rank_t, std::uint32_t> served;  // by source
  std::size_t rounds = 0;
  for (std::vector<letter> open = out_.take(wire::message::fetch); !open.empty(); ++rounds) {
    std::map<rank_t, int> at_once;
    for (const letter& l : open) ++at_once[l.head<wire::fetch_head>().from];
    for (const auto& [source, count] : at_once) EXPECT_LE(count, 2) << "from rank " << source;
    for (const letter& l : open) {
      ++served[l.head<wire::fetch_head>().from];
      get(l.to, fetched(a_, 300 + l.to));
    }
    open = out_.take(wire::message::fetch);
  }
  EXPECT_LE(rounds, 4u);  // 2, 4, 8 and 9 copies
  EXPECT_GT(served.size(), 3u);
  EXPECT_LE(served[1], 5u);
}

TEST_F(copies, are_freed_with_the_value) {
  pull(3);
  pull(5);
  get(3, fetched(a_, 300));
  get(3, counts({}, {a_}));
  get(5, counts({}, {a_}));
  out_.take();
  get(1, counts({}, {a_}));
  EXPECT_TRUE(out_.take(wire::message::free_place).empty());  // 5 still reads one of them
  get(5, fetched(a_, 500));
  std::set<std::pair<rank_t, std::uint64_t>> freed;
  for (const letter& l : out_.take(wire::message::free_place))
    freed.insert({l.to, l.head<wire::free_place_head>().place});
  EXPECT_EQ(freed, (std::set<std::pair<rank_t, std::uint64_t>>{{1, 100}, {3, 300}, {5, 500}}));
  EXPECT_EQ(head_.live_objects(), 0u);
}

TEST_F(copies, that_find_no_room_fail_their_readers_only) {
  pull(3);
  pull(5);
  out_.take();
  get(3, fetched(a_, 0, wire::fetch_outcome::no_room));
  const auto failed = out_.take(wire::message::value);
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].to, 3u);
  EXPECT_EQ(failure_in(carried(failed[0], before_value)), wire::failure_kind::out_of_memory);
  get(5, fetched(a_, 500));
  EXPECT_EQ(out_.take(wire::message::value).size(), 1u);
}

TEST_F(copies, that_break_are_fetched_again_from_the_only_source) {
  pull(3);
  get(3, fetched(a_, 0, wire::fetch_outcome::broken));
  get(3, fetched(a_, 0, wire::fetch_outcome::broken));
  const auto fetches = out_.take(wire::message::fetch);
  ASSERT_EQ(fetches.size(), 3u);
  for (const letter& l : fetches) {
    EXPECT_EQ(l.to, 3u);
    EXPECT_EQ(l.head<wire::fetch_head>().from, 1u);
  }
  get(3, fetched(a_, 300));
  const auto values = out_.take(wire::message::value);
  ASSERT_EQ(values.size(), 1u);
  EXPECT_EQ(carried(values[0], before_value).place, 300u);
}

TEST_F(copies, that_break_are_fetched_from_another_source_if_there_is_one) {
  pull(3);
  get(3, fetched(a_, 300));
  pull(5);
  std::vector<letter> fetches = out_.take(wire::message::fetch);
  ASSERT_EQ(fetches.size(), 2u);
  const rank_t first = fetches[1].head<wire::fetch_head>().from;
  const rank_t other = first == 1 ? 3 : 1;
  for (const rank_t next : {other, first}) {
    get(5, fetched(a_, 0, wire::fetch_outcome::broken));
    fetches = out_.take(wire::message::fetch);
    ASSERT_EQ(fetches.size(), 1u);
    EXPECT_EQ(fetches[0].head<wire::fetch_head>().from, next);
  }
}

TEST_F(copies, that_have_left_memory_are_fetched_from_the_values_own_place) {
  pull(3);
  get(3, fetched(a_, 300));
  pull(5);
  pull(7);
  std::optional<rank_t> reader;  // of the copy
  for (const letter& l : out_.take(wire::message::fetch)) {
    const auto fetch = l.head<wire::fetch_head>();
    EXPECT_EQ(fetch.home, 1u);
    EXPECT_EQ(fetch.home_place, 100u);
    if (fetch.from == 3) reader = l.to;
  }
  ASSERT_TRUE(reader);
  for (int i = 0; i < 5; ++i) {  // as often as it takes
    get(*reader, fetched(a_, 0, wire::fetch_outcome::away));
    const auto again = out_.take(wire::message::fetch);
    ASSERT_EQ(again.size(), 1u);
    EXPECT_EQ(again[0].to, *reader);
    EXPECT_EQ(again[0].head<wire::fetch_head>().from, 1u);
  }
}

TEST_F(copies, that_break_three_times_fail_their_readers_only) {
  pull(3);
  pull(4);
  task_on(4, make_id(0, 1));
  pull(5);
  for (int i = 0; i < 3; ++i) {
    out_.take();
    get(3, fetched(a_, 0, wire::fetch_outcome::broken));
  }
  std::map<rank_t, std::uint32_t> deliveries;
  for (const letter& l : out_.take()) {
    ASSERT_EQ(l.type(), wire::message::value) << "and no further fetch";
    const wire::value_view v = carried(l, before_value);
    EXPECT_EQ(failure_in(v), wire::failure_kind::object_lost);
    const std::string what = wire::decode_failure(v.data).what;
    EXPECT_NE(what.find("rank 3 (host2)"), std::string::npos) << what;
    EXPECT_NE(what.find("from rank 1 (host1)"), std::string::npos) << what;
    deliveries[l.to] += l.head<wire::value_head>().count;
  }
  EXPECT_EQ(deliveries, (std::map<rank_t, std::uint32_t>{{3, 0}, {4, 1}}));
  get(5, fetched(a_, 500));
  EXPECT_EQ(out_.take(wire::message::value).size(), 1u);
  pull(3);
  EXPECT_EQ(out_.take(wire::message::fetch).size(), 1u) << "who asks later tries anew";
}

TEST_F(copies, are_made_of_what_is_asked_for_only) {
  const object_id task = make_id(0, 1);
  wire::spawned_head with;
  with.where = wire::where_kind::on_rank;
  with.target = 3;
  get(0, spawned(task, {}, with));
  out_.take();
  get(3, done(task, placed(3, 7)));
  const auto told = out_.take();
  ASSERT_EQ(told.size(), 1u) << types_of(told);
  EXPECT_EQ(told[0].to, 0u);
  EXPECT_EQ(carried(told[0], before_value).kind, wire::value_kind::elsewhere);
}

TEST_F(copies, draw_tasks_to_the_node_that_has_the_bytes) {
  get(5, published(make_id(5, 1), placed(5, 7, 100)));
  for (std::uint64_t i = 1; i <= 2; ++i) get(0, spawned(make_id(0, i), {a_, make_id(5, 1)}));
  for (const letter& l : out_.take(wire::message::assign)) EXPECT_TRUE(l.to == 1 || l.to == 2) << l.to;
}

TEST_F(copies, draw_tasks_to_a_node_behind_many_others) {
  for (rank_t r = 21; r <= 120; ++r) join(r, 11, 1);
  join(121, 12, 1);
  join(122, 12, 1);
  const object_id last = make_id(121, 1);
  get(121, published(last, placed(121, 7)));
  out_.take();
  for (std::uint64_t i = 1; i <= 2; ++i) get(0, spawned(make_id(0, i), {last}));
  std::set<rank_t> chosen;
  for (const letter& l : out_.take(wire::message::assign)) chosen.insert(l.to);
  EXPECT_EQ(chosen, (std::set<rank_t>{121, 122}));
}

TEST_F(copies, draw_tasks_to_all_ranks_of_a_large_node) {
  for (rank_t r = 21; r <= 120; ++r) join(r, 11, 1);
  const object_id large = make_id(21, 1);
  get(21, published(large, placed(21, 7)));
  out_.take();
  for (int round = 0; round < 2; ++round) {
    std::set<rank_t> chosen;
    for (std::uint64_t i = 1; i <= 100; ++i) {
      get(0, spawned(make_id(0, static_cast<std::uint64_t>(round) * 100 + i), {large}));
    }
    for (const letter& l : out_.take(wire::message::assign)) chosen.insert(l.to);
    EXPECT_EQ(chosen.size(), 100u);
    EXPECT_EQ(*chosen.begin(), 21u);
  }
}

// -- the rank's side
// ---------------------------------------------------------------------------------------------------

class reader : public testing::Test {
 protected:
  reader() {
    agent_.set_nodes({0, 1, 1});
    agent_.fetch = [this](std::uint64_t number, const rota::agent::source& from, std::uint64_t) {
      fetches_.push_back({number, from.rank, from.place});
    };
    agent_.free_place = [](std::uint64_t) {};
  }
  struct asked {
    std::uint64_t number;
    rank_t from;
    std::uint64_t place;
  };
  post out_;
  rota::agent::agent agent_{1, {wire::resources::unit, {}}, out_};
  std::vector<asked> fetches_;
};

TEST_F(reader, results_for_other_nodes_are_left_to_the_head) {
  const object_id task = make_id(0, 1);
  agent_.receive(0, assign(task, {}, {{2, 1, 0}, {0, 1, 0}}).view());
  const auto work = agent_.next();
  ASSERT_TRUE(work);
  rota::agent::made_value v;
  v.value = placed(1, 9);
  out_.take();
  agent_.finished(work->job, v, 0);
  std::vector<rank_t> served;
  for (const letter& l : out_.take(wire::message::value)) served.push_back(l.to);
  EXPECT_EQ(served, (std::vector<rank_t>{2}));
}

TEST_F(reader, a_value_elsewhere_is_asked_for_when_it_is_wanted) {
  const object_id task = make_id(1, 1);
  rota::agent::object& result = agent_.make(task);
  rota::agent::add_handle(result);
  agent_.submit(result, {});
  out_.take();
  wire::value_view elsewhere;
  elsewhere.kind = wire::value_kind::elsewhere;
  agent_.receive(0, value_of(task, elsewhere, 0).view());
  EXPECT_EQ(result.state.load(), rota::agent::object_state::elsewhere);
  EXPECT_TRUE(out_.take(wire::message::pull).empty());
  agent_.want(result);
  EXPECT_EQ(out_.take(wire::message::pull).size(), 1u);
  agent_.receive(0, value_of(task, placed(1, 9), 0).view());
  EXPECT_EQ(result.state.load(), rota::agent::object_state::ready);
  if (rota::agent::drop_handle(result)) agent_.dropped(result);
}

}  // namespace
