#pragma once

#include <rota/ref.h>

#include <string>

namespace rota {

// Puts a value into the store and gives a ref to it. Large values are written once, in place. Throws out_of_memory.
// Any thread.
template <class T>
ref<detail::stored_t<T>> put(T&& value) {
  static_assert(detail::check_value_type<detail::stored_t<T>>());
  detail::encoded bytes(detail::inline_limit());
  detail::encode_value(bytes, std::forward<T>(value));
  return ref<detail::stored_t<T>>(detail::put_encoded(bytes));
}

inline ref<std::string> put(const char* text) { return put(std::string(text)); }

}  // namespace rota
