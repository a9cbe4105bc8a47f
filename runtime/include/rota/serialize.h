#pragma once

#include <rota/array.h>
#include <rota/detail/archives.h>
#include <rota/detail/types.h>
#include <rota/detail/wire.h>

#include <bit>
#include <cereal/archives/binary.hpp>
#include <cereal/cereal.hpp>
#include <cereal/types/array.hpp>
#include <cereal/types/chrono.hpp>
#include <cereal/types/complex.hpp>
#include <cereal/types/deque.hpp>
#include <cereal/types/list.hpp>
#include <cereal/types/map.hpp>
#include <cereal/types/memory.hpp>
#include <cereal/types/optional.hpp>
#include <cereal/types/set.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/tuple.hpp>
#include <cereal/types/unordered_map.hpp>
#include <cereal/types/unordered_set.hpp>
#include <cereal/types/utility.hpp>
#include <cereal/types/variant.hpp>
#include <cereal/types/vector.hpp>
#include <ranges>
#include <span>
#include <string_view>
#include <type_traits>

// How values become bytes: trivially copyable types by memcpy, everything else by cereal's serialize, save and load.
namespace rota::detail {

template <class T>
inline constexpr bool is_serializable_value = raw_value<T> || is_array<T> ||
                                              (cereal::traits::is_output_serializable<T, output_archive>::value &&
                                               (cereal::traits::is_input_serializable<T, input_archive>::value ||
                                                cereal::traits::has_load_and_construct<T, input_archive>::value));

// What keeps a type from travelling.
enum class obstacle { none, view, pointer, unknown };

template <class T>
constexpr obstacle obstacle_of();

template <class... T>
constexpr obstacle first_obstacle() {
  obstacle found = obstacle::none;
  static_cast<void>(((found = obstacle_of<std::remove_const_t<T>>(), found != obstacle::none) || ...));
  return found;
}

// Standard types: by what they hold.
template <class T>
inline constexpr obstacle obstacle_inside = obstacle::none;
template <class T>
requires(std::ranges::range<T> && !std::is_same_v<typename T::value_type, T>) inline constexpr obstacle
    obstacle_inside<T> = first_obstacle<typename T::value_type>();
template <class A, class B>
inline constexpr obstacle obstacle_inside<std::pair<A, B>> = first_obstacle<A, B>();
template <class... T>
inline constexpr obstacle obstacle_inside<std::tuple<T...>> = first_obstacle<T...>();
template <class... T>
inline constexpr obstacle obstacle_inside<std::variant<T...>> = first_obstacle<T...>();
template <class T>
inline constexpr obstacle obstacle_inside<std::optional<T>> = first_obstacle<T>();
template <class T>
requires(!std::is_polymorphic_v<T>) inline constexpr obstacle obstacle_inside<std::shared_ptr<T>> = first_obstacle<T>();
template <class T, class D>
requires(!std::is_polymorphic_v<T>) inline constexpr obstacle obstacle_inside<std::unique_ptr<T, D>> =
    first_obstacle<T>();

// A type whose own functions say what travels: what else it holds is its affair.
template <class T>
inline constexpr bool serializes_itself = cereal::traits::has_member_serialize<T, output_archive>::value ||
                                          cereal::traits::has_member_save<T, output_archive>::value;

// cereal's containers accept any element until they meet it: what is inside is looked at first.
template <class T>
constexpr obstacle obstacle_of() {
  if constexpr (is_view<T>) {
    return obstacle::view;
  } else if constexpr (std::is_pointer_v<T>) {
    return obstacle::pointer;
  } else if constexpr (std::is_array_v<T>) {
    return obstacle::unknown;
  } else if constexpr (raw_value<T> || is_array<T>) {
    return obstacle::none;
  } else {
    if constexpr (!serializes_itself<T>) {
      if constexpr (obstacle_inside<T> != obstacle::none) return obstacle_inside<T>;
    }
    return is_serializable_value<T> ? obstacle::none : obstacle::unknown;
  }
}

// True, or does not compile: used in a static_assert, so that its sentence comes before any of cereal's.
template <class T>
constexpr bool check_value_type() {
  constexpr obstacle found = obstacle_of<T>();
  static_assert(found != obstacle::view,
                "rota: a std::span or std::string_view does not own what it shows: take a rota::array<T> or a "
                "std::string instead");
  static_assert(found != obstacle::pointer,
                "rota: a pointer means nothing in another process: take a value, a rota::array<T> or a rota::ref<T>");
  static_assert(found != obstacle::unknown,
                "rota: this type cannot travel between ranks: make it trivially copyable, or give it a cereal "
                "serialize(Archive&) or save and load, or load_and_construct where it has no default constructor");
  return true;
}

template <class T>
inline constexpr bool is_raw_vector = false;
template <class T, class A>
inline constexpr bool is_raw_vector<std::vector<T, A>> = raw_value<T> && !std::is_same_v<T, bool>;

template <class T>
void encode(writer& to, const T& value) {
  static_assert(check_value_type<T>());
  if constexpr (raw_value<T>) {
    to.write(std::addressof(value), sizeof(T));
  } else if constexpr (is_raw_vector<T>) {
    auto size = static_cast<std::uint64_t>(value.size());
    to.write(&size, sizeof(size));
    to.write(value.data(), value.size() * sizeof(typename T::value_type));
  } else {
    output_archive archive(to);
    archive(value);
  }
}

template <class T>
T decode(reader& from) {
  static_assert(check_value_type<T>());
  if constexpr (raw_value<T>) {
    struct raw {
      alignas(T) std::byte bytes[sizeof(T)];
    } copy;
    from.read(copy.bytes, sizeof(T));
    return std::bit_cast<T>(copy);
  } else if constexpr (is_raw_vector<T>) {
    using element = typename T::value_type;
    std::uint64_t size = 0;
    from.read(&size, sizeof(size));
    const std::byte* data = from.take(size * sizeof(element));
    if constexpr (std::is_default_constructible_v<element>) {
      T value(size);
      if (size > 0) std::memcpy(static_cast<void*>(value.data()), data, size * sizeof(element));
      return value;
    } else {
      T value;
      value.reserve(size);
      for (std::uint64_t i = 0; i < size; ++i) {
        struct raw {
          alignas(element) std::byte bytes[sizeof(element)];
        } copy;
        std::memcpy(copy.bytes, data + i * sizeof(element), sizeof(element));
        value.push_back(std::bit_cast<element>(copy));
      }
      return value;
    }
  } else if constexpr (std::is_default_constructible_v<T>) {
    T value;
    input_archive archive(from);
    archive(value);
    return value;
  } else {
    // cereal's own way to make what has no default constructor, in memory that is freed also when loading throws.
    struct free_memory {
      void operator()(void* p) const { ::operator delete(p, std::align_val_t(alignof(T))); }
    };
    std::unique_ptr<void, free_memory> memory(::operator new(sizeof(T), std::align_val_t(alignof(T))));
    T* made = static_cast<T*>(memory.get());
    {
      cereal::memory_detail::LoadAndConstructLoadWrapper<input_archive, T> wrapper(made);
      input_archive archive(from);
      archive(wrapper);
    }
    T value(std::move(*made));
    made->~T();
    return value;
  }
}

// The value as it goes into the store: an array's bytes stand alone there, to be viewed in place.
template <class T>
void encode_value(encoded& to, const T& value) {
  auto write = [&] {
    if constexpr (is_array<T>) {
      to.bytes.write(value.data(), value.size() * sizeof(typename T::value_type));
    } else {
      encode(to.bytes, value);
    }
  };
  write();
  to.size = to.bytes.size();
  if (!to.bytes.too_large()) return;
  to.where = reserve_place(to.size);
  to.placed = true;
  to.bytes.write_into(to.where.data);
  write();
}

// An array that nobody else reads keeps its place.
template <class T>
void encode_value(encoded& to, array<T>&& value) {
  const std::size_t size = value.size() * sizeof(T);
  if (size > inline_limit()) to.where = value.take_place();
  if (!to.where.data) return encode_value(to, static_cast<const array<T>&>(value));
  to.size = size;
  to.placed = true;
}

template <class T>
void encode_value(encoded& to, array_builder<T>&& builder) {
  to.size = builder.size() * sizeof(T);
  if (to.size <= inline_limit()) return encode_value(to, static_cast<const array<T>&>(array<T>(std::move(builder))));
  to.where = builder.take();
  to.placed = true;
}

// What an array keeps that is a view of a stored object. The pin goes first: it is the object's.
struct kept_view {
  handle object;
  stored_pin pin;
};

// The value of an object that has one. An array is a view that keeps the object.
template <class T>
T decode_value(const handle& from, value_bytes bytes) {
  if constexpr (is_array<T>) {
    using element = typename T::value_type;
    const std::size_t size = bytes.size / sizeof(element);
    if (reinterpret_cast<std::uintptr_t>(bytes.data) % alignof(element) == 0) {
      auto keep = std::make_shared<kept_view>(from, std::move(bytes.pin));
      return T(reinterpret_cast<const element*>(bytes.data), size, std::shared_ptr<const void>(keep, bytes.data));
    }
    auto copy = aligned_bytes(bytes.size, alignof(element));
    std::memcpy(copy.get(), bytes.data, bytes.size);
    return T(reinterpret_cast<const element*>(copy.get()), size, copy);
  } else {
    reader from_bytes(bytes);
    return decode<T>(from_bytes);
  }
}

}  // namespace rota::detail
