#pragma once

#include <rota/serialize.h>

#include <optional>

namespace rota::detail {

// One run of a task, constructor or method: its arguments and the place for its result.
class call_frame {
 public:
  call_frame(const value_bytes& bytes, std::uint64_t mask, std::span<object* const> deps)
      : reader_(bytes), mask_(mask), deps_(deps) {}

  // The next argument.
  template <class T>
  T take() {
    bool dependency = (mask_ >> taken_++) & 1;
    if (!dependency) {
      if constexpr (is_array<T>) return take_inline_array<T>();
      return decode<T>(reader_);
    }
    object* from = deps_[next_dep_++];  // is there while the task is; only an array may stay longer
    handle held;
    if constexpr (is_array<T>) {
      retain(from);
      held = handle::adopt(from);
    }
    return decode_value<T>(held, bytes_of(from));
  }

  template <class T>
  void give(T&& value) {
    result_.emplace(inline_limit());
    encode_value(*result_, std::forward<T>(value));
  }

  encoded* result() noexcept { return result_ ? &*result_ : nullptr; }

  void* instance = nullptr;  // of the actor; set by a constructor
  void (*destroy)(void*) = nullptr;

 private:
  static value_bytes bytes_of(const object* o);

  template <class T>
  T take_inline_array() {
    using element = typename T::value_type;
    std::uint64_t bytes = 0;
    reader_.read(&bytes, sizeof(bytes));
    auto copy = aligned_bytes(bytes, alignof(element));
    reader_.read(copy.get(), bytes);
    return T(reinterpret_cast<const element*>(copy.get()), bytes / sizeof(element), copy);
  }

  reader reader_;
  std::uint64_t mask_;
  std::span<object* const> deps_;
  unsigned taken_ = 0;
  std::size_t next_dep_ = 0;
  std::optional<encoded> result_;
};

}  // namespace rota::detail
