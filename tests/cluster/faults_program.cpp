// A program for nodes that fail, by which a script sees what a reader gets: faults_program WAY FOLDER. Notes in FOLDER
// say how far it is. Exit status 0 if all was as it must be, 3 when a rank was lost, with the error on stdout.
#include <rota/rota.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/ranks/session_help.h"

namespace {

using namespace std::chrono_literals;
using namespace rota::tests;
using rota::remote;

constexpr std::size_t large = std::size_t{64} << 20;

void note_pid(const std::string& folder) { write_note(folder + "/pid", std::to_string(getpid())); }
std::vector<std::uint8_t> bytes(std::size_t count, std::uint8_t value) {
  return std::vector<std::uint8_t>(count, value);
}
int add(int a, int b) { return a + b; }
void compute(int milliseconds) {  // does not look at the runtime meanwhile
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  while (std::chrono::steady_clock::now() < until) {
  }
}

struct sum {
  std::uint64_t total = 0;
  std::uint64_t take(const std::vector<std::uint8_t>& some) { return total += some.size(); }
  void compute_for(int milliseconds) { compute(milliseconds); }
};

struct late {
  ~late() { std::this_thread::sleep_for(3s); }
  int greet() { return 1; }
};

rota::options on_last() { return {.where = rota::on_rank(workers().back())}; }

// Large values of the last rank are read one after the other, until one does not come.
int transfer(const std::string& folder) {
  for (int round = 0;; ++round) {
    const auto value = static_cast<std::uint8_t>(round);
    const std::vector<std::uint8_t> got = remote<bytes>.with(on_last())(large, value).get();
    if (got.size() != large || std::any_of(got.begin(), got.end(), [&](std::uint8_t b) { return b != value; })) {
      std::puts("wrong bytes");
      return 1;
    }
    if (round == 0) write_note(folder + "/reads");
  }
}

// Values of twice the store of the last node are read one after the other, again and again: they come back from its
// disk, and leave this node's store for the next ones. Until one does not come.
int spilled(const std::string& folder) {
  std::vector<rota::ref<std::vector<std::uint8_t>>> all;
  for (int i = 0; i < 16; ++i) all.push_back(remote<bytes>.with(on_last())(large / 8, static_cast<std::uint8_t>(i)));
  for (int round = 0;; ++round) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::vector<std::uint8_t> got = all[i].get();
      if (got.size() == large / 8 && std::all_of(got.begin(), got.end(), [&](std::uint8_t b) { return b == i; })) {
        continue;
      }
      std::puts("wrong bytes");
      return 1;
    }
    if (round == 0) write_note(folder + "/reads");
  }
}

// Small tasks on all ranks, for some seconds; each must come back right, whatever happens to the ranks meanwhile.
int tasks(const std::string& folder) {
  write_note(folder + "/reads");
  int made = 0;
  while (!exists(folder + "/enough")) {
    std::vector<rota::ref<int>> sums;
    for (unsigned rank : workers()) {
      for (int i = 0; i < 10; ++i) sums.push_back(remote<add>.with({.where = rota::on_rank(rank)})(made, i));
    }
    for (std::size_t i = 0; i < sums.size(); ++i) {
      if (sums[i].get() != made + static_cast<int>(i % 10)) return 1;
    }
    ++made;
  }
  std::printf("%d rounds\n", made);
  return 0;
}

std::size_t peak_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "VmHWM:") {
      std::size_t kib = 0;
      status >> kib;
      return kib;
    }
  }
  throw std::runtime_error("no VmHWM");
}

// An actor of the last rank takes nothing for three seconds, while 400 MB of calls are made.
int slow_reader(const std::string&) {
  constexpr std::uint64_t calls = 100'000, each = 4000;
  auto reader = rota::actor<sum>.with({.where = rota::on_rank(workers().back())})();
  const std::vector<std::uint8_t> some(each, 1);
  reader.call<&sum::take>(some).get();
  const std::size_t before = peak_kib();
  reader.call<&sum::compute_for>(3000);
  rota::ref<std::uint64_t> last;
  for (std::uint64_t i = 0; i < calls; ++i) last = reader.call<&sum::take>(some);
  const bool right = last.get() == (calls + 1) * each;
  std::printf("%s, %zu MiB\n", right ? "right" : "wrong", (peak_kib() - before) >> 10);
  return right ? 0 : 1;
}

// An actor of the last rank takes three seconds to end, in which its rank and the others have nothing to say.
int late_end(const std::string&) {
  auto lives = rota::actor<late>.with({.where = rota::on_rank(workers().back())})();
  return lives.call<&late::greet>().get() - 1;
}

}  // namespace

int main(int argc, char** argv) {
  auto session = rota::init(argc, argv);
  if (argc != 3) return 1;
  const std::string way = argv[1], folder = argv[2];
  remote<note_pid>.with(on_last())(folder).get();
  try {
    if (way == "transfer") return transfer(folder);
    if (way == "spilled") return spilled(folder);
    if (way == "tasks") return tasks(folder);
    if (way == "slow_reader") return slow_reader(folder);
    if (way == "late_end") return late_end(folder);
  } catch (const rota::rank_lost& lost) {
    write_note(folder + "/lost");
    std::printf("rank_lost: %s\n", lost.what());
    try {
      remote<add>(1, 2).get();
    } catch (const rota::rank_lost&) {
      std::puts("and again");
    }
    std::fflush(stdout);
    return 3;
  }
  return 1;
}
