#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

// The seam between the typed shell in these headers and the compiled library. Not for programs.
namespace rota::agent {
struct object;
}

namespace rota::detail {

using agent::object;

std::uint64_t id_of(const object* o) noexcept;
void retain(object* o) noexcept;
void release(object* o) noexcept;

// Counted pointer to what this rank knows of an object.
class handle {
 public:
  handle() noexcept = default;
  // Takes over a count that the caller has.
  static handle adopt(object* o) noexcept {
    handle h;
    h.object_ = o;
    return h;
  }
  handle(const handle& other) noexcept : object_(other.object_) {
    if (object_) retain(object_);
  }
  handle(handle&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  handle& operator=(handle other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~handle() {
    if (object_) release(object_);
  }

  object* get() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  object* object_ = nullptr;
};

// Keeps the bytes of a stored value where they are. Move-only.
class stored_pin {
 public:
  stored_pin() noexcept = default;
  explicit stored_pin(std::uint32_t slot) noexcept : slot_(slot) {}
  stored_pin(stored_pin&& other) noexcept : slot_(std::exchange(other.slot_, none)) {}
  stored_pin& operator=(stored_pin other) noexcept {
    std::swap(slot_, other.slot_);
    return *this;
  }
  ~stored_pin() {
    if (slot_ != none) unpin(slot_);
  }

 private:
  static constexpr std::uint32_t none = 0xffff'ffff;
  static void unpin(std::uint32_t slot) noexcept;

  std::uint32_t slot_ = none;
};

// The serialized bytes of a value, and the objects whose refs lie inside, in the order of writing. Valid while the
// object is held, and this.
struct value_bytes {
  const std::byte* data = nullptr;
  std::size_t size = 0;
  object* const* refs = nullptr;
  std::size_t ref_count = 0;
  stored_pin pin{};
};

using deadline = std::optional<std::chrono::steady_clock::time_point>;

// The moment that is `limit` from now: now where it is negative, none where it is beyond what the clock can say.
template <class Rep, class Period>
deadline deadline_in(std::chrono::duration<Rep, Period> limit) {
  using clock = std::chrono::steady_clock;
  const auto now = clock::now();
  const std::chrono::duration<double> wanted = limit;  // coarse, and without overflow
  const std::chrono::duration<double> longest = clock::time_point::max() - now - std::chrono::hours(1);
  if (!(wanted.count() > 0)) return now;
  if (wanted >= longest) return std::nullopt;
  return now + std::chrono::ceil<clock::duration>(limit);
}

bool is_ready(const object* o);
// Waits, driving the runtime, until the value is there. Throws the object's failure, get_timeout at the deadline.
value_bytes await_value(object* o, deadline until);
void await_all(std::span<object* const> objects, deadline until);
// Waits until `count` of them are ready; at the deadline with fewer. True at [i] where objects[i] is ready.
std::vector<bool> await_some(std::span<object* const> objects, std::size_t count, deadline until);

// Hands out objects as they become ready (failed ones are), each once; those found together in the order given. One
// thread at a time. REQUIRES: an object is held until it was handed out.
class completion_order {
 public:
  // Throws config_error where one is given twice.
  explicit completion_order(std::vector<object*> objects);

  bool empty() const noexcept { return given_ == found_.size() && pending_ == 0; }
  // Waits; the position of the next. REQUIRES: !empty().
  std::size_t next();

 private:
  bool look(std::size_t most);
  void await_some_more();

  std::vector<object*> objects_;
  // The list of those that are pending, each as its position + 1: behind_[0] is the first, behind_[i] the one after i;
  // 0 ends it.
  std::vector<std::size_t> behind_;
  std::size_t pending_;
  std::vector<std::size_t> found_;  // positions
  std::size_t given_ = 0;           // of found_
  bool asked_ = false;
  std::chrono::steady_clock::time_point next_full_look_{};
};

[[noreturn]] void throw_empty_ref();
[[noreturn]] void throw_config(const char* what);

std::size_t inline_limit() noexcept;
// Room in the node's store. Throws out_of_memory. The place is given to put_placed, to a result, or back.
struct place {
  std::byte* data = nullptr;
  std::uint64_t cell = 0;  // by which the value is found, wherever its bytes are moved
};
place reserve_place(std::size_t bytes);
[[noreturn]] void throw_too_many(std::size_t count, std::size_t each);  // out_of_memory; each in bytes
void give_back_place(std::uint64_t cell) noexcept;

}  // namespace rota::detail
