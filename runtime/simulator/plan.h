#pragma once

#include <string>
#include <vector>

#include "runtime/base/buffer.h"
#include "runtime/simulator/random.h"
#include "runtime/wire/messages.h"

namespace rota::simulator {

struct rank_shape {
  std::uint32_t slots = 0;
  std::uint32_t node = 0;
  std::int64_t custom = 0;  // units of the resource "lamp"
};

// What a program may count on.
struct shape {
  std::vector<rank_shape> ranks;
  bool wide = false;       // tasks of two CPUs occur
  bool cpu_actor = false;  // an actor that holds a CPU occurs
};

// What a register of a program holds: a ref to a value with so many refs to flat values inside (0: flat), to a value
// whose insides depend on timing, to an actor, to a value that holds an actor's handle; or nothing any more.
enum class type : std::uint8_t { flat = 0, opaque = 0x80, actor, mortal_actor, boxed_actor, boxed_mortal, gone = 0xff };
inline bool is_value(type t) { return t < type::opaque; }
inline bool is_actor(type t) { return t == type::actor || t == type::mortal_actor; }
inline bool is_boxed(type t) { return t == type::boxed_actor || t == type::boxed_mortal; }

enum job_flag : std::uint8_t {
  throws = 1,
  stores = 2,   // a call: its flat refs go into the actor
  fetches = 4,  // a call: returns refs that were stored
  places = 8,   // its result lies in the heap of its rank
  driver = 16,
  method = 32,   // a call
  prompt = 64,   // waits for nothing
  mortal = 128,  // an actor that anyone may kill
};

// What a simulated function is given besides refs: everything it does follows from it.
struct job_spec {
  std::uint64_t seed = 0;
  std::uint8_t depth = 0;  // of further tasks below it
  std::uint8_t inner = 0;  // flat refs inside its result
  std::uint8_t flags = 0;
  std::vector<type> deps, held;
};

enum class op : std::uint8_t { put, submit, create, call, get, peek, drop, kill, find, pause };

struct step {
  op what = op::pause;
  std::uint8_t reg = 0;                  // get, peek, drop, kill: which; call: the actor
  std::uint8_t opens = 0;                // get: registers that it adds
  std::vector<std::uint8_t> deps, held;  // registers; put: held lie inside the value
  job_spec job;                          // submit, create, call; put: seed and flags
  // submit, create
  std::uint8_t needs_code = wire::one_cpu;
  wire::resources needs;
  std::int32_t priority = 0;
  wire::where_kind where = wire::where_kind::anywhere;
  std::uint64_t target = 0;  // near: a register
  bool named = false;
};

// A straight line of steps over registers. First the registers of the arguments: for each dep the refs inside its
// value, then one for each held ref; each put, submit, create and call adds one, each get those inside the value.
struct plan {
  std::vector<step> steps;
  std::vector<std::uint8_t> result;  // registers of the flat refs inside the result
};

// The type of what a step makes, gone: nothing.
type made_by(const step& s);
// The types of the registers that the value of a register opens into.
std::vector<type> inside(type t);

plan make_plan(const shape& cluster, const job_spec& job);

// A spec as the argument bytes of a task, after `order` numbers of the caller.
struct call_order {
  std::uint64_t caller = 0;
  std::uint64_t number = 0;
};
void put_spec(base::buffer& to, const job_spec& job, call_order order);
job_spec get_spec(bytes_view bytes, call_order& order);

}  // namespace rota::simulator
