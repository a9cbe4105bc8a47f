#pragma once

#include <string>

#include "runtime/base/buffer.h"
#include "runtime/base/thrown.h"
#include "runtime/wire/value.h"

namespace rota::wire {

// Which public error type a failure becomes at the caller.
enum class failure_kind : std::uint8_t {
  task,
  cancelled,
  timeout,
  actor_died,
  actor_unavailable,
  rank_lost,
  object_lost,
  out_of_memory,
  infeasible,
  config,
};

// The error in place of a value, as it travels.
struct failure {
  failure_kind kind = failure_kind::task;
  std::string what;      // the whole message
  detail::thrown cause;  // task: what the function threw
};

base::buffer encode(const failure& f);
failure decode_failure(bytes_view bytes);

// A failed value over `bytes` = encode(f).
inline value_view failed_value(bytes_view bytes) {
  value_view v;
  v.kind = value_kind::failed;
  v.size = bytes.size();
  v.data = bytes;
  return v;
}

// Throws the public error type.
[[noreturn]] void throw_failure(bytes_view bytes);

}  // namespace rota::wire
