#pragma once

#include <rota/detail/types.h>
#include <rota/detail/wire.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace rota {

namespace detail {

// A place in this rank's part of the store that no object names yet.
struct sealed_place {
  explicit sealed_place(place p) noexcept : where(p) {}
  sealed_place(const sealed_place&) = delete;
  sealed_place& operator=(const sealed_place&) = delete;
  ~sealed_place() {
    if (where.data) give_back_place(where.cell);
  }
  place where;
};

}  // namespace detail

// A read-only run of n values of a trivially copyable type, in the node's store or, when small, in private memory.
// Copies are cheap and share the values; they stay for as long as any copy lives, but not beyond the session: its end
// takes the store away, and an array must not be read after it. Any thread may read.
template <class T>
class array {
  static_assert(std::is_trivially_copyable_v<T>, "rota::array holds trivially copyable types only");

 public:
  using value_type = T;
  using const_iterator = const T*;

  array() = default;

  const T* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  const T* begin() const noexcept { return data_; }
  const T* end() const noexcept { return data_ + size_; }
  const T& operator[](std::size_t i) const noexcept { return data_[i]; }
  const T& front() const noexcept { return data_[0]; }
  const T& back() const noexcept { return data_[size_ - 1]; }
  operator std::span<const T>() const noexcept { return {data_, size_}; }

  // For the library: over memory that `keep` keeps alive.
  array(const T* data, std::size_t size, std::shared_ptr<const void> keep) noexcept
      : data_(data), size_(size), keep_(std::move(keep)) {}
  array(const T* data, std::size_t size, std::shared_ptr<detail::sealed_place> sealed) noexcept
      : data_(data), size_(size), keep_(sealed), sealed_(sealed.get()) {}
  // The place, where nobody else reads it: the array is empty then. An empty place otherwise.
  detail::place take_place() noexcept {
    if (!sealed_ || keep_.use_count() != 1) return {};
    detail::place taken = std::exchange(sealed_->where, {});
    *this = array();
    return taken;
  }

 private:
  const T* data_ = nullptr;
  std::size_t size_ = 0;
  std::shared_ptr<const void> keep_;
  detail::sealed_place* sealed_ = nullptr;  // inside keep_
};

// Where an array is made: writable, in the store from the start. Put it, return it from a task, or convert it by move.
// Move-only; one thread at a time. The values are not initialised. Not to be touched after the session's end.
template <class T>
class array_builder {
  static_assert(std::is_trivially_copyable_v<T>, "rota::array holds trivially copyable types only");
  static_assert(alignof(T) <= 64, "rota::array aligns its elements to at most 64 bytes");

 public:
  using value_type = T;

  array_builder() noexcept = default;
  explicit array_builder(std::size_t n) : size_(n) {
    if (n > std::numeric_limits<std::size_t>::max() / sizeof(T)) detail::throw_too_many(n, sizeof(T));
    place_ = detail::reserve_place(n * sizeof(T));
  }
  array_builder(array_builder&& other) noexcept
      : place_(std::exchange(other.place_, {})), size_(std::exchange(other.size_, 0)) {}
  array_builder& operator=(array_builder other) noexcept {
    std::swap(place_, other.place_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~array_builder() {
    if (place_.data) detail::give_back_place(place_.cell);
  }

  T* data() noexcept { return reinterpret_cast<T*>(place_.data); }
  std::size_t size() const noexcept { return size_; }
  T* begin() noexcept { return data(); }
  T* end() noexcept { return data() + size_; }
  T& operator[](std::size_t i) noexcept { return data()[i]; }
  operator std::span<T>() noexcept { return {data(), size_}; }

  // Seals it. The builder is empty afterwards.
  operator array<T>() && {
    detail::place sealed = std::exchange(place_, {});
    std::size_t n = std::exchange(size_, 0);
    if (!sealed.data) return {};
    return array<T>(reinterpret_cast<const T*>(sealed.data), n, std::make_shared<detail::sealed_place>(sealed));
  }

  // For the library: hands over the place.
  detail::place take() noexcept {
    size_ = 0;
    return std::exchange(place_, {});
  }

 private:
  detail::place place_;
  std::size_t size_ = 0;
};

// Room for n values in the node's store. Throws out_of_memory where it is full.
template <class T>
array_builder<T> make_array(std::size_t n) {
  return array_builder<T>(n);
}

}  // namespace rota
