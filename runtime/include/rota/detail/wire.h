#pragma once

#include <rota/detail/core.h>

#include <cstring>
#include <memory>
#include <new>

namespace rota::detail {

// Collects the serialized bytes of one value and the refs inside it. Up to `limit` bytes are kept; of a larger value
// only the size, to be written a second time into a place of exactly that size (write_into).
class writer {
 public:
  explicit writer(std::size_t limit) noexcept : limit_(limit) {}
  writer(const writer&) = delete;
  writer& operator=(const writer&) = delete;
  ~writer();

  void write(const void* from, std::size_t n) {
    if (n <= static_cast<std::size_t>(end_ - at_)) {
      if (n > 0) std::memcpy(at_, from, n);
      at_ += n;
    } else {
      overflow(from, n);
    }
  }
  void add_ref(object* o);

  bool too_large() const noexcept { return counting_; }
  std::size_t size() const noexcept { return counted_ + static_cast<std::size_t>(at_ - begin_); }
  const std::byte* data() const noexcept { return begin_; }
  std::span<object* const> refs() const noexcept;

  // Starts again, into memory of size() bytes.
  void write_into(std::byte* memory) noexcept;
  // Starts again, empty.
  void clear() noexcept;

 private:
  void overflow(const void* from, std::size_t n);
  void drop_refs() noexcept;

  std::byte local_[192];
  std::byte* begin_ = local_;
  std::byte* at_ = local_;
  std::byte* end_ = local_ + sizeof(local_);
  std::size_t limit_;
  std::size_t counted_ = 0;
  bool counting_ = false;
  bool fixed_ = false;
  std::unique_ptr<std::byte[]> heap_;
  std::vector<object*> refs_;  // each with a count of ours
};

// Memory for values of the given alignment, for as long as a copy of the pointer lives.
inline std::shared_ptr<std::byte> aligned_bytes(std::size_t size, std::size_t alignment) {
  const auto align = std::align_val_t(alignment);
  return {static_cast<std::byte*>(::operator new(size, align)), [align](std::byte* p) { ::operator delete(p, align); }};
}

// Reads what a writer wrote.
class reader {
 public:
  explicit reader(const value_bytes& from) noexcept
      : at_(from.data), end_(from.data + from.size), refs_(from.refs), ref_count_(from.ref_count) {}

  void read(void* to, std::size_t n) {
    if (n > static_cast<std::size_t>(end_ - at_)) throw_short();
    if (n > 0) std::memcpy(to, at_, n);
    at_ += n;
  }
  const std::byte* take(std::size_t n) {
    if (n > static_cast<std::size_t>(end_ - at_)) throw_short();
    return std::exchange(at_, at_ + n);
  }
  std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - at_); }
  handle next_ref();

 private:
  [[noreturn]] static void throw_short();

  const std::byte* at_;
  const std::byte* end_;
  object* const* refs_;
  std::size_t ref_count_;
};

// A serialized value on its way to the agent: inline, or already in the store.
struct encoded {
  writer bytes;
  bool placed = false;
  place where{};
  std::size_t size = 0;

  explicit encoded(std::size_t limit) noexcept : bytes(limit) {}
  ~encoded() {
    if (placed) give_back_place(where.cell);  // nobody took it
  }
};

// The new object, in this rank's hands alone.
handle put_encoded(encoded& value);

}  // namespace rota::detail
