#include "runtime/worker/cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <set>
#include <thread>

namespace {

using rota::detail::core_plan;
using rota::detail::plan_cores;
using rota::detail::rank_cores;
using pairs = std::vector<std::pair<rota::rank_t, rota::rank_t>>;

rank_cores unbound(rota::rank_t rank, std::vector<unsigned> allowed, unsigned slots) {
  return {rank, "n1", std::move(allowed), slots, false};
}
rank_cores bound(rota::rank_t rank, std::vector<unsigned> allowed, unsigned slots) {
  return {rank, "n1", std::move(allowed), slots, true};
}

std::size_t cores_of_mask() {
  cpu_set_t mask;
  return ::sched_getaffinity(0, sizeof mask, &mask) == 0 ? static_cast<std::size_t>(CPU_COUNT(&mask)) : 0;
}

TEST(cores, allowed_cores_are_those_of_the_affinity_mask) {
  const std::vector<unsigned> allowed = rota::detail::allowed_cores();
  EXPECT_EQ(allowed.size(), cores_of_mask());
  EXPECT_EQ(std::set<unsigned>(allowed.begin(), allowed.end()).size(), allowed.size());
  EXPECT_LE(allowed.size(), rota::detail::host_cores());
}

TEST(cores, a_thread_can_be_bound_and_others_stay_as_they_are) {
  const std::size_t before = cores_of_mask();
  const unsigned last = rota::detail::allowed_cores().back();
  std::thread([&] {
    rota::detail::bind_this_thread(last);
    EXPECT_EQ(::sched_getcpu(), static_cast<int>(last));
    EXPECT_EQ(cores_of_mask(), 1u);
  }).join();
  EXPECT_EQ(cores_of_mask(), before);
}

TEST(cores, binding_to_a_core_that_is_not_there_leaves_the_thread_unbound) {
  std::thread([] {
    const std::size_t before = cores_of_mask();
    rota::detail::bind_this_thread(100'000);
    EXPECT_EQ(cores_of_mask(), before);
  }).join();
}

TEST(offered_slots, flag_beats_slurm_beats_mask) {
  const std::vector<unsigned> allowed = {0, 1, 2, 3};
  rota::config values;
  rota::slurm::environment slurm;
  std::optional<double> quota;
  const auto slots = [&] { return rota::detail::offered_slots(values, slurm, allowed, quota).slots; };
  EXPECT_EQ(slots(), 4u);
  slurm.cpus_per_task = 2;
  EXPECT_EQ(slots(), 2u);
  slurm.cpus_per_task = 64;
  EXPECT_EQ(slots(), 4u);
  slurm.cpus_per_task = 0;
  EXPECT_EQ(slots(), 1u);
  values.cpus = 8;
  EXPECT_EQ(slots(), 8u);
  values.cpus = 1.5;
  EXPECT_EQ(slots(), 2u);
}

TEST(offered_slots, are_no_more_than_a_control_group_gives_time_for) {
  const std::vector<unsigned> allowed = {0, 1, 2, 3};
  const auto slots = [&](const rota::config& values, double quota, std::optional<unsigned> cpus_per_task = {}) {
    rota::slurm::environment slurm;
    slurm.cpus_per_task = cpus_per_task;
    return rota::detail::offered_slots(values, slurm, allowed, quota).slots;
  };
  EXPECT_EQ(slots({}, 8), 4u);
  EXPECT_EQ(slots({}, 4), 4u);
  EXPECT_EQ(slots({}, 2.1), 3u);
  EXPECT_EQ(slots({}, 0.1), 1u);
  EXPECT_EQ(slots({}, 1.5, 4), 2u);
  EXPECT_EQ(slots({}, 3, 2), 2u);
  rota::config values;
  values.cpus = 6;
  EXPECT_EQ(slots(values, 1.5), 6u);
}

TEST(offered_slots, say_what_decided) {
  const std::vector<unsigned> allowed = {0, 1, 2, 3};
  rota::config values;
  rota::slurm::environment slurm;
  const auto from = [&](std::optional<double> quota) {
    return std::string(rota::detail::offered_slots(values, slurm, allowed, quota).from);
  };
  EXPECT_EQ(from({}), "the cores that the rank may run on");
  slurm.cpus_per_task = 64;
  EXPECT_EQ(from({}), "the cores that the rank may run on");
  slurm.cpus_per_task = 2;
  EXPECT_EQ(from({}), "Slurm's --cpus-per-task");
  EXPECT_EQ(from(1), "the CPU time of the control group");
  values.cpus = 2;
  EXPECT_EQ(from(1), "--rota-cpus");
}

TEST(plan_cores, disjoint_masks_are_taken_as_they_are) {
  const core_plan plan = plan_cores(std::vector{bound(0, {0}, 1), bound(1, {1}, 1)});
  EXPECT_EQ(plan.cores, (std::vector<std::vector<unsigned>>{{0}, {1}}));
  EXPECT_TRUE(plan.shared.empty());
}

TEST(plan_cores, unbound_ranks_that_fit_split_the_cores) {
  const core_plan plan = plan_cores(std::vector{unbound(0, {0, 1, 2, 3}, 2), unbound(1, {0, 1, 2, 3}, 2)});
  EXPECT_EQ(plan.cores, (std::vector<std::vector<unsigned>>{{0, 1}, {2, 3}}));
  EXPECT_TRUE(plan.shared.empty());
}

TEST(plan_cores, unbound_ranks_that_do_not_fit_run_unbound_without_a_warning) {
  const core_plan plan = plan_cores(std::vector{unbound(0, {0, 1}, 2), unbound(1, {0, 1}, 2), unbound(2, {0, 1}, 2)});
  for (const auto& cores : plan.cores) EXPECT_TRUE(cores.empty());
  EXPECT_TRUE(plan.shared.empty());
}

TEST(plan_cores, bound_ranks_on_the_same_core_are_reported) {
  const core_plan plan = plan_cores(std::vector{bound(4, {0}, 1), bound(5, {0}, 1), bound(6, {1}, 1)});
  EXPECT_EQ(plan.shared, (pairs{{4, 5}}));
  EXPECT_TRUE(plan.cores[0].empty() && plan.cores[1].empty());
  EXPECT_EQ(plan.cores[2], std::vector<unsigned>{1});
}

TEST(plan_cores, each_reported_rank_is_named_but_not_each_pair) {
  std::vector<rank_cores> ranks;
  for (rota::rank_t rank = 0; rank < 5; ++rank) ranks.push_back(bound(rank, {7}, 1));
  EXPECT_EQ(plan_cores(ranks).shared, (pairs{{0, 1}, {0, 2}, {0, 3}, {0, 4}}));
}

TEST(plan_cores, bound_ranks_that_share_a_large_enough_mask_split_it) {
  const core_plan plan = plan_cores(std::vector{bound(0, {0, 1, 2, 3}, 2), bound(1, {2, 3}, 2)});
  EXPECT_EQ(plan.cores, (std::vector<std::vector<unsigned>>{{0, 1}, {2, 3}}));
  EXPECT_TRUE(plan.shared.empty());
}

TEST(plan_cores, a_head_without_slots_gets_no_core_but_wants_one) {
  const core_plan roomy = plan_cores(std::vector{unbound(0, {0, 1}, 0), unbound(1, {0, 1}, 1)});
  EXPECT_EQ(roomy.cores, (std::vector<std::vector<unsigned>>{{}, {1}}));
  const core_plan crowded = plan_cores(std::vector{bound(0, {3}, 0), bound(1, {3}, 1)});
  EXPECT_EQ(crowded.cores, (std::vector<std::vector<unsigned>>{{}, {3}}));
  EXPECT_EQ(crowded.shared, (pairs{{0, 1}}));
}

TEST(plan_cores, more_slots_than_cores_on_one_rank_is_no_conflict) {
  const core_plan plan = plan_cores(std::vector{unbound(0, {0, 1}, 8)});
  EXPECT_TRUE(plan.cores[0].empty());
  EXPECT_TRUE(plan.shared.empty());
}

TEST(plan_cores, ranks_of_different_hosts_never_meet) {
  std::vector<rank_cores> ranks = {bound(0, {0}, 1), bound(1, {0}, 1)};
  ranks[1].host = "n2";
  const core_plan plan = plan_cores(ranks);
  EXPECT_TRUE(plan.shared.empty());
  EXPECT_EQ(plan.cores, (std::vector<std::vector<unsigned>>{{0}, {0}}));
}

}  // namespace
