#pragma once

#include <cstdint>
#include <string>

namespace rota::detail {

// Which type an exception had, so that it can be thrown again in another process. Numbers travel in messages: append
// only, and before `count`.
enum class thrown_kind : std::uint8_t {
  other,  // a user's type, also one derived from a standard exception, or no class at all
  exception,
  runtime_error,
  logic_error,
  invalid_argument,
  domain_error,
  length_error,
  out_of_range,
  range_error,
  overflow_error,
  underflow_error,
  bad_alloc,
  bad_array_new_length,
  bad_cast,
  bad_any_cast,
  bad_typeid,
  bad_exception,
  bad_function_call,
  bad_optional_access,
  bad_variant_access,
  bad_weak_ptr,
  system_error,
  filesystem_error,
  ios_failure,
  future_error,
  regex_error,
  // rota's own
  rota_error,
  task_error,
  task_cancelled,
  task_timeout,
  get_timeout,
  actor_died,
  actor_unavailable,
  rank_lost,
  object_lost,
  out_of_memory,
  infeasible,
  would_block,
  config_error,
  join_refused,
  count
};

// True for the types of namespace std: those that task_error::rethrow() throws again.
bool is_standard(thrown_kind kind) noexcept;

struct thrown {
  thrown_kind kind = thrown_kind::other;
  std::string type_name;  // as in the source: "std::out_of_range", "int"
  std::string message;    // what(), the text of a string or number, else "(no message)"
};

// REQUIRES: called inside a catch handler. Works for whatever was thrown. The unwinding of a cancelled thread
// (abi::__forced_unwind) passes through, since it must not be stopped.
thrown describe_current_exception();

// Throws the type that `kind` names with what() == message. Codes, paths and other members do not travel: a
// system_error has an empty code(). `other`, `task_error` and unknown numbers become rota::error.
[[noreturn]] void rethrow_as(thrown_kind kind, const std::string& message);

}  // namespace rota::detail
