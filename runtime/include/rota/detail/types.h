#pragma once

#include <type_traits>

namespace rota {

template <class T>
class ref;
template <class T>
class array;
template <class T>
class array_builder;
template <class C>
class actor_handle;

namespace detail {

template <class T>
inline constexpr bool is_ref = false;
template <class T>
inline constexpr bool is_ref<ref<T>> = true;

template <class T>
inline constexpr bool is_array = false;
template <class T>
inline constexpr bool is_array<array<T>> = true;

// What a value of type T becomes once it is in the store: a builder becomes an array.
template <class T>
struct stored {
  using type = T;
};
template <class T>
struct stored<array_builder<T>> {
  using type = array<T>;
};
template <class T>
using stored_t = typename stored<std::decay_t<T>>::type;

template <class T>
inline constexpr bool dependent_false = false;

}  // namespace detail
}  // namespace rota
