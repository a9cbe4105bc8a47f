// Actors: construction, order, failures, names, and how they end.
#include <gtest/gtest.h>
#include <rota/detail/session_state.h>
#include <rota/rota.h>

#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/ranks/session_help.h"

namespace {

using namespace std::chrono_literals;
using namespace rota::tests;
using rota::actor;
using rota::actor_handle;
using rota::ref;
using rota::remote;

// Read by init, which comes after it: what each rank offers.
const bool offered = offer({{"ROTA_CPUS", "2"}});

int id(int x) { return x; }
int wait_for_note(const std::string& started, const std::string& go) {
  write_note(started);
  hold_slot_until(go);
  return 1;
}

class counter {
 public:
  counter() = default;
  explicit counter(int from) : n_(from) {}
  void incr(int by) { n_ += by; }
  int value() const { return n_; }
  int add_and_tell(int by) & { return n_ += by; }
  int twice() const noexcept { return 2 * n_; }
  int fail(const std::string& words) { throw std::out_of_range(words); }
  unsigned rank() { return rota::this_task().rank; }
  std::string name() { return std::string(rota::this_task().name); }
  int pid() { return getpid(); }

 private:
  int n_ = 0;
};

class logbook {
 public:
  void write(std::string who, int number) { lines_[who].push_back(number); }
  void note(int number) { numbers_.push_back(number); }
  std::map<std::string, std::vector<int>> lines() const { return lines_; }
  std::vector<int> numbers() const { return numbers_; }

