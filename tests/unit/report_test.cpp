#include "runtime/client/report.h"

#include <gtest/gtest.h>

namespace {

using rota::detail::count_pairs;

TEST(pairs, of_one_rank_there_are_none) {
  EXPECT_EQ(count_pairs({0}).shared, 0u);
  EXPECT_EQ(count_pairs({0}).far, 0u);
}

TEST(pairs, of_one_node_are_all_shared) {
  EXPECT_EQ(count_pairs({0, 0, 0, 0}).shared, 6u);
  EXPECT_EQ(count_pairs({0, 0, 0, 0}).far, 0u);
}

TEST(pairs, of_different_nodes_are_far) {
  EXPECT_EQ(count_pairs({0, 1, 2}).shared, 0u);
  EXPECT_EQ(count_pairs({0, 1, 2}).far, 3u);
  EXPECT_EQ(count_pairs({0, 1, 0, 1, 0}).shared, 4u);
  EXPECT_EQ(count_pairs({0, 1, 0, 1, 0}).far, 6u);
}

TEST(build, says_its_version) { EXPECT_FALSE(rota::detail::facts_of_build().version.empty()); }

}  // namespace
