#include "runtime/worker/functions.h"

#include <gtest/gtest.h>
#include <rota/error.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/functions_fixture.h"

static int twin(int x) { return x; }

static const rota::detail::registration* twin_lambda() {
  return &functions_test::registered<[](int x) { return x - 1; }>::entry;
}

namespace {

using functions_test::registered;
using rota::detail::function_table;
using rota::detail::registration;

int overloaded(int x) { return x; }
double overloaded(double x) { return x; }

constexpr const char* digest_flag = "--print-digest";
constexpr std::uint32_t wire_version = 1;

const function_table& table() {
  static const function_table built = function_table::build();
  return built;
}

std::vector<const registration*> functions_of_this_file() {
  return {&registered<&twin>::entry,
          twin_lambda(),
          &registered<static_cast<int (*)(int)>(&overloaded)>::entry,
          &registered<static_cast<double (*)(double)>(&overloaded)>::entry,
          &registered<[](int x) { return x + 1; }>::entry,
          &registered<[](int x) { return x + 2; }>::entry};
}

std::vector<const registration*> all_functions() {
  std::vector<const registration*> all = functions_of_this_file();
  for (const auto& more : {functions_test::functions_of_other_file(), functions_test::functions_of_shared_library()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

// What this program prints when another process runs it with the flag.
std::string digest_of_another_process() {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::execl("/proc/self/exe", "functions_test", digest_flag, nullptr);
    ::_exit(127);
  }
  ::close(ends[1]);
  std::string out;
  std::array<char, 256> block{};
  for (ssize_t got = 0; (got = ::read(ends[0], block.data(), block.size())) > 0;) {
    out.append(block.data(), static_cast<std::size_t>(got));
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status == 0 ? out : "the other process failed";
}

TEST(functions, equal_names_overloads_and_lambdas_have_ids_of_their_own) {
  static_cast<void>(table());
  std::set<std::uint32_t> ids;
  for (const registration* function : all_functions()) {
    const std::uint32_t id = rota::detail::index_of(*function);
    EXPECT_TRUE(ids.insert(id).second) << function->name;
    EXPECT_EQ(table().at(id), function->run);
    EXPECT_STREQ(table().name(id), function->name);
  }
  EXPECT_EQ(ids.size(), 12u);
  EXPECT_EQ(table().size(), ids.size());
}

TEST(functions, static_functions_of_one_name_really_have_equal_names) {
  EXPECT_STREQ(all_functions()[0]->name, functions_test::functions_of_other_file()[0]->name);
  EXPECT_STREQ(all_functions()[0]->name, functions_test::functions_of_shared_library()[0]->name);
}

TEST(functions, another_process_has_the_same_table) {
  EXPECT_EQ(table().digest(wire_version).size(), 32u);
  for (int repeat = 0; repeat < 3; ++repeat) EXPECT_EQ(digest_of_another_process(), table().digest(wire_version));
}

TEST(functions, the_digest_depends_on_the_wire_version) {
  EXPECT_NE(table().digest(wire_version), table().digest(wire_version + 1));
}

TEST(functions, an_index_beyond_the_table_is_refused) {
  EXPECT_THROW(static_cast<void>(table().at(static_cast<std::uint32_t>(table().size()))), std::out_of_range);
}

TEST(functions, what_registers_after_the_table_was_built_has_no_id) {
  static_cast<void>(table());
  static registration late(registered<&twin>::entry.run, "late");
  try {
    rota::detail::index_of(late);
    ADD_FAILURE() << "accepted";
  } catch (const rota::config_error& error) {
    EXPECT_NE(std::strstr(error.what(), "late"), nullptr);
    EXPECT_NE(std::strstr(error.what(), "libraries linked at start"), nullptr);
  }
  static_cast<void>(function_table::build());
  EXPECT_EQ(late.index, registered<&twin>::entry.index);  // equal addresses share an id
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], digest_flag) == 0) {
    std::fputs(table().digest(wire_version).c_str(), stdout);
    return 0;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
