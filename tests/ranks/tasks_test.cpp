// Options of tasks, and what comes of functions that throw and of requests that nobody can serve.
#include <gtest/gtest.h>
#include <rota/rota.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "tests/ranks/session_help.h"

namespace {

using namespace std::chrono_literals;
using namespace rota::tests;
using rota::ref;
using rota::remote;

// Read by init, which comes after it: what each rank offers.
const bool offered = offer({{"ROTA_RESOURCES", "lamp:2"}, {"ROTA_CPUS", "2"}});

int plus_one(int x) { return x + 1; }
unsigned rank_of_task() { return rota::this_task().rank; }
unsigned rank_of_task_with(const rota::array<char>& bytes) { return bytes.empty() ? 0 : rota::this_task().rank; }
rota::array<char> some_bytes(std::size_t size) { return rota::make_array<char>(size); }

using moment = std::chrono::steady_clock::rep;
moment now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

struct span_of_time {
  unsigned rank = 0;
  moment begin = 0, end = 0;
};
span_of_time take_time(int milliseconds) {
  span_of_time taken{rota::this_task().rank, now(), 0};
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  taken.end = now();
  return taken;
}
span_of_time take_time_after(int milliseconds, int) { return take_time(milliseconds); }

// The most of them that ran at one moment on one rank.
int most_at_once(const std::vector<span_of_time>& spans) {
  int most = 0;
  for (const auto& at : spans) {
    most = std::max(most, static_cast<int>(std::count_if(spans.begin(), spans.end(), [&](const auto& other) {
                      return other.rank == at.rank && other.begin <= at.begin && at.begin < other.end;
                    })));
  }
  return most;
}

TEST(placement, on_rank_runs_there) {
  for (unsigned rank : workers()) {
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(remote<rank_of_task>.with({.where = rota::on_rank(rank)})().get(), rank);
    }
  }
}

TEST(placement, on_node_runs_there) {
  for (const rota::node_info& node : rota::nodes()) {
    if (node.total.cpus == 0) continue;  // the head is alone there
    const unsigned rank = remote<rank_of_task>.with({.where = rota::on_node(node.id)})().get();
    EXPECT_NE(std::find(node.ranks.begin(), node.ranks.end(), rank), node.ranks.end());
  }
}

unsigned note_and_wait(const std::string& started, const std::string& go) {
  write_note(started);
  hold_slot_until(go);
  return rota::this_task().rank;
}

// Of many tasks with these options, exactly `together` start while none ends. The ranks that they ran on.
std::set<unsigned> expect_together(rota::options how, std::size_t together) {
  note_folder notes;
  const std::string go = notes["go"];
  std::vector<std::string> starts;
  std::vector<ref<unsigned>> refs;
  for (std::size_t i = 0; i < together + 2; ++i) {
    starts.push_back(notes["start" + std::to_string(i)]);
    refs.push_back(remote<note_and_wait>.with(how)(starts.back(), go));
  }
  auto started = [&] { return static_cast<std::size_t>(std::count_if(starts.begin(), starts.end(), exists)); };
  EXPECT_TRUE(eventually([&] { return started() >= together; })) << started();
  std::this_thread::sleep_for(50ms);  // for one too many
  EXPECT_EQ(started(), together);
  write_note(go);
  const auto ranks = rota::get(refs);
  return {ranks.begin(), ranks.end()};
}

TEST(placement, spread_uses_all_ranks) {
  const auto all = workers();
  EXPECT_EQ(expect_together({.where = rota::spread}, 2 * all.size()), std::set<unsigned>(all.begin(), all.end()));
}

TEST(placement, near_runs_where_the_value_is) {
  for (unsigned rank : workers()) {
    auto bytes = remote<some_bytes>.with({.where = rota::on_rank(rank)})(1'000'000);
    EXPECT_EQ(remote<rank_of_task>.with({.where = rota::near(bytes)})().get(), rank);
    rota::wait(std::vector{bytes});
    EXPECT_EQ(remote<rank_of_task_with>.with({.where = rota::near(bytes)})(bytes).get(), rank);
  }
}

TEST(placement, an_unknown_rank_or_node_is_infeasible) {
  const auto rank = thrown_by<rota::infeasible>([] { remote<plus_one>.with({.where = rota::on_rank(4711)})(1).get(); });
  EXPECT_TRUE(contains(rank.what(), "4711")) << rank.what();
  const auto node = thrown_by<rota::infeasible>([] { remote<plus_one>.with({.where = rota::on_node(4712)})(1).get(); });
  EXPECT_TRUE(contains(node.what(), "4712")) << node.what();
}