 private:
  std::map<std::string, std::vector<int>> lines_;
  std::vector<int> numbers_;
};

std::vector<int> counted(int n) {
  std::vector<int> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

TEST(actor, calls_run_in_submission_order) {
  auto book = actor<logbook>();
  for (int i = 0; i < 20'000; ++i) book.call<&logbook::note>(i);
  EXPECT_EQ(book.call<&logbook::numbers>().get(), counted(20'000));
}

TEST(actor, a_call_waits_for_its_argument_and_later_calls_wait_behind_it) {
  note_folder notes;
  const std::string go = notes["go"], started = notes["started"];
  auto book = actor<logbook>();
  book.call<&logbook::note>(0);
  book.call<&logbook::note>(remote<wait_for_note>(started, go));
  book.call<&logbook::note>(2);
  auto all = book.call<&logbook::numbers>();
  EXPECT_THROW(all.get(100ms), rota::get_timeout);
  write_note(go);
  EXPECT_EQ(all.get(), counted(3));
}

TEST(actor, methods_may_be_const_noexcept_and_lvalue) {
  auto c = actor<counter>(5);
  c.call<&counter::incr>(2);
  EXPECT_EQ(c.call<&counter::value>().get(), 7);
  EXPECT_EQ(c.call<&counter::twice>().get(), 14);
  EXPECT_EQ(c.call<&counter::add_and_tell>(remote<id>(3)).get(), 10);
  EXPECT_EQ(rota::call<&counter::value>(c).get(), 10);
  EXPECT_EQ(c.with({.name = "asked"}).call<&counter::value>().get(), 10);
}

TEST(actor, a_call_bears_the_name_that_it_is_given) {
  auto c = actor<counter>(1);
  EXPECT_EQ(c.with({.name = "asked"}).call<&counter::name>().get(), "asked");
  EXPECT_EQ(c.call<&counter::name>().get(), "counter::name");
  auto failed = c.with({.name = "doubtful"}).call<&counter::fail>(rota::put("words"));  // which it waits for
  const auto e = thrown_by<rota::task_error>([&] { failed.get(); });
  EXPECT_TRUE(contains(e.what(), "call doubtful on rank ") && contains(e.what(), "words")) << e.what();
}

struct animal {
  virtual ~animal() = default;
  virtual std::string sound() { return "?"; }
  std::string twice() { return sound() + sound(); }
};
struct dog : animal {
  std::string sound() override { return "wuff"; }
};

TEST(actor, methods_may_be_virtual_and_inherited) {
  auto d = actor<dog>();
  EXPECT_EQ(d.call<&dog::sound>().get(), "wuff");
  EXPECT_EQ(d.call<&animal::sound>().get(), "wuff");
  EXPECT_EQ(d.call<&dog::twice>().get(), "wuffwuff");
}

struct built {
  built(std::string name, int number, std::vector<double> list)
      : text(name + std::to_string(number) + std::to_string(list.size())) {}
  built(const char* raw, bool) : text(raw) {}
  std::string tell() { return text; }
  std::string text;
};
struct holds_ref {
  explicit holds_ref(ref<int> r) : kept(std::move(r)) {}
  int read() { return kept.get(); }
  void replace(ref<int> r) { kept = std::move(r); }
  ref<int> hand_out() { return kept; }
  ref<int> kept;
};

TEST(actor, constructor_arguments_are_converted_resolved_or_kept_as_refs) {
  EXPECT_EQ(actor<built>("name", 1, std::vector<double>{1, 2}).call<&built::tell>().get(), "name12");
  EXPECT_EQ(actor<built>(rota::put("ref"), remote<id>(2), std::vector<double>{}).call<&built::tell>().get(), "ref20");
  EXPECT_EQ(actor<built>("b", 3, std::vector<double>(100'000)).call<&built::tell>().get(), "b3100000");
  EXPECT_EQ(actor<counter>(remote<id>(8)).call<&counter::value>().get(), 8);
  auto holder = actor<holds_ref>(remote<id>(9));
  EXPECT_EQ(holder.call<&holds_ref::read>().get(), 9);
  EXPECT_EQ(holder.call<&holds_ref::hand_out>().get().get(), 9);
  holder.call<&holds_ref::replace>(rota::put(rota::put(10)));  // a ref of a ref is resolved once
  EXPECT_EQ(holder.call<&holds_ref::read>().get(), 10);
}

struct half_resolved {
  half_resolved(ref<int> r, int n, std::string text) : kept(std::move(r)), sum(n), name(std::move(text)) {}
  half_resolved(int n, ref<int> r) : kept(std::move(r)), sum(n) {}
  std::string tell() { return name + std::to_string(kept.get() + sum); }
  ref<int> kept;
  int sum;
  std::string name{};
};

TEST(actor, constructor_arguments_are_kept_or_resolved_each_for_itself) {
  auto tell = [](const auto& handle) { return rota::call<&half_resolved::tell>(handle).get(); };
  EXPECT_EQ(tell(actor<half_resolved>(rota::put(1), rota::put(20), "n")), "n21");
  EXPECT_EQ(tell(actor<half_resolved>(remote<id>(2), 30, rota::put("m"))), "m32");
  EXPECT_EQ(tell(actor<half_resolved>(remote<id>(40), remote<id>(5))), "45");
}

TEST(actor, options_of_a_call_are_checked) {
  auto c = actor<counter>(1);
  EXPECT_THROW(c.with({.cpus = -1}).call<&counter::value>(), rota::config_error);
  EXPECT_THROW(c.with({.resources = {{"", 1}}}).call<&counter::value>(), rota::config_error);
  EXPECT_EQ(c.with({.cpus = 1000}).call<&counter::value>().get(), 1);  // a call takes no slot
}

TEST(actor, a_method_that_throws_fails_the_call_and_the_actor_lives_on) {
  auto c = actor<counter>(1);
  auto failed = c.call<&counter::fail>("bad index");
  auto after = c.call<&counter::value>();
  const auto e = thrown_by<rota::task_error>([&] { failed.get(); });
  EXPECT_EQ(e.type_name(), "std::out_of_range");
  EXPECT_TRUE(contains(e.what(), "bad index") && contains(e.what(), "fail") && contains(e.what(), "rank ")) << e.what();
  EXPECT_THROW(e.rethrow(), std::out_of_range);
  EXPECT_EQ(after.get(), 1);
  EXPECT_THROW(remote<id>(c.call<&counter::fail>("x")).get(), rota::task_error);
  EXPECT_THROW(c.call<&counter::incr>(failed).get(), rota::task_error);  // a failed argument
  EXPECT_EQ(c.call<&counter::value>().get(), 1);
}

struct unbuildable {
  explicit unbuildable(int) { throw std::invalid_argument("no such thing"); }
  int value() { return 1; }
};

TEST(actor, a_constructor_that_throws_shows_in_the_calls) {
  auto u = actor<unbuildable>(1);
  for (int i = 0; i < 3; ++i) {
    const auto e = thrown_by<rota::actor_died>([&] { u.call<&unbuildable::value>().get(); });
    EXPECT_TRUE(contains(e.what(), "no such thing")) << e.what();
  }
  auto of_failed = actor<counter>(remote<[]() -> int { throw std::runtime_error("no number"); }>());
  const auto e = thrown_by<rota::error>([&] { of_failed.call<&counter::value>().get(); });
  EXPECT_TRUE(contains(e.what(), "no number")) << e.what();
}

TEST(actor, a_killed_actor_refuses_calls) {
  note_folder notes;
  auto c = actor<counter>(1);
  EXPECT_EQ(c.call<&counter::value>().get(), 1);
  const auto copy = c;
  c.kill();
  EXPECT_TRUE(eventually([&] {
    try {
      copy.call<&counter::value>().get();
      return false;
    } catch (const rota::actor_died& e) {
      return contains(e.what(), "killed");
    }
  }));
  const auto e = thrown_by<rota::actor_died>([&] { copy.call<&counter::value>().get(); });
  EXPECT_TRUE(contains(e.what(), "killed")) << e.what();
  c.kill();  // once more does nothing
  EXPECT_THROW(actor_handle<counter>().kill(), rota::config_error);
  EXPECT_THROW(actor_handle<counter>().call<&counter::value>(), rota::config_error);
}

struct sleeper {
  int wait_for(const std::string& started, const std::string& go) { return wait_for_note(started, go); }
};

TEST(actor, kill_lets_the_running_call_end_and_fails_those_that_wait) {
  note_folder notes;
  const std::string go = notes["go"], started = notes["started"], other = notes["other"];
  auto s = actor<sleeper>();
  auto running = s.call<&sleeper::wait_for>(started, go);
  auto waiting = s.call<&sleeper::wait_for>(other, go);
  ASSERT_TRUE(eventually([&] { return exists(started); }));
  s.kill();
  EXPECT_THROW(waiting.get(20s), rota::actor_died);
  write_note(go);
  EXPECT_EQ(running.get(), 1);
  EXPECT_FALSE(exists(other));
}

int ask(actor_handle<counter> c) { return c.call<&counter::value>().get(); }
int ask_all(const std::vector<actor_handle<counter>>& all) {
  int sum = 0;
  for (const auto& c : all) sum += c.call<&counter::value>().get();
  return sum;
}
actor_handle<counter> make_counter(int from) { return actor<counter>(from); }
struct owner_of_counter {
  actor_handle<counter> mine = actor<counter>(100);  // an actor that makes an actor
  int ask() { return mine.call<&counter::value>().get(); }
  actor_handle<counter> lend() { return mine; }
  void take(actor_handle<counter> other) { mine = other; }
};

TEST(actor, handles_travel_in_arguments_results_objects_and_other_actors) {
  auto c = actor<counter>(3);
  EXPECT_EQ(remote<ask>(c).get(), 3);
  EXPECT_EQ(remote<ask_all>(std::vector{c, actor<counter>(4)}).get(), 7);
  EXPECT_EQ(remote<ask>(rota::put(c)).get(), 3);
  EXPECT_EQ(remote<make_counter>(5).get().call<&counter::value>().get(), 5);
  EXPECT_EQ(remote<ask>(remote<make_counter>(6)).get(), 6);
  auto owner = actor<owner_of_counter>();
  EXPECT_EQ(owner.call<&owner_of_counter::ask>().get(), 100);
  auto lent = owner.call<&owner_of_counter::lend>().get();
  owner.call<&owner_of_counter::take>(c);
  EXPECT_EQ(owner.call<&owner_of_counter::ask>().get(), 3);
  EXPECT_EQ(lent.call<&counter::value>().get(), 100);
}

void write_many(actor_handle<logbook> book, std::string who, int count) {
  for (int i = 1; i < count; ++i) book.call<&logbook::write>(who, i - 1);
  book.call<&logbook::write>(who, count - 1).get();
}

TEST(actor, calls_of_several_ranks_and_threads_keep_the_order_of_each_caller) {
  auto book = actor<logbook>();
  std::vector<ref<void>> writers;
  for (unsigned rank : workers()) {
    for (int i = 0; i < 2; ++i) {
      const std::string who = "task " + std::to_string(rank) + " " + std::to_string(i);
      writers.push_back(remote<write_many>.with({.where = rota::on_rank(rank)})(book, who, 2000));
    }
  }
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([&, i] { write_many(book, "thread " + std::to_string(i), 2000); });
  }
  rota::get(writers);
  const auto lines = book.call<&logbook::lines>().get();
  EXPECT_EQ(lines.size(), writers.size() + 4);
  for (const auto& [who, numbers] : lines) EXPECT_EQ(numbers, counted(2000)) << who;
}

TEST(names, find_actor_and_duplicates) {
  const rota::actor_options named{.name = "the counter"};
  EXPECT_FALSE(rota::find_actor<counter>("the counter"));
  auto c = actor<counter>.with(named)(1);
  auto found = rota::find_actor<counter>("the counter");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->id(), c.id());
  EXPECT_EQ(found->call<&counter::value>().get(), 1);
  EXPECT_EQ(remote<[] { return rota::find_actor<counter>("the counter")->call<&counter::value>().get(); }>().get(), 1);
  const auto e = thrown_by<rota::config_error>([&] { actor<counter>.with(named)(2); });
  EXPECT_TRUE(contains(e.what(), "the counter")) << e.what();
  EXPECT_THROW(rota::find_actor<logbook>("the counter"), rota::config_error);
  rota::actor_options existing = named;
  existing.get_if_exists = true;
  EXPECT_EQ(actor<counter>.with(existing)(7).call<&counter::value>().get(), 1);
  EXPECT_THROW(actor<logbook>.with(existing)(), rota::config_error);
  EXPECT_TRUE(contains(c.call<&counter::name>().get(), "name"));
  c = {};
  found.reset();
  EXPECT_TRUE(eventually([] { return !rota::find_actor<counter>("the counter"); }));  // a name does not keep it alive
  EXPECT_EQ(actor<counter>.with(existing)(8).call<&counter::value>().get(), 8);
}

class mourned {
 public:
  explicit mourned(std::string note) : note_(std::move(note)) {}
  mourned(const mourned&) = delete;
  mourned& operator=(const mourned&) = delete;
  ~mourned() { write_note(note_, std::to_string(getpid())); }
  int pid() { return getpid(); }

 private:
  std::string note_;
};
int pid_of(actor_handle<mourned> m) { return m.call<&mourned::pid>().get(); }

TEST(end, the_last_handle_ends_the_actor_and_its_destructor_runs_on_its_rank) {
  for (unsigned rank : workers()) {
    note_folder notes;
    const std::string gone = notes["gone"];
    auto m = actor<mourned>.with({.where = rota::on_rank(rank)})(gone);
    auto stored = rota::put(m);
    const int pid = m.call<&mourned::pid>().get();
    auto last_call = m.call<&mourned::pid>();
    m = {};
    EXPECT_EQ(remote<pid_of>(stored).get(), pid);
    EXPECT_FALSE(exists(gone));
    stored = {};
    EXPECT_TRUE(eventually([&] { return read_note(gone) == std::to_string(pid); })) << read_note(gone);
    EXPECT_EQ(last_call.get(), pid);
  }
}

TEST(end, calls_made_before_the_last_handle_went_still_run) {
  ref<int> result;
  {
    auto c = actor<counter>();
    for (int i = 0; i < 1000; ++i) c.call<&counter::incr>(1);
    result = c.call<&counter::value>();
  }
  EXPECT_EQ(result.get(), 1000);
}

TEST(resources, what_an_actor_asks_for_it_holds_for_life) {
  const unsigned rank = workers().front();
  const double all = rota::cluster_resources().cpus;
  auto c = actor<counter>.with({.cpus = 2, .where = rota::on_rank(rank)})(1);
  EXPECT_EQ(c.call<&counter::rank>().get(), rank);
  EXPECT_EQ(rota::available_resources().cpus, all - 2);
  auto behind = remote<id>.with({.where = rota::on_rank(rank)})(1);
  EXPECT_THROW(behind.get(200ms), rota::get_timeout);
  c = {};
  EXPECT_EQ(behind.get(), 1);
  EXPECT_TRUE(eventually([&] { return rota::available_resources().cpus == all; }));
}

TEST(resources, actors_that_fit_nowhere_are_infeasible) {
  auto c = actor<counter>.with({.cpus = 1234})(1);
  const auto e = thrown_by<rota::infeasible>([&] { c.call<&counter::value>().get(); });
  EXPECT_TRUE(contains(e.what(), "1234") && contains(e.what(), "2 ")) << e.what();
  EXPECT_THROW(actor<counter>.with({.where = rota::on_rank(99)})(1).call<&counter::value>().get(), rota::infeasible);
  EXPECT_THROW(actor<counter>.with({.cpus = -1})(1), rota::config_error);
}

TEST(slots, actor_calls_never_wait_behind_tasks) {
  note_folder notes;
  const std::string go = notes["go"];
  std::vector<actor_handle<counter>> before;
  std::vector<ref<int>> holding;
  for (unsigned rank : workers()) {
    before.push_back(actor<counter>.with({.where = rota::on_rank(rank)})(1));
    for (int i = 0; i < 2; ++i) {
      const std::string started = notes["s" + std::to_string(rank) + std::to_string(i)];
      holding.push_back(remote<wait_for_note>.with({.where = rota::on_rank(rank)})(started, go));
      ASSERT_TRUE(eventually([&] { return exists(started); }));
    }
  }
  for (auto& c : before) EXPECT_EQ(c.call<&counter::value>().get(5s), 1);
  auto fresh = actor<counter>(2);
  EXPECT_EQ(fresh.call<&counter::value>().get(5s), 2);
  write_note(go);
  rota::get(holding);
}

}  // namespace
