#include "runtime/worker/drops.h"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <set>
#include <thread>
#include <vector>

namespace {

using rota::agent::object;
using rota::detail::drops;

TEST(drops, what_is_taken_may_be_dropped_anew_at_once) {
  drops all;
  object one(1), other(2);
  EXPECT_FALSE(all.any());
  all.add(one);
  all.add(other);
  EXPECT_TRUE(all.any());
  std::vector<rota::object_id> taken;
  auto use = [&](object& o) {
    taken.push_back(o.id);
    if (taken.size() <= 2) all.add(o);
  };
  all.take(use, [](std::uint64_t) { FAIL(); });
  EXPECT_EQ(taken.size(), 2u);
  EXPECT_TRUE(all.any());
  all.take(use, [](std::uint64_t) { FAIL(); });
  EXPECT_EQ(taken.size(), 4u);
  EXPECT_FALSE(all.any());
}

TEST(drops, each_of_several_threads_is_taken_once) {
  constexpr std::uint64_t threads = 3, each = 20'000;
  drops all;
  std::deque<object> objects;
  for (std::uint64_t i = 0; i < threads * each; ++i) objects.emplace_back(i);
  std::multiset<std::uint64_t> ids, places;
  std::atomic<std::uint64_t> adding{threads};
  std::vector<std::jthread> running;
  for (std::uint64_t t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      for (std::uint64_t i = t * each; i < (t + 1) * each; ++i) {
        all.add(objects[i]);
        all.add_place(i);
      }
      --adding;
    });
  }
  while (adding > 0 || all.any()) {
    all.take([&](object& o) { ids.insert(o.id); }, [&](std::uint64_t place) { places.insert(place); });
  }
  std::multiset<std::uint64_t> expected;
  for (std::uint64_t i = 0; i < threads * each; ++i) expected.insert(i);
  EXPECT_EQ(ids, expected);
  EXPECT_EQ(places, expected);
}

}  // namespace
