#include "runtime/wire/failure.h"

#include <rota/error.h>

namespace rota::wire {
base::buffer encode(const failure& f) {
  base::buffer bytes;
  bytes.put(f.kind);
  bytes.put(f.cause.kind);
  base::put_text(bytes, f.what);
  base::put_text(bytes, f.cause.type_name);
  base::put_text(bytes, f.cause.message);
  return bytes;
}

failure decode_failure(bytes_view bytes) {
  base::cursor from(bytes);
  failure f;
  f.kind = from.get<failure_kind>();
  f.cause.kind = from.get<detail::thrown_kind>();
  f.what = base::get_text(from);
  f.cause.type_name = base::get_text(from);
  f.cause.message = base::get_text(from);
  return f;
}

void throw_failure(bytes_view bytes) {
  failure f = decode_failure(bytes);
  switch (f.kind) {
    case failure_kind::task:
      throw task_error(f.what, f.cause.type_name, f.cause.message, static_cast<std::uint8_t>(f.cause.kind));
    case failure_kind::cancelled:
      throw task_cancelled(f.what);
    case failure_kind::timeout:
      throw task_timeout(f.what);
    case failure_kind::actor_died:
      throw actor_died(f.what);
    case failure_kind::actor_unavailable:
      throw actor_unavailable(f.what);
    case failure_kind::rank_lost:
      throw rank_lost(f.what);
    case failure_kind::object_lost:
      throw object_lost(f.what);
    case failure_kind::out_of_memory:
      throw out_of_memory(f.what);
    case failure_kind::infeasible:
      throw infeasible(f.what);
    case failure_kind::config:
      throw config_error(f.what);
  }
  throw error(f.what);
}

}  // namespace rota::wire