TEST(placement, a_head_under_a_launcher_runs_no_tasks) {
  if (workers() == std::vector{0u}) GTEST_SKIP() << "rank 0 is alone";
  EXPECT_THROW(remote<plus_one>.with({.where = rota::on_rank(0)})(1).get(), rota::infeasible);
}

TEST(resources, cpus_of_tasks_that_run_at_once_stay_within_the_slots) {
  expect_together({}, 2 * workers().size());
  expect_together({.cpus = 0.5}, 4 * workers().size());
  std::vector<ref<span_of_time>> refs;
  for (int i = 0; i < 10; ++i) refs.push_back(remote<take_time>.with({.cpus = 2})(5));
  for (int i = 0; i < 10; ++i) refs.push_back(remote<take_time>.with({.cpus = 1.5})(5));
  EXPECT_EQ(most_at_once(rota::get(refs)), 1);
}

TEST(resources, custom_resources_bound_how_many_run_at_once) {
  EXPECT_EQ(rota::cluster_resources().custom.at("lamp"), 2.0 * static_cast<double>(workers().size()));
  std::vector<ref<span_of_time>> refs;
  for (int i = 0; i < 10; ++i) refs.push_back(remote<take_time>.with({.cpus = 0, .resources = {{"lamp", 2}}})(5));
  EXPECT_EQ(most_at_once(rota::get(refs)), 1);
  expect_together({.cpus = 0, .resources = {{"lamp", 1}}}, 2 * workers().size());
  EXPECT_TRUE(eventually(
      [] { return rota::available_resources().custom.at("lamp") == rota::cluster_resources().custom.at("lamp"); }));
}

TEST(resources, memory_is_accounted) {
  const std::size_t each = rota::cluster_resources().memory / workers().size();
  ASSERT_GT(each, 0u);
  std::vector<ref<span_of_time>> refs;
  for (int i = 0; i < 6; ++i) refs.push_back(remote<take_time>.with({.memory = each / 3 * 2})(5));
  EXPECT_EQ(most_at_once(rota::get(refs)), 1);
  EXPECT_THROW(remote<plus_one>.with({.memory = each + 1024})(1).get(), rota::infeasible);
}

TEST(resources, more_than_any_rank_has_is_infeasible_at_once_with_both_numbers) {
  const auto begin = std::chrono::steady_clock::now();
  const auto cpus = thrown_by<rota::infeasible>([] { remote<plus_one>.with({.cpus = 1234})(1).get(); });
  EXPECT_TRUE(contains(cpus.what(), "1234") && contains(cpus.what(), "2 ")) << cpus.what();
  EXPECT_TRUE(contains(cpus.what(), "plus_one")) << cpus.what();
  const auto lamps = thrown_by<rota::infeasible>([] { remote<plus_one>.with({.resources = {{"lamp", 77}}})(1).get(); });
  EXPECT_TRUE(contains(lamps.what(), "77 lamp") && contains(lamps.what(), "2 lamp")) << lamps.what();
  EXPECT_THROW(remote<plus_one>.with({.gpus = 1})(1).get(), rota::infeasible);
  EXPECT_THROW(remote<plus_one>.with({.resources = {{"moon", 1}}})(1).get(), rota::infeasible);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  EXPECT_THROW(remote<plus_one>(remote<plus_one>.with({.cpus = 1234})(1)).get(), rota::infeasible);
}

TEST(resources, negative_and_nan_amounts_are_refused_at_the_call) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (double bad : {-1.0, -0.001, nan, -std::numeric_limits<double>::infinity()}) {
    EXPECT_THROW(remote<plus_one>.with({.cpus = bad})(1), rota::config_error) << bad;
    EXPECT_THROW(remote<plus_one>.with({.gpus = bad})(1), rota::config_error) << bad;
    EXPECT_THROW(remote<plus_one>.with({.resources = {{"lamp", bad}}})(1), rota::config_error) << bad;
  }
  EXPECT_THROW(remote<plus_one>.with({.cpus = std::numeric_limits<double>::infinity()})(1).get(), rota::error);
  const auto said = thrown_by<rota::config_error>([] { remote<plus_one>.with({.cpus = -1})(1); });
  EXPECT_TRUE(contains(said.what(), "cpus") && contains(said.what(), "-1")) << said.what();
}

TEST(resources, what_has_an_option_of_its_own_is_no_custom_resource) {
  for (const std::string name : {"cpus", "gpus", "memory"}) {
    const auto said = thrown_by<rota::config_error>([&] {
      remote<plus_one>.with({.memory = 64, .resources = {{name, 1}}})(1);
    });
    EXPECT_TRUE(contains(said.what(), "options::" + name)) << said.what();
  }
  EXPECT_THROW(remote<plus_one>.with({.resources = {{"lamp", 1e300}}})(1), rota::config_error);
}

