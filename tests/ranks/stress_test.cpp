// References at random: all ranks make, copy, nest, pass and drop them at once, by tasks, calls and values inside
// values. At the end nothing is left on any rank. ROTA_STRESS=SEED:SECONDS[:STORE] chooses; the default is 1:3. With
// STORE, as 16M, values are larger than without, and must have left memory for the disk.
#include <gtest/gtest.h>
#include <rota/detail/session_state.h>
#include <rota/rota.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/ranks/session_help.h"

namespace {

using namespace std::chrono_literals;
using namespace rota::tests;
using rota::actor;
using rota::actor_handle;
using rota::ref;
using rota::remote;

struct choice {
  std::uint64_t seed = 1;
  double seconds = 3;
  std::string store{};  // empty: room for all
};
choice chosen() {
  choice c;
  const char* given = std::getenv("ROTA_STRESS");
  if (given == nullptr) return c;
  std::array<char, 16> store{};
  const int read = std::sscanf(given, "%lu:%lf:%15s", &c.seed, &c.seconds, store.data());
  if (read < 2) throw std::invalid_argument(std::string("ROTA_STRESS=") + given);
  if (read == 3) c.store = store.data();
  return c;
}

// Read by init, which comes after it.
const bool store_given = !chosen().store.empty();
const bool small_store =
    offer({{"ROTA_STORE", chosen().store.empty() ? "256M" : chosen().store.c_str()}, {"ROTA_CPUS", "2"}});

struct node;
// A ref, and how deep refs lie inside its value: without a limit everything would be kept by something.
struct held {
  ref<node> what;
  int depth = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(what, depth);
  }
};
using refs = std::vector<held>;
constexpr int deepest = 6;

struct node {
  std::uint64_t id = 0;
  std::vector<std::uint64_t> body;  // each is `id`
  refs inner;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(id, body, inner);
  }
};

bool intact(const node& n) {
  return std::all_of(n.body.begin(), n.body.end(), [&](std::uint64_t word) { return word == n.id; });
}
void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

node made(std::uint64_t id, std::size_t words, refs inner) {
  return {id, std::vector<std::uint64_t>(words, id), std::move(inner)};
}
// Values of tasks: one that holds what came in, and refs alone.
node holds(std::uint64_t id, std::size_t words, refs inner) { return made(id, words, std::move(inner)); }
refs reversed(refs some) { return {some.rbegin(), some.rend()}; }
std::uint64_t id_of(const node& n) {
  require(intact(n), "an argument with wrong bytes");
  return n.id;
}

// Keeps refs for others.
struct shelf {
  refs kept;
  refs exchange(refs some) {
    kept.insert(kept.end(), some.begin(), some.end());
    refs out;
    while (kept.size() > 8) {
      out.push_back(kept.front());
      kept.erase(kept.begin());
    }
    return out;
  }
  void clear() { kept.clear(); }
};

struct walked {
  std::uint64_t steps = 0, spilled = 0;  // bytes on disk, at most
};

class walker {
 public:
  walker(std::uint64_t seed, std::vector<actor_handle<shelf>> shelves)
      : random_(seed), next_id_(seed << 32), shelves_(std::move(shelves)), ranks_(workers()) {}

  walked walk(std::chrono::milliseconds time) {
    const auto until = std::chrono::steady_clock::now() + time;
    walked all;
    for (; std::chrono::steady_clock::now() < until; ++all.steps) {
      step();
      all.spilled = std::max<std::uint64_t>(all.spilled, rota::detail::spilled_bytes());
      while (mine_.size() > 24) mine_.erase(mine_.begin() + static_cast<std::ptrdiff_t>(below(mine_.size())));
    }
    return all;
  }

