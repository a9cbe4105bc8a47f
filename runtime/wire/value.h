#pragma once

#include <cstring>

#include "runtime/base/buffer.h"
#include "runtime/base/types.h"

namespace rota::wire {

// How the value of an object is present in a message or in a table.
enum class value_kind : std::uint8_t {
  none,          // not there yet
  inlined,       // the serialized bytes themselves
  placed,        // in the node's store, at an offset of its pool
  failed,        // no value: an encoded failure (wire/failure.h)
  awaited,       // in an ASSIGN: the producer or the head will send it
  awaited_here,  // in an ASSIGN: the receiving rank itself was producing it when the head wrote this
  elsewhere,     // in a VALUE: in the store of another node, from where it comes when it is asked for
};

// A value without owning it. `contains` are the objects whose refs lie inside the value, 8 bytes an id, unaligned.
struct value_view {
  value_kind kind = value_kind::none;
  rank_t owner = no_rank;  // placed: whose heap it lies in
  std::uint64_t size = 0;  // bytes of the serialized value
  std::uint64_t place = 0;
  bytes_view data{};  // inlined, failed: `size` bytes
  bytes_view contains{};

  bool present() const {
    return kind == value_kind::inlined || kind == value_kind::placed || kind == value_kind::failed;
  }
};

inline std::size_t id_count(bytes_view ids) { return ids.size() / sizeof(object_id); }
inline object_id id_at(bytes_view ids, std::size_t i) {
  object_id id;
  std::memcpy(&id, ids.data() + i * sizeof(id), sizeof(id));
  return id;
}

inline void put_value(base::buffer& to, const value_view& v) {
  struct head {
    std::uint32_t contains;
    value_kind kind;
    std::uint8_t spare[3];
    std::uint64_t size;
  };
  to.put(head{static_cast<std::uint32_t>(id_count(v.contains)), v.kind, {}, v.size});
  if (v.kind == value_kind::placed) {
    to.put(v.place);
    to.put(v.owner);
  }
  to.append(v.contains);
  if (v.kind != value_kind::placed) to.append(v.data);
}

inline value_view get_value(base::cursor& from) {
  value_view v;
  auto contains = from.get<std::uint32_t>();
  v.kind = from.get<value_kind>();
  from.take(3);
  v.size = from.get<std::uint64_t>();
  if (v.kind == value_kind::placed) {
    v.place = from.get<std::uint64_t>();
    v.owner = from.get<rank_t>();
  }
  v.contains = from.take(contains * sizeof(object_id));
  if (v.kind == value_kind::inlined || v.kind == value_kind::failed) v.data = from.take(v.size);
  return v;
}

}  // namespace rota::wire
