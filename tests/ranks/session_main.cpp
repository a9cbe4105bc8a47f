// Main of the rank tests of the runtime: rank 0 runs the tests inside a session, the other ranks serve in rota::init.
// After the tests it asks the session whether any object or reference outlived them.
#include <gtest/gtest.h>
#include <rota/detail/session_state.h>
#include <rota/rota.h>

#include <cstdio>
#include <string>

namespace {

class nothing_leaks : public testing::Environment {
 private:
  // A failure in here fails the run, as that of a test would.
  void TearDown() override {
    const std::string leaked = rota::detail::leak_report();
    EXPECT_TRUE(leaked.empty()) << "the session still holds:\n" << leaked;
  }
};

}  // namespace

int main(int argc, char** argv) {
  auto session = rota::init(argc, argv);
  testing::InitGoogleTest(&argc, argv);
  testing::AddGlobalTestEnvironment(new nothing_leaks);  // gtest deletes it
  const int failed = RUN_ALL_TESTS();
  if (testing::UnitTest::GetInstance()->test_to_run_count() == 0) {
    std::fputs("no test was run\n", stderr);
    return 1;
  }
  return failed;
}
