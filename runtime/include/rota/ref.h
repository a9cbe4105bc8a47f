#pragma once

#include <rota/serialize.h>

#include <chrono>
#include <compare>
#include <string>
#include <type_traits>

namespace rota {

// A counted handle to an immutable value of the object store, which may not exist yet. Copyable; lives in any thread,
// in arguments, results, containers and actors; the value stays for as long as any ref to it lives anywhere.
template <class T>
class ref {
 public:
  using value_type = T;

  // Names nothing; get() throws config_error.
  ref() = default;

  // Waits for the value, helping the runtime meanwhile. Throws what the task threw (task_error), or why there will be
  // no value; config_error for a value that is not here once the session has ended. Any thread.
  T get() const { return fetch(std::nullopt); }
  // The same with a limit: get_timeout when it passes. 0 and less look once; what is beyond the clock is no limit.
  template <class Rep, class Period>
  T get(std::chrono::duration<Rep, Period> limit) const {
    return fetch(detail::deadline_in(limit));
  }

  // True once get() would not wait (a failure counts). Asks for the value if nobody has.
  bool ready() const {
    if (!handle_) detail::throw_empty_ref();
    return detail::is_ready(handle_.get());
  }

  // Unique in the session; 0 for an empty ref.
  std::uint64_t id() const noexcept { return handle_ ? detail::id_of(handle_.get()) : 0; }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }
  friend bool operator==(const ref& a, const ref& b) noexcept { return a.handle_.get() == b.handle_.get(); }

  // For the library.
  explicit ref(detail::handle h) noexcept : handle_(std::move(h)) {}
  const detail::handle& handle() const noexcept { return handle_; }

 private:
  T fetch(detail::deadline until) const {
    if (!handle_) detail::throw_empty_ref();
    [[maybe_unused]] detail::value_bytes bytes = detail::await_value(handle_.get(), until);
    if constexpr (!std::is_void_v<T>) return detail::decode_value<T>(handle_, std::move(bytes));
  }

  detail::handle handle_;
};

// Refs inside values: the bytes say only whether there is one; which travels beside them.
template <class T>
void CEREAL_SAVE_FUNCTION_NAME(detail::output_archive& to, const ref<T>& value) {
  to(static_cast<bool>(value));
  if (value) to.bytes().add_ref(value.handle().get());
}
template <class T>
void CEREAL_LOAD_FUNCTION_NAME(detail::input_archive& from, ref<T>& value) {
  bool filled = false;
  from(filled);
  value = filled ? ref<T>(from.bytes().next_ref()) : ref<T>();
}

}  // namespace rota
