// A program that scripts run in one of many ways: session_program WAY [FOLDER]. It makes files in FOLDER to say how far
// it is, and waits there for files of others. Exit status 0 if all was as it must be, 2 with a line on stderr for an
// error of rota, else as the way says.
#include <rota/rota.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/ranks/session_help.h"

namespace {

using namespace std::chrono_literals;
using namespace rota::tests;
using rota::remote;

int plus_one(int x) { return x + 1; }
std::string note_pid(std::string folder) {
  const std::string rank = std::to_string(rota::this_task().rank);
  write_note(folder + "/pid." + rank, std::to_string(getpid()));
  return rank;
}
void sleep_for(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }
void started_sleeper(const std::string& note, int milliseconds) {
  write_note(note);
  sleep_for(milliseconds);
}

void use(int tasks) {
  for (int i = 0; i < tasks; ++i) {
    if (remote<plus_one>(i).get() != i + 1) throw std::logic_error("a wrong result");
  }
}

// Far more tasks than slots; main ends at once.
int many_queued(const std::string& folder) {
  for (int i = 0; i < 40; ++i) remote<started_sleeper>(folder + "/started." + std::to_string(i), 500);
  return 0;
}

struct greeter {
  std::string note;
  explicit greeter(std::string path) : note(std::move(path)) {}
  ~greeter() { write_note(note); }
  int greet() { return 1; }
};

struct late {
  ~late() { sleep_for(3000); }
  int greet() { return 1; }
};

// All ranks say their pid, then work goes on without an end.
int endless(const std::string& folder) {
  write_note(folder + "/pid.0", std::to_string(getpid()));
  for (unsigned rank : workers()) remote<note_pid>.with({.where = rota::on_rank(rank)})(folder).get();
  auto busy = rota::actor<greeter>(folder + "/destroyed");
  auto large = rota::put(std::vector<char>(10'000'000));
  std::vector<rota::ref<void>> sleeping;
  for (int i = 0; i < 20; ++i) sleeping.push_back(remote<sleep_for>(60'000));
  write_note(folder + "/ready");
  rota::get(sleeping);
  return 1;
}

// A running task waits for one that is dropped at the end.
int drop_queued(const std::string& folder) {
  remote<[](std::string at) { started_sleeper(at, 700); }>.with({.cpus = 0, .resources = {{"key", 1}}})(folder +
                                                                                                        "/holds");
  while (!exists(folder + "/holds")) sleep_for(1);
  remote<[](std::string at) {
    auto child = remote<plus_one>.with({.cpus = 0, .resources = {{"key", 1}}})(1);
    write_note(at + "/waits");
    try {
      child.get();
      write_note(at + "/got", "a value");
    } catch (const rota::task_cancelled&) {
      write_note(at + "/got", "task_cancelled");
    }
  }>(folder);
  while (!exists(folder + "/waits")) sleep_for(1);
  for (int i = 0; i < 1000; ++i) remote<sleep_for>(500);  // only those that have started may hold up the end
  return 0;
}

// Puts until the store or the machine is full, twice.
int fill(const std::string& folder) {
  for (int round = 0; round < 2; ++round) {
    write_note(folder + "/ready" + std::to_string(round));
    hold_slot_until(folder + "/go" + std::to_string(round));
    std::vector<rota::ref<std::vector<char>>> kept;
    try {
      for (int i = 0; i < 400; ++i) kept.push_back(rota::put(std::vector<char>(1 << 20, 'f')));
      std::printf("round %d: never full\n", round);
    } catch (const rota::out_of_memory& full) {
      std::printf("round %d: full with %zu: %s\n", round, kept.size(), full.what());
    }
    for (const auto& one : kept) {
      if (one.get().back() != 'f') throw std::logic_error("a wrong value");
    }
    use(10);
    std::fflush(stdout);
  }
  return 0;
}

bool closes_stdout() { return close(STDOUT_FILENO) == 0 && std::printf("lost\n") != 0; }

int close_stdout() {
  for (unsigned rank : workers()) {
    if (!remote<closes_stdout>.with({.where = rota::on_rank(rank)})().get()) return 3;
  }
  use(100);
  return 0;
}

int crash(const std::string& folder) {
  write_note(folder + "/ready");
  remote<[] { std::raise(SIGSEGV); }>().get();
  return 3;
}

// Before init nothing works, and says why.
int early() {
  for (const std::function<void()>& call : std::vector<std::function<void()>>{
           [] { remote<plus_one>(1); }, [] { rota::put(1); }, [] { rota::nodes(); }, [] { rota::actor<greeter>(""); },
           [] { rota::find_actor<greeter>("x"); }, [] { rota::make_array<int>(5); }}) {
    try {
      call();
      return 3;
    } catch (const rota::config_error& e) {
      if (!contains(e.what(), "init")) return 4;
    }
  }
  return 0;
}

// Threads of the program submit and wait while the session ends: they get an error, and nothing of theirs is touched.
int threads_at_end(int argc, char** argv) {
  std::atomic<int> told = 0;
  std::vector<std::jthread> threads;
  {
    auto session = rota::init(argc, argv);
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        try {
          for (;;) remote<started_sleeper>("/dev/null", 1).get();
        } catch (const rota::error&) {
          ++told;
        }
      });
    }
    sleep_for(50);
  }
  for (std::jthread& t : threads) t.join();
  return told == 4 ? 0 : 3;
}

