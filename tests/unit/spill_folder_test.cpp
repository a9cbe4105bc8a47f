#include "runtime/client/spill_folder.h"

#include <gtest/gtest.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace rota::detail {
namespace {

TEST(spill_folder, is_slurms_then_the_users_then_tmp_and_one_that_is_there) {
  char name[] = "/tmp/rota_test_XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  const std::string there = name, not_there = there + "/no";
  EXPECT_EQ(choose_spill_folder(there, "/"), there);
  EXPECT_EQ(choose_spill_folder(not_there, name), there);
  EXPECT_EQ(choose_spill_folder(std::nullopt, name), there);
  struct statfs tmp {};
  ASSERT_EQ(statfs("/tmp", &tmp), 0);
  const std::string last = tmp.f_type == TMPFS_MAGIC ? "/var/tmp" : "/tmp";
  EXPECT_EQ(choose_spill_folder(not_there, not_there.c_str()), last);
  EXPECT_EQ(choose_spill_folder(std::nullopt, nullptr), last);
  rmdir(name);
}

}  // namespace
}  // namespace rota::detail
