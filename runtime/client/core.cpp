// Handles, waiting and values: the compiled side of <rota/detail/core.h>.
#include <fmt/format.h>
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
// Settled, and the bytes are within reach.
bool here(const object* o) { return state_of(o) > agent::object_state::elsewhere; }

[[noreturn]] void throw_timeout(process& p, const object* o);

value_bytes bytes_in(const object* o, deadline until) {
  value_bytes bytes;
  bytes.size = o->size;
  if (o->kind != wire::value_kind::placed) {
    bytes.data = o->bytes().data();
  } else {
    const auto pinned = the_instance->pin(o->owner, o->place, until);
    if (!pinned) throw_timeout(*the_instance, o);
    bytes.data = pinned->data;
    bytes.pin = stored_pin(pinned->slot);
  }
  bytes.refs = o->contains;
  bytes.ref_count = o->contained;
  return bytes;
}

// Asks for what does not come by itself (the agent knows), in bounded turns at the pump: for the values, or only for
// word of them.
enum class need { bytes, word };
void want_all(process& p, std::span<object* const> objects, need what) {
  constexpr std::size_t turn = 1024;
  std::vector<object*> ask;
  for (object* o : objects) {
    if (!(what == need::bytes ? here(o) : settled(o))) ask.push_back(o);
  }
  for (std::size_t from = 0; from < ask.size(); from += turn) {
    p.visit([&](agent::agent& a) {
      for (std::size_t i = from; i < std::min(from + turn, ask.size()); ++i) {
        what == need::bytes ? a.want(*ask[i]) : a.ask_for(*ask[i]);
      }
    });
  }
}

void refuse_duplicates(std::span<object* const> objects, const char* call) {
  if (std::unordered_set<object*>(objects.begin(), objects.end()).size() == objects.size()) return;
  throw config_error(fmt::format("{}: a ref is given twice", call));
}

// Throws config_error once the session has ended: placed values went with the store then.
void require_open(process& p) {
  if (p.over()) p.visit([](agent::agent&) {});  // which says so
}

[[noreturn]] void throw_timeout(process& p, const object* o) {
  require_open(p);
  throw get_timeout(p.describe_timeout(o->id));
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
void throw_too_many(std::size_t count, std::size_t each) {
  process& p = running_instance();
  require_open(p);
  throw out_of_memory(
      fmt::format("rank {} ({}): no room for {} values of {} bytes in the node's store of {} bytes: no memory has so "
                  "many bytes; look where their number comes from",
                  p.setup().rank, p.setup().host, count, each, p.store().extents() * objectstore::extent_bytes));
}
void give_back_place(std::uint64_t cell) noexcept { the_instance->free_place(cell); }
void stored_pin::unpin(std::uint32_t slot) noexcept { the_instance->unpin(slot); }

bool is_ready(const object* o) {
  if (settled(o)) return true;
  running_instance().visit([&](agent::agent& a) { a.ask_for(*const_cast<object*>(o)); });
  running_instance().poll();
  return settled(o);
}

value_bytes await_value(object* o, deadline until) {
  if (!here(o)) {
    struct {
      process& p;
      object* o;
      bool asked;
      bool done() {
        if (here(o)) return true;
        if (!std::exchange(asked, true)) p.want(*o);
        return false;
      }
    } wait{running_instance(), o, false};
    if (!wait.p.wait_until([&wait] { return wait.done(); }, until)) throw_timeout(wait.p, o);
  }
  throw_if_failed(o);
  if (o->kind == wire::value_kind::placed) require_open(*the_instance);
  return bytes_in(o, until);
}

void await_all(std::span<object* const> objects, deadline until) {
  std::size_t next = 0;
  auto done = [&] {
    while (next < objects.size() && here(objects[next])) ++next;
    return next == objects.size();
  };
  if (done()) return;
  process& p = running_instance();
  want_all(p, objects.subspan(next), need::bytes);
  if (!p.wait_until(done, until)) throw_timeout(p, objects[next]);
}

std::vector<bool> await_some(std::span<object* const> objects, std::size_t count, deadline until) {
  if (count == 0) throw config_error("wait: count is 0, it must be at least 1");
  if (count > objects.size()) throw config_error("wait: count is above the number of refs");
  refuse_duplicates(objects, "wait");
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
  want_all(p, objects, need::word);
  p.wait_until(look, until);
  return ready;
}

completion_order::completion_order(std::vector<object*> objects)
    : objects_(std::move(objects)), behind_(objects_.size() + 1), pending_(objects_.size()) {
  refuse_duplicates(objects_, "as_completed");
  for (std::size_t i = 0; i < pending_; ++i) behind_[i] = i + 1;
}

// Looks at the first `most` of the pending ones. True if these are all.
bool completion_order::look(std::size_t most) {
  std::size_t before = 0;
  for (std::size_t at = behind_[0]; at != 0; at = behind_[before]) {
    if (most-- == 0) return false;
    if (settled(objects_[at - 1])) {
      behind_[before] = behind_[at];
      found_.push_back(at - 1);
      --pending_;
    } else {
      before = at;
    }
  }
  return true;
}

// Results come about in the order of a list of tasks, and every message is a reason to look: so the first ones are
// looked at each time, all of a long list no longer than a ninth of the time.
void completion_order::await_some_more() {
  using clock = std::chrono::steady_clock;
  constexpr std::size_t first_ones = 1024;
  constexpr int rest = 8;
  look(first_ones);
  if (!found_.empty()) return;
  process& p = running_instance();
  if (!std::exchange(asked_, true)) {
    std::vector<object*> left;
    for (std::size_t at = behind_[0]; at != 0; at = behind_[at]) left.push_back(objects_[at - 1]);
    want_all(p, left, need::word);
  }
  for (deadline limit; found_.empty();) {  // none: nothing has come since all were looked at
    bool seen_all = false;
    p.wait_until(
        [&] {
          seen_all = look(first_ones);
          if (!found_.empty()) return true;
          const auto begin = clock::now();
          if (!seen_all && begin >= next_full_look_) {
            seen_all = look(objects_.size());
            const auto end = clock::now();
            next_full_look_ = end + rest * (end - begin);
          }
          return !found_.empty() || seen_all == limit.has_value();  // the limit is to change
        },
        limit);
    if (found_.empty()) require_open(p);
    limit = seen_all ? deadline() : next_full_look_;
  }
}

std::size_t completion_order::next() {
  if (given_ == found_.size()) {
    found_.clear();
    given_ = 0;
    await_some_more();
  }
  return found_[given_++];
}

value_bytes call_frame::bytes_of(const object* o) { return bytes_in(o, std::nullopt); }

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