 private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  // Mostly inside the message, at times in the store.
  std::size_t words() {
    if (store_given && below(20) == 0) return 50'000 + below(200'000);
    return below(4) == 0 ? 1000 + below(20'000) : below(30);
  }
  held any() { return mine_[below(mine_.size())]; }
  refs some() {
    refs all;
    for (std::uint64_t n = below(4); n > 0 && !mine_.empty(); --n) all.push_back(any());
    return all;
  }
  refs some_shallow() {
    refs all = some();
    std::erase_if(all, [](const held& h) { return h.depth == deepest; });
    return all;
  }
  static int above(const refs& inner) {
    int depth = 0;
    for (const held& h : inner) depth = std::max(depth, h.depth + 1);
    return depth;
  }
  void add(refs more) { mine_.insert(mine_.end(), more.begin(), more.end()); }
  void read() {
    const node n = any().what.get();
    require(intact(n), "wrong bytes");
    for (const held& inner : n.inner) {
      if (below(2) == 0) require(intact(inner.what.get()), "wrong bytes inside");
    }
    if (!n.inner.empty()) add({n.inner.front()});
  }
  rota::options anywhere() { return {.where = rota::on_rank(ranks_[below(ranks_.size())])}; }

  void put(refs inner) {
    const int depth = above(inner);
    add({{rota::put(made(++next_id_, words(), std::move(inner))), depth}});
  }

  void step() {
    if (mine_.empty()) return put({});
    switch (below(9)) {
      case 0:
        return put({});
      case 1:
        return add({any()});
      case 2:
        return put(some_shallow());
      case 3: {
        refs inner = some_shallow();
        return add({{remote<holds>.with(anywhere())(++next_id_, words(), inner), above(inner)}});
      }
      case 4:
        return add(remote<reversed>.with(anywhere())(some()).get());
      case 5:
        remote<id_of>.with(anywhere())(any().what);
        return;
      case 6:
        return add(shelves_[below(shelves_.size())].call<&shelf::exchange>(some()).get());
      case 7:
        return read();
      default:
        mine_.erase(mine_.begin());
    }
  }

  std::mt19937_64 random_;
  std::uint64_t next_id_;
  std::vector<actor_handle<shelf>> shelves_;
  std::vector<unsigned> ranks_;
  refs mine_;
};

walked walk(std::uint64_t seed, unsigned milliseconds, std::vector<actor_handle<shelf>> shelves) {
  return walker(seed, std::move(shelves)).walk(std::chrono::milliseconds(milliseconds));
}
std::size_t stored_values() { return rota::detail::stored_values(); }

TEST(stress, references_at_random_leave_nothing_behind) {
  const auto [seed, seconds, store] = chosen();
  const auto milliseconds = static_cast<unsigned>(seconds * 1000);
  std::printf("seed %lu, store %s\n", seed, store.c_str());
  {
    std::vector<actor_handle<shelf>> shelves;
    for (unsigned rank : workers()) shelves.push_back(actor<shelf>.with({.where = rota::on_rank(rank)})());
    std::vector<ref<walked>> walks;
    for (unsigned rank : workers()) {
      for (std::uint64_t i = 0; i < 2; ++i) {
        walks.push_back(
            remote<walk>.with({.where = rota::on_rank(rank)})(seed * 1000 + rank * 2 + i, milliseconds, shelves));
      }
    }
    walked all = walk(seed * 1000 + 999, milliseconds, shelves);
    for (const auto& w : walks) {
      const walked one = w.get();
      all.steps += one.steps;
      all.spilled = std::max(all.spilled, one.spilled);
    }
    std::printf("%lu steps, at most %lu bytes on the disk of a node\n", all.steps, all.spilled);
    EXPECT_GT(all.steps, 100);
    EXPECT_EQ(all.spilled > 0, store_given);
    for (auto& s : shelves) s.call<&shelf::clear>().get();
  }
  EXPECT_EQ(rota::detail::leak_report(), "");
  for (unsigned rank : workers()) {
    EXPECT_TRUE(eventually([&] { return remote<stored_values>.with({.where = rota::on_rank(rank)})().get() == 0; }))
        << "values are left in the store of rank " << rank;
  }
}

}  // namespace
