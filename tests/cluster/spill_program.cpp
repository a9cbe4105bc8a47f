// A node's store that is too small, on several nodes: values leave memory and come back while other nodes read them.
// The main program's leak check holds for all cases. REQUIRES: three nodes.
#include <gtest/gtest.h>
#include <rota/detail/session_state.h>
#include <rota/rota.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/ranks/spill_help.h"

namespace {

using namespace std::chrono_literals;
using namespace rota::tests;
using rota::actor;
using rota::array;
using rota::ref;
using rota::remote;

// Read by init, which comes after it.
const bool small_store = offer({{"ROTA_STORE", "64M"}, {"ROTA_SPILL_QUOTA", "2G"}, {"ROTA_STORE_PATIENCE", "30"}});

constexpr std::size_t store = 64 * mebi, usual = 2 * mebi;
constexpr auto soon = 20s;

rota::options on(unsigned rank) { return {.where = rota::on_rank(rank)}; }
// The last rank of a node, which runs tasks; node 0 is that of this program.
unsigned rank_of(std::size_t node) {
  static const std::vector<rota::node_info> all = rota::nodes();
  return all.at(node).ranks.back();
}
refs made_on(unsigned rank, std::size_t count, std::size_t bytes, std::uint32_t first_seed) {
  refs all;
  for (std::uint32_t i = 0; i < count; ++i) all.push_back(remote<made>.with(on(rank))(bytes, first_seed + i));
  return all;
}

std::size_t stored() { return rota::detail::stored_values(); }
std::size_t spilled() { return rota::detail::spilled_bytes(); }
std::size_t spilled_on(std::size_t node) { return remote<spilled>.with(on(rank_of(node)))().get(); }

// Everything was let go of: nothing is on any disk and in any store.
void expect_empty() {
  for (unsigned rank : workers()) {
    EXPECT_TRUE(eventually([&] { return remote<spilled>.with(on(rank))().get() == 0; })) << "on disk at rank " << rank;
    EXPECT_TRUE(eventually([&] { return remote<stored>.with(on(rank))().get() == 0; })) << "in store of rank " << rank;
  }
  EXPECT_TRUE(eventually([] { return stored() == 0 && spilled() == 0; }));
}

std::size_t number_wrong(const refs& some, std::uint32_t first_seed) {
  std::size_t wrong = 0;
  for (std::uint32_t i = 0; i < some.size(); ++i) wrong += is(some[i].get(), first_seed + i) ? 0 : 1;
  return wrong;
}

// Values of four times the store, made on all nodes, are read on all.
void all_read_all(std::size_t bytes) {
  const auto count = static_cast<std::uint32_t>(4 * store / bytes);
  {
    std::vector<refs> of_node;
    for (std::uint32_t node = 0; node < 3; ++node) {
      of_node.push_back(made_on(rank_of(node), count, bytes, node * count));
    }
    std::vector<ref<bool>> right;
    for (std::uint32_t i = 0; i < count; ++i) {
      for (std::uint32_t node = 0; node < 3; ++node) {
        const unsigned reader = rank_of((node + 1 + i % 2) % 3);
        right.push_back(remote<is>.with(on(reader))(of_node[node][i], node * count + i));
      }
    }
    for (std::size_t i = 0; i < right.size(); ++i) ASSERT_TRUE(right[i].get()) << i;
    for (std::uint32_t node = 0; node < 3; ++node) {
      EXPECT_EQ(number_wrong(of_node[node], node * count), 0) << "values of node " << node;
      EXPECT_GT(spilled_on(node), store) << "of node " << node;
    }
  }
  expect_empty();
}
TEST(spill, values_of_four_times_the_store_made_on_all_nodes_are_read_on_all) { all_read_all(usual); }
// Each node needs room for what it fetches, and has what the others wait for on disk.
TEST(spill, so_are_those_of_a_quarter_of_the_store) { all_read_all(store / 4); }

// Three times the store comes from another node, twice: what came leaves memory, but is not written.
TEST(spill, copies_are_dropped_and_come_again_from_where_they_came) {
  constexpr std::uint32_t count = 3 * store / usual;
  {
    const refs far = made_on(rank_of(2), count, usual, 7000);
    for (int round = 0; round < 2; ++round) {
      EXPECT_EQ(remote<number_wrong>.with(on(rank_of(1)))(far, 7000).get(), 0) << "in round " << round;
    }
    EXPECT_EQ(spilled_on(1), 0);
    EXPECT_GT(spilled_on(2), store);
  }
  expect_empty();
}

// Keeps values in the store of its rank, and fills it.
struct keeper {
  refs kept;
  array<std::uint32_t> make(std::size_t bytes, std::uint32_t seed) { return made(bytes, seed); }
  refs put_some(std::size_t count) { return put_many(count, usual); }
  void fill() { kept = put_many(4 * store / usual, usual); }
  void let_go() { kept.clear(); }
  std::size_t cut_files() {
    const std::vector<std::string> files = spill_files();
    for (const std::string& path : files) {
      if (truncate(path.c_str(), 5000) != 0) throw std::runtime_error("truncate " + path);
    }
    return files.size();
  }
};

TEST(spill, values_that_are_on_disk_are_lent_to_two_nodes_at_once) {
  {
    auto far = actor<keeper>.with({.where = rota::on_rank(rank_of(2))})();
    const refs first = far.call<&keeper::put_some>(20).get();
    far.call<&keeper::fill>().get();
    EXPECT_GT(spilled_on(2), 3 * store) << "those that came first are on disk";
    std::vector<ref<bool>> right;
    for (std::uint32_t i = 0; i < first.size(); ++i) {
      for (unsigned rank : {1u, rank_of(1), rank_of(2)}) right.push_back(remote<is>.with(on(rank))(first[i], i));
      EXPECT_TRUE(is(first[i].get(), i)) << i;
    }
    for (const auto& one : right) EXPECT_TRUE(one.get());
    far.call<&keeper::let_go>().get();
  }
  expect_empty();
}

struct counts {
  std::size_t right = 0, wrong = 0, lost = 0;
  std::string what{};
  template <class Archive>
  void serialize(Archive& archive) {
    archive(right, wrong, lost, what);
  }
};
counts look_at(const refs& some) {
  counts seen;
  for (std::uint32_t i = 0; i < some.size(); ++i) {
    try {
      ++(is(some[i].get(), i) ? seen.right : seen.wrong);
    } catch (const rota::object_lost& e) {
      ++seen.lost;
      seen.what = e.what();
    }
  }
  return seen;
}

TEST(spill, a_file_that_was_cut_gives_object_lost_on_other_nodes) {
  {
    auto far = actor<keeper>.with({.where = rota::on_rank(rank_of(2))})();
    const refs some = far.call<&keeper::put_some>(2 * store / usual).get();
    EXPECT_GT(far.call<&keeper::cut_files>().get(), 0);
    const auto begin = std::chrono::steady_clock::now();
    for (unsigned rank : {rank_of(1), rank_of(2)}) {
      const counts seen = remote<look_at>.with(on(rank))(some).get();
      EXPECT_EQ(seen.wrong, 0);
      EXPECT_GT(seen.lost, 5);
      EXPECT_GT(seen.right, 5);
      EXPECT_TRUE(contains(seen.what, "rank " + std::to_string(rank_of(2)) + " (")) << seen.what;
    }
    EXPECT_THROW(some[0].get(), rota::object_lost);
    EXPECT_THROW(remote<is>.with(on(rank_of(1)))(some[0], 0u).get(), rota::object_lost);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, soon);
    EXPECT_TRUE(is(far.call<&keeper::make>(usual, 77u).get(), 77));
  }
  expect_empty();
}

// The result has to wait until this node has room, and goes to disk meanwhile.
TEST(spill, a_result_of_a_call_is_lost_with_the_file_that_was_cut) {
  {
    auto far = actor<keeper>.with({.where = rota::on_rank(rank_of(2))})();
    refs here = put_many(14, 4 * mebi);
    std::vector<array<std::uint32_t>> views = rota::get(here);
    auto result = far.call<&keeper::make>(16 * mebi, 5u);
    far.call<&keeper::fill>().get();
    EXPECT_GT(far.call<&keeper::cut_files>().get(), 0);
    views.clear();
    here.clear();
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_THROW(result.get(), rota::object_lost);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, soon);
    far.call<&keeper::let_go>().get();
    EXPECT_TRUE(is(far.call<&keeper::make>(16 * mebi, 6u).get(), 6));
  }
  expect_empty();
}

}  // namespace
