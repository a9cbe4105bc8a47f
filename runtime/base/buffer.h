#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "runtime/base/types.h"

namespace rota::base {

// A growing run of bytes whose new bytes are not zeroed. Move-only.
class buffer {
 public:
  buffer() = default;
  buffer(buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  buffer& operator=(buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~buffer() { std::free(data_); }

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bytes_view view() const { return {data_, size_}; }
  void clear() { size_ = 0; }
  std::size_t capacity() const { return capacity_; }

  // Appends n bytes for the caller to fill.
  std::byte* extend(std::size_t n) {
    if (size_ + n > capacity_) grow(size_ + n);
    std::byte* place = data_ + size_;
    size_ += n;
    return place;
  }

  void append(const void* from, std::size_t n) {
    if (n > 0) std::memcpy(extend(n), from, n);
  }
  void append(bytes_view bytes) { append(bytes.data(), bytes.size()); }

  template <class T>
  requires std::is_trivially_copyable_v<T>
  void put(const T& value) { std::memcpy(extend(sizeof(T)), &value, sizeof(T)); }

 private:
  void grow(std::size_t needed) {
    std::size_t room = capacity_ ? capacity_ : 256;
    while (room < needed) room *= 2;
    void* moved = std::realloc(data_, room);
    if (!moved) throw std::bad_alloc();
    data_ = static_cast<std::byte*>(moved);
    capacity_ = room;
  }

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

// Reads what buffer::put and append wrote. REQUIRES: the bytes are there (messages come from our own ranks).
class cursor {
 public:
  explicit cursor(bytes_view bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  template <class T>
  requires std::is_trivially_copyable_v<T> T get() {
    T value;
    std::memcpy(&value, at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  bytes_view take(std::size_t n) {
    bytes_view taken{at_, n};
    at_ += n;
    return taken;
  }
  bytes_view rest() { return take(static_cast<std::size_t>(end_ - at_)); }
  const std::byte* at() const { return at_; }

 private:
  const std::byte* at_;
  const std::byte* end_;
};

// Text behind its length.
inline void put_text(buffer& to, std::string_view text) {
  to.put(static_cast<std::uint32_t>(text.size()));
  to.append(text.data(), text.size());
}
inline std::string_view get_text_view(cursor& from) {  // into what the cursor reads
  const auto size = from.get<std::uint32_t>();
  const bytes_view text = from.take(size);
  return {reinterpret_cast<const char*>(text.data()), text.size()};
}
inline std::string get_text(cursor& from) { return std::string(get_text_view(from)); }

}  // namespace rota::base