TEST(priority, higher_starts_first) {
  const unsigned rank = workers().front();
  note_folder notes;
  const std::string go = notes["go"], started = notes["started"];
  auto blocker = remote<[](std::string at, std::string until) {
                   write_note(at);
                   hold_slot_until(until);
                   return 1;
                 }>.with({.cpus = 2, .where = rota::on_rank(rank)})(started, go);
  ASSERT_TRUE(eventually([&] { return exists(started); }));
  std::vector<ref<span_of_time>> low, high;
  for (int i = 0; i < 10; ++i) {
    low.push_back(remote<take_time>.with({.cpus = 2, .priority = -1, .where = rota::on_rank(rank)})(2));
  }
  for (int i = 0; i < 10; ++i) {
    high.push_back(remote<take_time>.with({.cpus = 2, .priority = 5, .where = rota::on_rank(rank)})(2));
  }
  write_note(go);
  moment last_high = 0, first_low = std::numeric_limits<moment>::max();
  for (const auto& taken : rota::get(high)) last_high = std::max(last_high, taken.begin);
  for (const auto& taken : rota::get(low)) first_low = std::min(first_low, taken.begin);
  EXPECT_LT(last_high, first_low);
}

struct told {
  std::uint64_t id = 0;
  std::string name{};
  unsigned attempt = 0, rank = 0, node = 0;
  std::size_t gpus = 0;
  bool cancelled = true;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(id, name, attempt, rank, node, gpus, cancelled);
  }
};
told tell() {
  const rota::task_info me = rota::this_task();
  return {me.id, std::string(me.name), me.attempt, me.rank, me.node, me.gpus.size(), me.cancelled()};
}

TEST(this_task, tells_id_name_attempt_rank_and_node) {
  const auto r = remote<tell>.with({.where = rota::on_rank(workers().back()), .name = "given name"})();
  const told got = r.get();
  EXPECT_EQ(got.id, r.id());
  EXPECT_EQ(got.name, "given name");
  EXPECT_EQ(got.attempt, 0u);
  EXPECT_EQ(got.rank, workers().back());
  EXPECT_EQ(got.node, rota::nodes().back().id);
  EXPECT_EQ(got.gpus, 0u);
  EXPECT_FALSE(got.cancelled);
  EXPECT_TRUE(contains(remote<tell>().get().name, "tell"));
  EXPECT_THROW(rota::this_task(), rota::config_error);
}

int reads_past_the_end(int x) { return std::vector<int>{1}.at(static_cast<std::size_t>(x)); }
struct odd_failure {
  int code;
};
struct derived_failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};
int throws_odd() { throw odd_failure{1}; }
int throws_derived() { throw derived_failure("derived words"); }
int throws_int() { throw 42; }
int throws_words() { throw std::string("only words"); }

TEST(exceptions, a_standard_exception_comes_back_with_where_and_why) {
  const auto r = remote<reads_past_the_end>.with({.where = rota::on_rank(workers().back())})(5);
  const auto e = thrown_by<rota::task_error>([&] { r.get(); });
  EXPECT_EQ(e.type_name(), "std::out_of_range");
  for (const std::string& part : {std::string("reads_past_the_end"), std::string("vector::_M_range_check"),
                                  "rank " + std::to_string(workers().back()), rota::nodes().back().host}) {
    EXPECT_TRUE(contains(e.what(), part)) << part << " in " << e.what();
  }
  const auto original = thrown_by<std::out_of_range>([&] { e.rethrow(); });
  EXPECT_TRUE(std::string(original.what()).starts_with("vector::_M_range_check")) << original.what();
  EXPECT_THROW(r.get(), rota::task_error);  // a second time too
  EXPECT_TRUE(r.ready());
}

TEST(exceptions, user_types_ints_and_strings_come_back_by_name) {
  const auto odd = thrown_by<rota::task_error>([] { remote<throws_odd>().get(); });
  EXPECT_TRUE(contains(odd.type_name(), "odd_failure")) << odd.type_name();
  EXPECT_THROW(odd.rethrow(), rota::task_error);
  const auto derived = thrown_by<rota::task_error>([] { remote<throws_derived>().get(); });
  EXPECT_TRUE(contains(derived.type_name(), "derived_failure")) << derived.type_name();
  EXPECT_TRUE(contains(derived.what(), "derived words")) << derived.what();
  EXPECT_THROW(derived.rethrow(), rota::task_error);
  const auto number = thrown_by<rota::task_error>([] { remote<throws_int>().get(); });
  EXPECT_EQ(number.type_name(), "int");
  EXPECT_TRUE(contains(number.what(), "42")) << number.what();
  const auto words = thrown_by<rota::task_error>([] { remote<throws_words>().get(); });
  EXPECT_TRUE(contains(words.what(), "only words")) << words.what();
}

