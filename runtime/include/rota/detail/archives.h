#pragma once

#include <rota/array.h>
#include <rota/detail/types.h>
#include <rota/detail/wire.h>

#include <cereal/archives/binary.hpp>
#include <cereal/cereal.hpp>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>

// cereal's archives over writer and reader, and what they know besides cereal's own types.
namespace rota::detail {

class output_archive : public cereal::OutputArchive<output_archive, cereal::AllowEmptyClassElision> {
 public:
  explicit output_archive(writer& to) : OutputArchive(this), to_(to) {}
  void saveBinary(const void* from, std::size_t n) { to_.write(from, n); }
  writer& bytes() { return to_; }

 private:
  writer& to_;
};

class input_archive : public cereal::InputArchive<input_archive, cereal::AllowEmptyClassElision> {
 public:
  explicit input_archive(reader& from) : InputArchive(this), from_(from) {}
  void loadBinary(void* to, std::size_t n) { from_.read(to, n); }
  reader& bytes() { return from_; }

 private:
  reader& from_;
};

}  // namespace rota::detail

// cereal asks which archive reads what another wrote, for types with load_minimal (enums among them).
template <>
struct cereal::traits::detail::get_output_from_input<rota::detail::input_archive> {
  using type = rota::detail::output_archive;
};
template <>
struct cereal::traits::detail::get_input_from_output<rota::detail::output_archive> {
  using type = rota::detail::input_archive;
};

namespace rota::detail {

template <class T>
inline constexpr bool is_view = false;
template <class T, std::size_t N>
inline constexpr bool is_view<std::span<T, N>> = true;
template <class C, class Traits>
inline constexpr bool is_view<std::basic_string_view<C, Traits>> = true;

// cereal knows the type by itself, or by the user's functions.
template <class T>
inline constexpr bool cereal_knows = cereal::traits::is_output_serializable<T, cereal::BinaryOutputArchive>::value ||
                                     cereal::traits::is_input_serializable<T, cereal::BinaryInputArchive>::value;

// Moved by memcpy: nothing inside can point outside, as far as a type can tell.
template <class T>
concept raw_value =
    std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> && !std::is_member_pointer_v<T> &&
    !std::is_null_pointer_v<T> && !is_view<T> && (std::is_arithmetic_v<T> || std::is_enum_v<T> || !cereal_knows<T>);

template <raw_value T>
requires(!std::is_arithmetic_v<T> && !cereal_knows<T>) void CEREAL_SAVE_FUNCTION_NAME(output_archive& to,
                                                                                      const T& value) {
  to.saveBinary(std::addressof(value), sizeof(T));
}
template <raw_value T>
requires(!std::is_arithmetic_v<T> && !cereal_knows<T>) void CEREAL_LOAD_FUNCTION_NAME(input_archive& from, T& value) {
  from.loadBinary(std::addressof(value), sizeof(T));
}
template <class T>
requires std::is_arithmetic_v<T>
void CEREAL_SAVE_FUNCTION_NAME(output_archive& to, const T& value) { to.saveBinary(std::addressof(value), sizeof(T)); }
template <class T>
requires std::is_arithmetic_v<T>
void CEREAL_LOAD_FUNCTION_NAME(input_archive& from, T& value) { from.loadBinary(std::addressof(value), sizeof(T)); }
template <class T>
void CEREAL_SERIALIZE_FUNCTION_NAME(output_archive& to, cereal::NameValuePair<T>& pair) {
  to(pair.value);
}
template <class T>
void CEREAL_SERIALIZE_FUNCTION_NAME(input_archive& from, cereal::NameValuePair<T>& pair) {
  from(pair.value);
}
template <class T>
void CEREAL_SERIALIZE_FUNCTION_NAME(output_archive& to, cereal::SizeTag<T>& tag) {
  to(tag.size);
}
template <class T>
void CEREAL_SERIALIZE_FUNCTION_NAME(input_archive& from, cereal::SizeTag<T>& tag) {
  from(tag.size);
}
template <class T>
void CEREAL_SAVE_FUNCTION_NAME(output_archive& to, const cereal::BinaryData<T>& data) {
  to.saveBinary(data.data, static_cast<std::size_t>(data.size));
}
template <class T>
void CEREAL_LOAD_FUNCTION_NAME(input_archive& from, cereal::BinaryData<T>& data) {
  from.loadBinary(data.data, static_cast<std::size_t>(data.size));
}

// Arrays inside other values are copied with them.
template <class T>
void CEREAL_SAVE_FUNCTION_NAME(output_archive& to, const array<T>& value) {
  to(static_cast<std::uint64_t>(value.size()));
  to.saveBinary(value.data(), value.size() * sizeof(T));
}
template <class T>
void CEREAL_LOAD_FUNCTION_NAME(input_archive& from, array<T>& value) {
  std::uint64_t size = 0;
  from(size);
  auto copy = detail::aligned_bytes(size * sizeof(T), alignof(T));
  from.loadBinary(copy.get(), size * sizeof(T));
  value = array<T>(reinterpret_cast<const T*>(copy.get()), size, copy);
}

}  // namespace rota::detail
