#include "runtime/base/control_groups.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/base/memory.h"

namespace {

namespace fs = std::filesystem;
using rota::base::cpu_quota;
using rota::base::files_under;

// A folder with /proc and /sys of a machine; it goes with the test.
class control_groups : public testing::Test {
 protected:
  control_groups() : root(fs::temp_directory_path() / ("rota-groups-" + std::to_string(getpid()))) {
    fs::create_directories(root);
  }
  ~control_groups() override { fs::remove_all(root); }

  void put(const std::string& path, const std::string& text) {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  }
  std::optional<double> quota() { return cpu_quota(files_under(root.string())); }

  fs::path root;
};

TEST_F(control_groups, none_bounds_nothing) {
  EXPECT_FALSE(quota());
  put("proc/self/cgroup", "0::/\n");
  EXPECT_FALSE(quota());
  put("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_FALSE(quota());
}

TEST_F(control_groups, of_version_2_the_tightest_counts) {
  put("proc/self/cgroup", "0::/job/step/task\n");
  put("sys/fs/cgroup/job/cpu.max", "150000 100000\n");
  put("sys/fs/cgroup/job/step/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), 1.5);
  put("sys/fs/cgroup/job/step/task/cpu.max", "400000 100000\n");
  EXPECT_EQ(quota(), 1.5);
  put("sys/fs/cgroup/job/step/cpu.max", "25000 100000\n");
  EXPECT_EQ(quota(), 0.25);
}

TEST_F(control_groups, of_version_1_the_tightest_counts) {
  put("proc/self/cgroup", "7:memory:/elsewhere\n3:cpu,cpuacct:/job/step\n0::/x\n");
  put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  put("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "300000\n");
  put("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 3);
  put("sys/fs/cgroup/cpu/job/step/cpu.cfs_quota_us", "50000\n");
  EXPECT_EQ(quota(), 3);  // half of a pair is none
  put("sys/fs/cgroup/cpu/job/step/cpu.cfs_period_us", "50000\n");
  EXPECT_EQ(quota(), 1);
}

TEST_F(control_groups, a_container_sees_the_root_of_its_groups) {
  put("proc/self/cgroup", "3:cpu:/docker/0123\n");
  put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
  put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 2);
}

TEST_F(control_groups, files_that_make_no_sense_bound_nothing) {
  put("proc/self/cgroup", "nonsense\n0:/\n::\n0::/job\n");
  for (const char* text : {"", "0 100000", "100000", "100000 0", "-5 100000", "lots of it"}) {
    put("sys/fs/cgroup/job/cpu.max", text);
    EXPECT_FALSE(quota()) << text;
  }
}

TEST_F(control_groups, memory_is_read_from_the_same_tree) {
  put("proc/self/cgroup", "0::/job/step\n");
  put("sys/fs/cgroup/job/memory.max", "1048576\n");
  put("sys/fs/cgroup/job/memory.current", "524288\n");
  const auto bounds = rota::base::read_memory_bounds(std::size_t{1} << 30, files_under(root.string()));
  EXPECT_EQ(bounds.limit().bytes, std::size_t{1} << 20);
  EXPECT_EQ(bounds.usable().bytes, std::size_t{1} << 19);
}

}  // namespace
