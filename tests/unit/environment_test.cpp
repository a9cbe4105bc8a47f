#include "slurm/environment.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

namespace {

using rota::slurm::advice_when_alone;
using rota::slurm::environment;

environment read(const std::map<std::string, std::string>& variables) {
  return rota::slurm::read_environment([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(environment, is_empty_outside_of_slurm) {
  const environment out = read({});
  EXPECT_FALSE(out.job_id || out.step_id || out.step_tasks || out.ntasks || out.procid || out.localid ||
               out.cpus_per_task || out.cpus_on_node || out.nodes || out.node_name || out.memory_per_node ||
               out.memory_per_cpu || out.tmpdir);
  EXPECT_EQ(out.tasks_of_step(), 0u);
  EXPECT_EQ(advice_when_alone(out), "");
}

TEST(environment, reads_a_task_of_a_step) {
  const environment out = read({{"SLURM_JOB_ID", "123"},
                                {"SLURM_STEP_ID", "2"},
                                {"SLURM_STEP_NUM_TASKS", "8"},
                                {"SLURM_NTASKS", "8"},
                                {"SLURM_PROCID", "3"},
                                {"SLURM_LOCALID", "1"},
                                {"SLURM_CPUS_PER_TASK", "4"},
                                {"SLURM_CPUS_ON_NODE", "16"},
                                {"SLURM_NNODES", "2"},
                                {"SLURMD_NODENAME", "n2"},
                                {"SLURM_MEM_PER_NODE", "2048"},
                                {"SLURM_TMPDIR", "/local/123"}});
  EXPECT_EQ(out.tmpdir, "/local/123");
  EXPECT_EQ(out.job_id, "123");
  EXPECT_EQ(out.step_id, 2u);
  EXPECT_EQ(out.step_tasks, 8u);
  EXPECT_EQ(out.ntasks, 8u);
  EXPECT_EQ(out.procid, 3u);
  EXPECT_EQ(out.localid, 1u);
  EXPECT_EQ(out.cpus_per_task, 4u);
  EXPECT_EQ(out.cpus_on_node, 16u);
  EXPECT_EQ(out.nodes, 2u);
  EXPECT_EQ(out.node_name, "n2");
  EXPECT_EQ(out.memory_per_node, std::size_t{2} << 30);
  EXPECT_FALSE(out.memory_per_cpu);
  EXPECT_EQ(out.tasks_of_step(), 8u);
}

TEST(step, of_several_tasks_makes_a_world_of_one_wrong) {
  const environment out = read({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "3"}, {"SLURM_STEP_ID", "0"}});
  EXPECT_EQ(out.tasks_of_step(), 4u);
  const std::string advice = advice_when_alone(out);
  for (const char* part : {"4 tasks", "this is task 3", "srun --mpi=pmix"}) {
    EXPECT_NE(advice.find(part), std::string::npos) << part << " in: " << advice;
  }
}

TEST(step, of_an_older_pmi_is_told_the_cure_once) {
  std::map<std::string, std::string> variables{{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "0"}};
  EXPECT_NE(rota::slurm::advice_with_old_pmi(read(variables)).find("srun --mpi=pmix"), std::string::npos);
  variables["SLURM_PROCID"] = "1";
  EXPECT_EQ(rota::slurm::advice_with_old_pmi(read(variables)), "");
  EXPECT_EQ(rota::slurm::advice_with_old_pmi(read({{"SLURM_NTASKS", "4"}})), "");
}

TEST(step, its_own_size_beats_the_jobs) {
  const environment out =
      read({{"SLURM_NTASKS", "4"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "3"}});
  EXPECT_EQ(out.tasks_of_step(), 1u);
  EXPECT_EQ(advice_when_alone(out), "");
}

TEST(step, the_older_name_of_its_number_serves_too) {
  EXPECT_EQ(read({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}, {"SLURM_STEPID", "0"}}).tasks_of_step(), 4u);
}

TEST(step, without_a_size_is_of_one_task) {
  EXPECT_EQ(read({{"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "0"}}).tasks_of_step(), 1u);
}

TEST(step, the_shell_of_an_sbatch_script_is_none) {
  EXPECT_EQ(read({{"SLURM_JOB_ID", "1"}, {"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}}).tasks_of_step(), 0u);
  const environment batch = read({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "4294967291"}});
  EXPECT_EQ(batch.tasks_of_step(), 0u);
  EXPECT_EQ(advice_when_alone(batch), "");
}

TEST(step, the_interactive_shell_of_salloc_is_none) {
  EXPECT_EQ(read({{"SLURM_NTASKS", "4"}, {"SLURM_STEP_ID", "4294967290"}}).tasks_of_step(), 0u);
  EXPECT_EQ(read({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "4294967290"}}).tasks_of_step(), 0u);
}

TEST(environment, malformed_values_count_as_missing) {
  const environment out = read({{"SLURM_NTASKS", "4x"},
                                {"SLURM_PROCID", "-1"},
                                {"SLURM_LOCALID", ""},
                                {"SLURM_STEP_ID", "0.0"},
                                {"SLURM_STEP_NUM_TASKS", "four"},
                                {"SLURM_CPUS_PER_TASK", "99999999999"},
                                {"SLURM_MEM_PER_CPU", "99999999999999999"},
                                {"SLURM_JOB_ID", ""}});
  EXPECT_FALSE(out.step_id || out.step_tasks);
  EXPECT_FALSE(out.ntasks || out.procid || out.localid || out.cpus_per_task || out.memory_per_cpu || out.job_id);
}

TEST(environment, the_older_name_of_the_node_count_serves_too) {
  EXPECT_EQ(read({{"SLURM_JOB_NUM_NODES", "5"}}).nodes, 5u);
}

TEST(environment, reads_this_process) {
  ::setenv("SLURM_CPUS_PER_TASK", "6", 1);
  EXPECT_EQ(rota::slurm::read_environment().cpus_per_task, 6u);
  ::unsetenv("SLURM_CPUS_PER_TASK");
}

}  // namespace
