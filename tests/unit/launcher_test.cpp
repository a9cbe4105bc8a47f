#include "mpi/launcher.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace {

using rota::mpi::has_launcher;
using rota::mpi::prepare_singleton;
using rota::mpi::under_mpirun;

constexpr const char* variables[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_FD", "PMI_SIZE"};
constexpr const char* isolated = "OMPI_MCA_ess_singleton_isolated";

// Each test begins as a plain ./app.
class launcher : public testing::Test {
 protected:
  launcher() {
    for (const char* name : variables) unsetenv(name);
    unsetenv(isolated);
  }
};

TEST_F(launcher, is_missing_for_a_plain_program) {
  EXPECT_FALSE(has_launcher());
  EXPECT_FALSE(under_mpirun());
}

TEST_F(launcher, is_seen_by_what_each_sets) {
  for (const char* name : variables) {
    setenv(name, "0", 1);
    EXPECT_TRUE(has_launcher()) << name;
    unsetenv(name);
    EXPECT_FALSE(has_launcher()) << name;
  }
}

TEST_F(launcher, srun_with_pmi_is_no_mpirun) {
  for (const char* name : {"PMIX_RANK", "PMI_RANK", "PMI_FD", "PMI_SIZE"}) setenv(name, "0", 1);
  EXPECT_FALSE(under_mpirun());
  setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
  EXPECT_TRUE(under_mpirun());
}

TEST_F(launcher, an_old_pmi_is_known_by_what_it_lacks) {
  EXPECT_FALSE(rota::mpi::under_old_pmi());
  setenv("PMI_RANK", "0", 1);
  EXPECT_TRUE(rota::mpi::under_old_pmi());
  setenv("PMIX_RANK", "0", 1);
  EXPECT_FALSE(rota::mpi::under_old_pmi());
}

TEST_F(launcher, a_slurm_step_alone_is_none) {
  setenv("SLURM_NTASKS", "4", 1);
  setenv("SLURM_PROCID", "0", 1);
  setenv("SLURM_STEP_ID", "0", 1);
  EXPECT_FALSE(has_launcher());
  EXPECT_FALSE(under_mpirun());
}

TEST_F(launcher, a_singleton_is_isolated_unless_the_user_said_otherwise) {
  prepare_singleton();
  EXPECT_EQ(std::string(getenv(isolated)), "1");
  setenv(isolated, "0", 1);
  prepare_singleton();
  EXPECT_EQ(std::string(getenv(isolated)), "0");
}

}  // namespace
