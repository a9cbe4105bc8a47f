// Handles, waiting and values: the compiled side of <rota/detail/core.h>.
#include <rota/detail/core.h>
#include <rota/detail/frame.h>
#include <rota/detail/wire.h>
#include <rota/error.h>

#include <algorithm>
#include <unordered_set>

#include "runtime/client/instance.h"
#include "runtime/wire/failure.h"

namespace rota::detail {
namespace {

process* the_instance = nullptr;

agent::object_state state_of(const object* o) {
  return o->state.load(std::memory_order_acquire);  // pairs with agent::set_value
}

bool settled(const object* o) { return state_of(o) != agent::object_state::pending; }

value_bytes bytes_in(const object* o) {
  value_bytes bytes;
  bytes.size = o->size;
  bytes.data = o->kind == wire::value_kind::placed ? the_instance->store().at(o->place) : o->bytes().data();
  bytes.refs = o->contains;
  bytes.ref_count = o->contained;
  return bytes;
}

// Asks for those that do not come by themselves, in bounded turns at the pump.
void want_all(process& p, std::span<object* const> objects) {
  constexpr std::size_t turn = 1024;
  std::vector<object*> ask;
  for (object* o : objects) {
    if (!o->comes_by_itself && !settled(o)) ask.push_back(o);
  }
  for (std::size_t from = 0; from < ask.size(); from += turn) {
    p.visit([&](agent::agent& a) {
      for (std::size_t i = from; i < std::min(from + turn, ask.size()); ++i) a.want(*ask[i]);
    });
  }
}

void throw_if_failed(const object* o) {
  if (state_of(o) == agent::object_state::failed) wire::throw_failure(o->bytes());
}

}  // namespace

process* instance() noexcept { return the_instance; }
void set_instance(process* p) noexcept { the_instance = p; }
process& running_instance() {
  if (!the_instance) throw config_error("there is no session: call rota::init first");
  return *the_instance;
}

std::uint64_t id_of(const object* o) noexcept { return o->id; }
void retain(object* o) noexcept { agent::add_handle(*o); }
void release(object* o) noexcept {
  if (agent::drop_handle(*o)) the_instance->dropped(*o);
}

void throw_empty_ref() { throw config_error("this rota::ref is empty: it names no value"); }
void throw_config(const char* what) { throw config_error(what); }

std::size_t inline_limit() noexcept { return the_instance ? the_instance->values().inline_bytes : 4096; }
place reserve_place(std::size_t bytes) { return running_instance().reserve(bytes); }
void give_back_place(std::uint64_t offset) noexcept { the_instance->free_place(offset); }

bool is_ready(const object* o) {
  if (settled(o)) return true;
  running_instance().visit([&](agent::agent& a) { a.want(*const_cast<object*>(o)); });
  running_instance().poll();
  return settled(o);
}

value_bytes await_value(object* o, deadline until) {
  if (!settled(o)) {
    process& p = running_instance();
    if (!o->comes_by_itself) p.visit([&](agent::agent& a) { a.want(*o); });
    if (!p.wait_until([&] { return settled(o); }, until)) throw get_timeout(p.describe_timeout(o->id));
  }
  throw_if_failed(o);
  return bytes_in(o);
}

void await_all(std::span<object* const> objects, deadline until) {
  std::size_t next = 0;
  auto done = [&] {
    while (next < objects.size() && settled(objects[next])) ++next;
    return next == objects.size();
  };
  if (done()) return;
  process& p = running_instance();
  want_all(p, objects.subspan(next));
  if (!p.wait_until(done, until)) throw get_timeout(p.describe_timeout(objects[next]->id));
}

std::vector<bool> await_some(std::span<object* const> objects, std::size_t count, deadline until) {
  if (count == 0) throw config_error("wait: count is 0, it must be at least 1");
  if (count > objects.size()) throw config_error("wait: count is above the number of refs");
  if (std::unordered_set<object*>(objects.begin(), objects.end()).size() != objects.size()) {
    throw config_error("wait: a ref is given twice");
  }
  std::vector<bool> ready(objects.size());
  std::vector<std::size_t> open(objects.size());
  for (std::size_t i = 0; i < open.size(); ++i) open[i] = i;
  std::size_t found = 0;
  auto look = [&] {
    std::erase_if(open, [&](std::size_t i) {
      if (!settled(objects[i])) return false;
      ready[i] = true;
      ++found;
      return true;
    });
    return found >= count;
  };
  process& p = running_instance();
  if (look()) return ready;
  want_all(p, objects);
  p.wait_until(look, until);
  return ready;
}

value_bytes call_frame::bytes_of(const object* o) { return bytes_in(o); }

// -- writer and reader ------------------------------------------------------------------------------------------------

writer::~writer() { drop_refs(); }

void writer::drop_refs() noexcept {
  for (object* o : refs_) release(o);
  refs_.clear();
}

void writer::add_ref(object* o) {
  if (fixed_) return;  // the second pass over a large value meets the same refs
  retain(o);
  refs_.push_back(o);
}

std::span<object* const> writer::refs() const noexcept { return refs_; }

void writer::overflow(const void* from, std::size_t n) {
  if (fixed_) throw error("a value was serialized twice with different sizes: its serialize functions must be stable");
  std::size_t used = static_cast<std::size_t>(at_ - begin_);
  if (counting_) {
    counted_ += n;
    return;
  }
  if (used + n > limit_) {
    counting_ = true;
    counted_ = used + n;
    at_ = end_ = begin_;
    return;
  }
  std::size_t room = std::max<std::size_t>(static_cast<std::size_t>(end_ - begin_) * 2, used + n);
  auto larger = std::make_unique_for_overwrite<std::byte[]>(room);
  std::memcpy(larger.get(), begin_, used);
  std::memcpy(larger.get() + used, from, n);
  heap_ = std::move(larger);
  begin_ = heap_.get();
  at_ = begin_ + used + n;
  end_ = begin_ + room;
}

void writer::write_into(std::byte* memory) noexcept {
  std::size_t size = counted_;
  begin_ = at_ = memory;
  end_ = memory + size;
  counted_ = 0;
  counting_ = false;
  fixed_ = true;
}

void writer::clear() noexcept {
  drop_refs();
  at_ = begin_;
  counted_ = 0;
  counting_ = false;
}

handle reader::next_ref() {
  if (ref_count_ == 0) throw_short();
  object* o = *refs_++;
  --ref_count_;
  retain(o);
  return handle::adopt(o);
}

void reader::throw_short() { throw error("a value ended before it was read whole: save and load do not match"); }

}  // namespace rota::detail
