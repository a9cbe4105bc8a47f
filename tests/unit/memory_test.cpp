#include "runtime/base/memory.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "runtime/client/settings.h"
#include "slurm/environment.h"

namespace {

using rota::base::memory_bounds;
using rota::detail::chosen_store;

constexpr std::size_t mib = std::size_t{1} << 20, gib = std::size_t{1} << 30;

memory_bounds read(const std::map<std::string, std::string>& files) {
  return rota::base::read_memory_bounds(96 * gib, [&](const std::string& path) -> std::optional<std::string> {
    const auto found = files.find(path);
    if (found == files.end()) return std::nullopt;
    return found->second;
  });
}

TEST(memory, without_bounds_it_is_the_machine) {
  const memory_bounds all = read({});
  EXPECT_EQ(all.limit().bytes, 96 * gib);
  EXPECT_EQ(all.usable().bytes, 96 * gib);
  EXPECT_FALSE(all.available || all.group || all.group_left || all.job);
}

TEST(memory, what_is_available_bounds_what_is_usable) {
  const memory_bounds all =
      read({{"/proc/meminfo", "MemTotal:       100000 kB\nMemAvailable:     2048 kB\nCached: 5 kB\n"}});
  EXPECT_EQ(all.usable().bytes, 2 * mib);
  EXPECT_EQ(all.limit().bytes, 96 * gib);
}

TEST(memory, a_group_of_version_2_and_those_around_it) {
  std::map<std::string, std::string> files{
      {"/proc/self/cgroup", "0::/job/step\n"},
      {"/sys/fs/cgroup/job/step/memory.max", "max\n"},
      {"/sys/fs/cgroup/job/memory.max", "1073741824\n"},
      {"/sys/fs/cgroup/job/memory.current", "629145600\n"},
      {"/sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_file 104857600\nfile 7\n"}};
  EXPECT_EQ(read(files).limit().bytes, gib);
  EXPECT_EQ(read(files).usable().bytes, gib - 500 * mib);  // 600 MiB in use, of which 100 MiB of files can go
  files["/sys/fs/cgroup/job/step/memory.max"] = "536870912";
  EXPECT_EQ(read(files).limit().bytes, 512 * mib);
  EXPECT_EQ(read(files).usable().bytes, 512 * mib);
  files["/sys/fs/cgroup/job/memory.current"] = "99999999999";  // above the limit
  EXPECT_EQ(read(files).usable().bytes, 0u);
}

TEST(memory, a_container_sees_the_root_of_its_groups) {
  EXPECT_EQ(read({{"/proc/self/cgroup", "0::/\n"}, {"/sys/fs/cgroup/memory.max", "2097152\n"}}).usable().bytes,
            2 * mib);
  EXPECT_EQ(read({{"/proc/self/cgroup", "0::/../../of/the/host\n"}, {"/sys/fs/cgroup/memory.max", "2097152\n"}})
                .usable()
                .bytes,
            2 * mib);
}

TEST(memory, a_group_of_version_1) {
  const std::string lines = "12:cpu,cpuacct:/other\n9:memory:/slurm/uid_0/job_7\n1:name=systemd:/x\n0::/x\n";
  const std::string job = "/sys/fs/cgroup/memory/slurm/uid_0/job_7";
  const memory_bounds all = read({{"/proc/self/cgroup", lines},
                                  {job + "/memory.limit_in_bytes", "4294967296\n"},
                                  {job + "/memory.usage_in_bytes", "1073741824\n"},
                                  {job + "/memory.stat", "inactive_file 5\ntotal_inactive_file 1073741824\n"},
                                  {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"}});
  EXPECT_EQ(all.limit().bytes, 4 * gib);
  EXPECT_EQ(all.usable().bytes, 4 * gib);
}

TEST(memory, a_group_is_slowed_down_above_memory_high) {
  std::map<std::string, std::string> files{{"/proc/self/cgroup", "0::/job\n"},
                                           {"/sys/fs/cgroup/job/memory.max", "max\n"},
                                           {"/sys/fs/cgroup/job/memory.high", "2097152\n"}};
  EXPECT_EQ(read(files).limit().bytes, 2 * mib);
  files["/sys/fs/cgroup/job/memory.max"] = "1048576\n";
  EXPECT_EQ(read(files).limit().bytes, mib);
}

TEST(memory, bounds_say_what_they_are) {
  memory_bounds bounds;
  bounds.machine = 8 * gib;
  EXPECT_EQ(bounds.limit().of, "the machine's memory");
  bounds.available = 7 * gib;
  EXPECT_EQ(bounds.usable().of, "the memory that the machine has available");
  bounds.group = 6 * gib;
  bounds.group_left = 5 * gib;
  EXPECT_EQ(bounds.limit().of, "the control group's memory");
  EXPECT_EQ(bounds.usable().of, "the memory that the control group has left");
  bounds.job = 4 * gib;
  EXPECT_EQ(bounds.limit().of, "the memory that Slurm gave the job");
  EXPECT_EQ(bounds.usable().of, "the memory that Slurm gave the job");
}

TEST(memory, of_this_process_is_something) {
  const memory_bounds all = rota::base::read_memory_bounds();
  EXPECT_GT(all.limit().bytes, 0u);
  EXPECT_LE(all.usable().bytes, all.limit().bytes);
  EXPECT_LE(all.limit().bytes, all.machine);
}

TEST(memory, of_a_job_by_node_or_by_cpu) {
  rota::slurm::environment job;
  EXPECT_FALSE(job.memory_on_node());
  job.memory_per_cpu = 2 * gib;
  EXPECT_FALSE(job.memory_on_node());
  job.cpus_on_node = 4;
  EXPECT_EQ(job.memory_on_node(), 8 * gib);
  job.memory_per_node = 6 * gib;
  EXPECT_EQ(job.memory_on_node(), 6 * gib);
  job.memory_per_node = 0;  // --mem=0: all that the node has
  job.memory_per_cpu.reset();
  EXPECT_FALSE(job.memory_on_node());
}

TEST(store, is_a_third_of_the_machine_and_half_of_what_is_usable) {
  memory_bounds bounds;
  bounds.machine = 96 * gib;
  EXPECT_EQ(chosen_store(bounds, std::nullopt).bytes, 32 * gib);
  bounds.available = 20 * gib;
  EXPECT_EQ(chosen_store(bounds, std::nullopt).bytes, 10 * gib);
  bounds.group = 16 * gib;
  bounds.group_left = 15 * gib;
  EXPECT_EQ(chosen_store(bounds, std::nullopt).bytes, 15 * gib / 2);
  bounds.job = 4 * gib;
  EXPECT_EQ(chosen_store(bounds, std::nullopt).bytes, 2 * gib);
  EXPECT_EQ(chosen_store(bounds, std::nullopt).from, "half of the memory that Slurm gave the job");
  EXPECT_EQ(chosen_store(bounds, std::size_t{gib}).from, "half of what /dev/shm has free");
  EXPECT_EQ(chosen_store(bounds, std::size_t{3} * gib).bytes, 3 * gib / 2);  // half of what /dev/shm has free
  EXPECT_EQ(chosen_store(bounds, std::size_t{0}).bytes, 8 * mib);
}

}  // namespace
