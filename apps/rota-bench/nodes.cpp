// What crosses nodes, beside bare UCX between the same two processes.

#include <rota/rota.h>

#include <cstring>
#include <vector>

#include "apps/rota-bench/bench.h"
#include "apps/rota-bench/raw_ucx.h"

namespace bench {
namespace {

// The other end of the bare connection, on a rank of another node.
class raw_end {
 public:
  std::string open(std::string peer) {
    ucx_ = make_raw_ucx();
    if (!ucx_) return {};
    ucx_->connect(peer);
    return ucx_->address();
  }
  void answer(int rounds) { ucx_->answer(rounds); }
  void lend(std::size_t bytes, int rounds) { ucx_->lend(bytes, rounds); }

 private:
  std::unique_ptr<raw_ucx> ucx_;
};

// A rank of another node than the head's.
unsigned far_rank() {
  for (const rota::node_info& node : rota::nodes()) {
    if (std::find(node.ranks.begin(), node.ranks.end(), 0u) == node.ranks.end()) return node.ranks.front();
  }
  throw std::runtime_error("this benchmark needs a second node");
}

class raw_link {
 public:
  explicit raw_link(unsigned rank) : here_(make_raw_ucx()) {
    if (!here_) return;
    there_ = rota::actor<raw_end>.with({.where = rota::on_rank(rank)})();
    here_->connect(there_.call<&raw_end::open>(here_->address()).get());
  }
  explicit operator bool() const { return here_ != nullptr; }

  double roundtrip(int rounds) {
    const auto peer = there_.call<&raw_end::answer>(rounds);
    const double seconds = here_->ask(rounds);
    peer.get();
    return seconds;
  }
  double fetch(std::size_t bytes, int rounds) {
    const auto peer = there_.call<&raw_end::lend>(bytes, rounds);
    const double seconds = here_->fetch(bytes, rounds);
    peer.get();
    return seconds;
  }

 private:
  std::unique_ptr<raw_ucx> here_;
  rota::actor_handle<raw_end> there_;
};

int plus_one(int x) { return x + 1; }

rota::array_builder<double> make_doubles(std::size_t count, double value) {
  auto made = rota::make_array<double>(count);
  std::fill(made.begin(), made.end(), value);
  return made;
}

std::vector<rota::ref<rota::array<char>>> make_small(int count, std::size_t size) {
  std::vector<rota::ref<rota::array<char>>> refs;
  for (int i = 0; i < count; ++i) {
    auto made = rota::make_array<char>(size);
    std::memset(made.data(), i % 127, size);
    refs.push_back(rota::put(std::move(made)));
  }
  return refs;
}

std::size_t size_of(const rota::array<double>& a) { return a.size(); }

void report_beside(const context& run, const char* name, const char* unit, const medians& found, bool raw,
                   const char* limit_is) {
  finding f{.bench = name, .value = found.rota, .unit = unit};
  if (raw) {
    f.limit = found.limit;
    f.limit_is = limit_is;
  }
  report(run, f);
}

}  // namespace

void run_link_roundtrip(const context& run) {
  constexpr int rounds = 3'000;
  constexpr double micro = 1e6;
  const unsigned there = far_rank();
  raw_link raw(there);
  const auto ask_task = [&] {
    const double seconds = seconds_of([&] {
      for (int i = 0; i < rounds; ++i) {
        const int got = rota::remote<plus_one>.with({.where = rota::on_rank(there)})(i).get();
        expect(got == i + 1, "link_roundtrip", "wrong result");
      }
    });
    return seconds / rounds * micro;
  };
  const medians found =
      alternate(run, "link_roundtrip", ask_task, [&] { return raw ? raw.roundtrip(rounds) * micro : 0; });
  report_beside(run, "link_roundtrip", "us", found, bool(raw), "8-byte UCX active message and back");
}

void run_transfer(const context& run) {
  constexpr std::size_t count = std::size_t{32} << 20, bytes = count * sizeof(double);  // 256 MiB
  constexpr double gigabytes = bytes * 1e-9;
  const unsigned there = far_rank();
  raw_link raw(there);
  const auto get_once = [&] {
    const auto made = rota::remote<make_doubles>.with({.where = rota::on_rank(there)})(count, 1.5);
    rota::wait(std::vector{made});
    double last = 0;
    const double seconds = seconds_of([&] { last = made.get().back(); });
    expect(last == 1.5, "transfer", "wrong values");
    return gigabytes / seconds;
  };
  const medians found = alternate(run, "transfer", get_once, [&] { return raw ? gigabytes / raw.fetch(bytes, 1) : 0; });
  report_beside(run, "transfer", "GB/s", found, bool(raw), "256 MiB by UCX rendezvous into memory written before");
}

void run_many_small(const context& run) {
  constexpr int count = 100'000;
  constexpr std::size_t size = 4096;
  const unsigned there = far_rank();
  const double rate = repeated(run, "many_small", [&] {
    auto refs = rota::remote<make_small>.with({.where = rota::on_rank(there)})(count, size).get();
    std::vector<rota::array<char>> values;
    const double seconds = seconds_of([&] { values = rota::get(refs); });
    for (int i = 0; i < count; ++i) {
      expect(values[static_cast<std::size_t>(i)].back() == i % 127, "many_small", "wrong values");
    }
    return count / seconds * 1e-3;
  });
  report(run, {.bench = "many_small", .value = rate, .unit = "k/s"});
}

void run_broadcast(const context& run) {
  constexpr std::size_t count = std::size_t{8} << 20;  // 64 MiB
  std::vector<unsigned> readers;                       // one on each other node
  for (const rota::node_info& node : rota::nodes()) {
    const bool head = std::find(node.ranks.begin(), node.ranks.end(), 0u) != node.ranks.end();
    if (!head) readers.push_back(node.ranks.front());
  }
  expect(!readers.empty(), "broadcast", "needs a second node");
  const auto send_to = [&](std::size_t nodes) {
    auto made = make_doubles(count, 2.5);
    const auto ref = rota::put(std::move(made));
    return seconds_of([&] {
      std::vector<rota::ref<std::size_t>> sizes;
      for (std::size_t i = 0; i < nodes; ++i) {
        sizes.push_back(rota::remote<size_of>.with({.where = rota::on_rank(readers[i])})(ref));
      }
      for (std::size_t one : rota::get(sizes)) expect(one == count, "broadcast", "wrong size");
    });
  };
  const medians found = alternate(
      run, "broadcast", [&] { return send_to(readers.size()) * 1e3; }, [&] { return send_to(1) * 1e3; });
  report(run, {.bench = "broadcast",
               .value = found.rota,
               .unit = "ms",
               .limit = found.limit,
               .limit_is = "the same 64 MiB to one other node",
               .note = std::to_string(readers.size()) + " other nodes"});
}

}  // namespace bench
