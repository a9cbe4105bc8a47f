#include "mpi/launcher.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace {

using rota::mpi::has_launcher;
using rota::mpi::slurm_step_tasks;

// Each test begins as a plain ./app outside of any job.
class launcher : public testing::Test {
 protected:
  launcher() {
    for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_FD", "PMI_SIZE", "SLURM_STEP_ID",
                             "SLURM_STEPID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}) {
      unsetenv(name);
    }
  }
  static void set(const char* name, const char* value) { setenv(name, value, 1); }
};

TEST_F(launcher, is_missing_for_a_plain_program) {
  EXPECT_FALSE(has_launcher());
  EXPECT_EQ(slurm_step_tasks(), 0u);
}

TEST_F(launcher, srun_without_pmi_is_seen_by_its_step) {
  set("SLURM_NTASKS", "4");
  set("SLURM_PROCID", "0");
  set("SLURM_STEP_ID", "0");
  EXPECT_FALSE(has_launcher());
  EXPECT_EQ(slurm_step_tasks(), 4u);
  EXPECT_NE(rota::mpi::slurm_mismatch(4).find("--mpi=pmix"), std::string::npos);
}

TEST_F(launcher, the_steps_own_size_beats_the_jobs) {
  set("SLURM_NTASKS", "4");
  set("SLURM_STEP_NUM_TASKS", "1");
  set("SLURM_PROCID", "0");
  set("SLURM_STEP_ID", "3");
  EXPECT_EQ(slurm_step_tasks(), 1u);
}

TEST_F(launcher, the_shell_of_an_sbatch_script_is_no_step) {
  set("SLURM_NTASKS", "4");
  set("SLURM_PROCID", "0");
  EXPECT_EQ(slurm_step_tasks(), 0u);
  set("SLURM_STEP_ID", "4294967291");
  EXPECT_EQ(slurm_step_tasks(), 0u);
}

TEST_F(launcher, the_interactive_shell_of_salloc_is_no_step) {
  set("SLURM_NTASKS", "4");
  set("SLURM_PROCID", "0");
  set("SLURM_STEP_ID", "4294967290");
  EXPECT_EQ(slurm_step_tasks(), 0u);
}

TEST_F(launcher, mpirun_inside_a_step_is_the_launcher) {
  set("SLURM_NTASKS", "4");
  set("SLURM_PROCID", "0");
  set("SLURM_STEP_ID", "0");
  set("OMPI_COMM_WORLD_SIZE", "1");
  EXPECT_TRUE(has_launcher());
  EXPECT_EQ(slurm_step_tasks(), 0u);
}

}  // namespace
