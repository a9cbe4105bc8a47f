#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "runtime/wire/actor_messages.h"
#include "runtime/wire/failure.h"
#include "runtime/wire/messages.h"
#include "runtime/wire/outbox.h"

// What the tests of the two state machines share: letters that they write, and those to feed them with.
namespace machines {

using rota::bytes_view;
using rota::object_id;
using rota::rank_t;
using rota::base::buffer;
namespace wire = rota::wire;

struct letter {
  rank_t to;
  buffer record;

  wire::message type() const { return wire::type_of(record.view()); }
  template <class Head>
  Head head() const {
    return rota::base::cursor(record.view()).get<Head>();
  }
};

// An outbox that keeps what is sent until it is looked at.
class post : public wire::outbox {
 public:
  void send(rank_t to, bytes_view record) override {
    letters_.push_back({to, {}});
    letters_.back().record.append(record);
  }

  std::vector<letter> take() { return std::exchange(letters_, {}); }

  // Those of one type; the others are forgotten.
  std::vector<letter> take(wire::message type) {
    std::vector<letter> all = take();
    std::erase_if(all, [&](const letter& l) { return l.type() != type; });
    return all;
  }

 private:
  std::vector<letter> letters_;
};

inline std::string types_of(const std::vector<letter>& letters) {
  std::string text;
  for (const letter& l : letters) text += std::to_string(int(l.type())) + " ";
  return text;
}

inline wire::value_view number(const int& value) {
  wire::value_view v;
  v.kind = wire::value_kind::inlined;
  v.size = sizeof(value);
  v.data = {reinterpret_cast<const std::byte*>(&value), sizeof(value)};
  return v;
}

inline buffer spawned(object_id id, std::vector<object_id> deps = {}, wire::spawned_head head = {}) {
  buffer record;
  head.id = id;
  head.deps = static_cast<std::uint32_t>(deps.size());
  record.put(head);
  record.append(deps.data(), deps.size() * sizeof(object_id));
  return record;
}

inline buffer done(object_id id, const wire::value_view& value, std::vector<wire::serve> served = {},
                   std::uint16_t attempt = 0) {
  buffer record;
  wire::done_head head;
  head.id = id;
  head.attempt = attempt;
  head.served = static_cast<std::uint32_t>(served.size());
  record.put(head);
  record.append(served.data(), served.size() * sizeof(wire::serve));
  wire::put_value(record, value);
  return record;
}

inline buffer counts(std::vector<object_id> plus, std::vector<object_id> minus) {
  buffer record;
  wire::count_head head;
  head.plus = static_cast<std::uint32_t>(plus.size());
  head.minus = static_cast<std::uint32_t>(minus.size());
  record.put(head);
  record.append(plus.data(), plus.size() * sizeof(object_id));
  record.append(minus.data(), minus.size() * sizeof(object_id));
  return record;
}

inline buffer about(wire::message type, object_id id, std::uint8_t flags = 0) {
  buffer record;
  wire::id_head head;
  head.type = type;
  head.flags = flags;
  head.id = id;
  record.put(head);
  return record;
}

inline buffer sync_without_items(rank_t lost, std::uint32_t view) {
  buffer record;
  wire::lost_head head;
  head.type = wire::message::sync;
  head.rank = lost;
  head.view = view;
  record.put(head);
  return record;
}

inline buffer value_of(object_id id, const wire::value_view& value, std::uint32_t count) {
  buffer record;
  wire::value_head head;
  head.object = id;
  head.count = count;
  record.put(head);
  wire::put_value(record, value);
  return record;
}

// An ASSIGN; each dependency with its value, or awaited.
struct dependency {
  object_id id;
  wire::value_view value;
};
inline dependency awaited(object_id id, bool here = false) {
  wire::value_view v;
  v.kind = here ? wire::value_kind::awaited_here : wire::value_kind::awaited;
  return {id, v};
}

inline buffer assign(object_id id, std::vector<dependency> deps = {}, std::vector<wire::serve> serves = {},
                     std::uint8_t flags = 0) {
  buffer record;
  wire::assign_head head;
  head.id = id;
  head.flags = flags;
  head.deps = static_cast<std::uint32_t>(deps.size());
  head.serves = static_cast<std::uint32_t>(serves.size());
  if (flags & wire::spawn_actor) head.needs = wire::no_cpu;
  record.put(head);
  for (const dependency& d : deps) {
    record.put(d.id);
    wire::put_value(record, d.value);
  }
  record.append(serves.data(), serves.size() * sizeof(wire::serve));
  return record;
}

// The value that a letter carries at its end, after `skip` bytes.
inline wire::value_view carried(const letter& l, std::size_t skip) {
  rota::base::cursor from(l.record.view());
  from.take(skip);
  return wire::get_value(from);
}

inline wire::failure_kind failure_in(const wire::value_view& v) { return wire::decode_failure(v.data).kind; }

}  // namespace machines