// Once the session has ended nothing works but what this process holds itself, and a second session is not advised.
int after(int argc, char** argv) {
  rota::ref<std::vector<char>> placed;
  rota::ref<rota::array<char>> placed_array;
  rota::ref<int> small;
  rota::actor_handle<greeter> someone;
  rota::array_builder<char> builder;
  {
    auto session = rota::init(argc, argv);
    placed = rota::put(std::vector<char>(1'000'000, 'p'));
    placed_array = remote<[] { return rota::make_array<char>(1'000'000); }>();
    rota::wait(std::vector{placed_array});
    small = remote<plus_one>(1);
    small.get();
    someone = rota::actor<greeter>("/dev/null");
    someone.call<&greeter::greet>().get();
    builder = rota::make_array<char>(1'000'000);
  }
  if (small.get() != 2 || !small.ready()) return 3;
  const std::vector<std::function<void()>> calls{
      [&] { placed.get(); },
      [&] { placed.get(1s); },
      [&] {
        rota::get(std::vector{placed, placed});
      },
      [&] { placed_array.get(); },
      [] { remote<plus_one>(1); },
      [] { remote<[](const std::string& text) { return text.size(); }>(std::string(100'000, 'x')); },
      [&] { remote<[](const std::vector<char>& v) { return v.size(); }>(placed); },
      [] {
        rota::map<plus_one>(std::vector{1, 2});
      },
      [] { rota::put(1); },
      [] { rota::put(std::string(100'000, 'x')); },
      [&] { rota::put(std::move(builder)); },
      [] { rota::make_array<char>(1'000'000); },
      [] { rota::actor<greeter>("/dev/null"); },
      [&] { someone.call<&greeter::greet>(); },
      [&] { someone.kill(); },
      [] { rota::find_actor<greeter>("x"); },
      [] { rota::nodes(); },
  };
  for (std::size_t i = 0; i < calls.size(); ++i) {
    try {
      calls[i]();
      std::fprintf(stderr, "call %zu worked\n", i);
      return 4;
    } catch (const rota::config_error& e) {
      if (contains(e.what(), "session has ended") && !contains(e.what(), "init")) continue;
      std::fprintf(stderr, "call %zu: %s\n", i, e.what());
      return 5;
    }
  }
  std::puts("all refused");
  return 0;
}

int run(const std::string& way, const std::string& folder) {
  static rota::ref<std::string> outlives;  // refs may outlive the session
  if (way == "quiet") use(100);
  if (way == "return") {
    outlives = rota::put(std::string(100'000, 'o'));
    rota::actor<greeter>(folder + "/destroyed").call<&greeter::greet>().get();
    remote<started_sleeper>(folder + "/started", 300);
    hold_slot_until(folder + "/started");
  }
  if (way == "actor_at_end") {
    static auto kept = rota::actor<greeter>(folder + "/destroyed");
    kept.call<&greeter::greet>().get();
  }
  if (way == "late_actor" || way == "late_actor_elsewhere") {
    const unsigned there = way == "late_actor" ? 0 : 1;
    static auto kept = rota::actor<late>.with({.where = rota::on_rank(there)})();
    kept.call<&late::greet>().get();
  }
  if (way == "throw") throw std::runtime_error("left main by an exception");
  if (way == "exit") std::exit(3);
  if (way == "quick_exit") _exit(4);
  if (way == "endless") return endless(folder);
  if (way == "slow") {
    remote<[](std::string note) { started_sleeper(note, 10'000); }>.with({.name = "the slow one"})(folder + "/started");
    hold_slot_until(folder + "/started");
  }
  if (way == "drop_queued") return drop_queued(folder);
  if (way == "many_queued") return many_queued(folder);
  if (way == "fill") return fill(folder);
  if (way == "close_stdout") return close_stdout();
  if (way == "crash") return crash(folder);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "early") {
    if (const int bad = early(); bad != 0) return bad;
  }
  if (argc > 1 && std::string(argv[1]) == "after") return after(argc, argv);
  if (argc > 1 && std::string(argv[1]) == "threads_at_end") return threads_at_end(argc, argv);
  const bool uncaught = argc > 1 && std::string(argv[1]) == "throw";
  if (uncaught) {
    auto session = rota::init(argc, argv);
    use(10);
    return run("throw", "");
  }
  try {
    auto session = rota::init(argc, argv);
    return run(argc > 1 ? argv[1] : "quiet", argc > 2 ? argv[2] : "");
  } catch (const rota::join_refused& e) {
    std::fprintf(stderr, "join_refused: %s\n", e.what());
  } catch (const rota::config_error& e) {
    std::fprintf(stderr, "config_error: %s\n", e.what());
    if (argc > 2 && std::string(argv[1]) == "refused_stays") {
      write_note(std::string(argv[2]) + "/refused");
      hold_slot_until(std::string(argv[2]) + "/go");
    }
  } catch (const rota::out_of_memory& e) {
    std::fprintf(stderr, "out_of_memory: %s\n", e.what());
  } catch (const rota::error& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
  }
  return 2;
}
