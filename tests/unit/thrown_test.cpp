#include "runtime/base/thrown.h"

#include <gtest/gtest.h>
#include <rota/error.h>

#include <any>
#include <filesystem>
#include <fstream>
#include <future>
#include <new>
#include <optional>
#include <regex>
#include <stdexcept>
#include <system_error>
#include <vector>

namespace {

using rota::detail::describe_current_exception;
using rota::detail::rethrow_as;
using rota::detail::thrown;
using rota::detail::thrown_kind;

struct plain_type {};
struct derived_from_standard : std::out_of_range {
  using std::out_of_range::out_of_range;
};

template <class Function>
thrown describe(Function function) {
  try {
    function();
  } catch (...) {
    return describe_current_exception();
  }
  return {};
}

template <class Value>
thrown describe_thrown(Value value) {
  return describe([&] { throw value; });
}

template <class Exception>
std::string message_after_rethrow(thrown_kind kind, const std::string& message) {
  try {
    rethrow_as(kind, message);
  } catch (const Exception& caught) {
    return caught.what();
  } catch (...) {
    return "another type";
  }
}

TEST(thrown, names_a_standard_exception_and_its_message) {
  const thrown out = describe([] { static_cast<void>(std::vector<int>{}.at(7)); });
  EXPECT_EQ(out.kind, thrown_kind::out_of_range);
  EXPECT_EQ(out.type_name, "std::out_of_range");
  EXPECT_NE(out.message.find("vector"), std::string::npos);
}

TEST(thrown, names_what_is_no_exception) {
  EXPECT_EQ(describe_thrown(42).type_name, "int");
  EXPECT_EQ(describe_thrown(42).message, "42");
  EXPECT_EQ(describe_thrown(42).kind, thrown_kind::other);
  EXPECT_EQ(describe_thrown("literal").message, "literal");
  EXPECT_EQ(describe_thrown(std::string("text")).type_name, "std::string");
  EXPECT_EQ(describe_thrown(std::string("text")).message, "text");
  EXPECT_EQ(describe_thrown(plain_type{}).message, "(no message)");
  EXPECT_NE(describe_thrown(plain_type{}).type_name.find("plain_type"), std::string::npos);
}

TEST(thrown, keeps_a_user_type_apart_from_its_standard_base) {
  const thrown out = describe_thrown(derived_from_standard("mine"));
  EXPECT_EQ(out.kind, thrown_kind::other);
  EXPECT_EQ(out.message, "mine");
  EXPECT_NE(out.type_name.find("derived_from_standard"), std::string::npos);
}

TEST(thrown, sees_through_the_standard_librarys_own_subclasses) {
  const thrown stream = describe([] {
    std::ifstream file;
    file.exceptions(std::ios::failbit);
    file.open("/no/such/file");
  });
  EXPECT_EQ(stream.kind, thrown_kind::ios_failure);
  EXPECT_EQ(stream.type_name, "std::ios_base::failure");
}

TEST(thrown, every_kind_survives_a_second_journey) {
  for (std::uint8_t number = 1; number < static_cast<std::uint8_t>(thrown_kind::count); ++number) {
    const auto kind = static_cast<thrown_kind>(number);
    const thrown first = describe([&] { rethrow_as(kind, "what happened"); });
    EXPECT_EQ(first.message, "what happened") << int{number};
    EXPECT_EQ(first.kind, kind == thrown_kind::task_error ? thrown_kind::rota_error : kind) << first.type_name;
    EXPECT_TRUE(first.type_name.starts_with(rota::detail::is_standard(kind) ? "std::" : "rota::")) << first.type_name;
    const thrown second = describe([&] { rethrow_as(first.kind, first.message); });
    EXPECT_EQ(second.kind, first.kind);
    EXPECT_EQ(second.type_name, first.type_name);
    EXPECT_EQ(second.message, first.message);
  }
}

TEST(thrown, types_without_a_message_of_their_own_carry_the_original_one) {
  EXPECT_EQ(message_after_rethrow<std::bad_alloc>(thrown_kind::bad_alloc, "host n1 is full"), "host n1 is full");
  EXPECT_EQ(message_after_rethrow<std::system_error>(thrown_kind::system_error, "open: denied"), "open: denied");
  EXPECT_EQ(message_after_rethrow<std::bad_optional_access>(thrown_kind::bad_optional_access, "m"), "m");
  EXPECT_EQ(message_after_rethrow<std::filesystem::filesystem_error>(thrown_kind::filesystem_error, "m"), "m");
  EXPECT_EQ(message_after_rethrow<std::exception>(thrown_kind::exception, "m"), "m");
}

TEST(thrown, unknown_kinds_become_the_root_error) {
  EXPECT_EQ(message_after_rethrow<rota::error>(static_cast<thrown_kind>(200), "m"), "m");
  EXPECT_EQ(message_after_rethrow<rota::error>(thrown_kind::other, "m"), "m");
}

TEST(task_error, rethrows_the_standard_type_with_its_own_message) {
  const rota::task_error error("task f failed", "std::out_of_range", "index 7",
                               static_cast<std::uint8_t>(thrown_kind::out_of_range));
  EXPECT_EQ(error.type_name(), "std::out_of_range");
  try {
    error.rethrow();
  } catch (const std::out_of_range& caught) {
    EXPECT_STREQ(caught.what(), "index 7");
  }
}

TEST(task_error, rethrows_itself_for_types_that_are_not_standard) {
  for (const thrown_kind kind : {thrown_kind::other, thrown_kind::actor_died, static_cast<thrown_kind>(250)}) {
    const rota::task_error error("task f failed", "mine", "m", static_cast<std::uint8_t>(kind));
    EXPECT_THROW(error.rethrow(), rota::task_error);
  }
}

}  // namespace