int leave_note(const std::string& path, int x) {
  write_note(path);
  return x;
}

TEST(exceptions, dependents_fail_with_the_same_error_without_running) {
  note_folder notes;
  const std::string ran = notes["ran"];
  auto failed = remote<reads_past_the_end>(5);
  auto first = remote<leave_note>(ran, failed);
  auto second = remote<leave_note>(ran, first);
  const auto e = thrown_by<rota::task_error>([&] { failed.get(); });
  const auto at_first = thrown_by<rota::task_error>([&] { first.get(); });
  const auto at_second = thrown_by<rota::task_error>([&] { second.get(); });
  EXPECT_STREQ(at_first.what(), e.what());
  EXPECT_STREQ(at_second.what(), e.what());
  EXPECT_THROW(at_second.rethrow(), std::out_of_range);
  auto later = remote<leave_note>(ran, failed);  // of a failure that is there already
  EXPECT_THROW(later.get(), rota::task_error);
  EXPECT_FALSE(exists(ran));
}

TEST(exceptions, get_of_many_throws_the_first_in_order) {
  const std::vector<ref<int>> refs{remote<plus_one>(1), remote<throws_int>(), remote<reads_past_the_end>(3)};
  const auto e = thrown_by<rota::task_error>([&] { rota::get(refs); });
  EXPECT_EQ(e.type_name(), "int");
}

int gets_failing_child() { return remote<reads_past_the_end>(7).get(); }
int catches_failing_child() {
  try {
    return remote<reads_past_the_end>(7).get();
  } catch (const rota::task_error&) {
    return -7;
  }
}

TEST(exceptions, failures_of_children_can_be_caught_or_passed_on) {
  const auto e = thrown_by<rota::task_error>([] { remote<gets_failing_child>().get(); });
  EXPECT_TRUE(contains(e.what(), "vector::_M_range_check")) << e.what();
  EXPECT_EQ(remote<catches_failing_child>().get(), -7);
}

struct stubborn {
  int when = 0;  // 1: cannot be written, 2: cannot be read
  template <class Archive>
  void save(Archive& archive) const {
    if (when == 1) throw std::domain_error("will not be written");
    archive(when);
  }
  template <class Archive>
  void load(Archive& archive) {
    archive(when);
    if (when == 2) throw std::domain_error("will not be read");
  }
};
stubborn make_stubborn(int when) { return {when}; }
int take_stubborn(const stubborn& s) { return s.when; }

TEST(exceptions, values_that_throw_while_they_travel) {
  EXPECT_THROW(remote<take_stubborn>(stubborn{1}), std::domain_error);
  EXPECT_THROW(rota::put(stubborn{1}), std::domain_error);
  const auto result = thrown_by<rota::task_error>([] { remote<make_stubborn>(1).get(); });
  EXPECT_TRUE(contains(result.what(), "will not be written")) << result.what();
  const auto argument = thrown_by<rota::task_error>([] { remote<take_stubborn>(stubborn{2}).get(); });
  EXPECT_TRUE(contains(argument.what(), "will not be read")) << argument.what();
  EXPECT_THROW(remote<make_stubborn>(2).get(), std::domain_error);
  EXPECT_EQ(remote<take_stubborn>(remote<make_stubborn>(3)).get(), 3);
}

TEST(facts, nodes_and_resources_add_up) {
  const auto nodes = rota::nodes();
  double cpus = 0;
  for (const rota::node_info& node : nodes) {
    EXPECT_FALSE(node.host.empty());
    cpus += node.total.cpus;
  }
  EXPECT_EQ(cpus, 2.0 * static_cast<double>(workers().size()));
  EXPECT_EQ(rota::cluster_resources().cpus, cpus);
  EXPECT_TRUE(eventually([&] { return rota::available_resources().cpus == cpus; }));
  EXPECT_EQ(remote<[] { return rota::cluster_resources().cpus; }>().get(), cpus);
}

TEST(tasks, an_empty_ref_is_refused_at_the_call) {
  EXPECT_THROW(remote<plus_one>(ref<int>()), rota::config_error);
  EXPECT_THROW(remote<take_time_after>(1, ref<int>()), rota::config_error);
}

}  // namespace
