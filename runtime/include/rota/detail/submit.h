#pragma once

#include <rota/detail/registry.h>
#include <rota/options.h>
#include <rota/serialize.h>

#include <limits>

namespace rota::detail {

// Arguments of one call as they are collected: bytes of values in order, and the refs. All bytes are kept: a call has
// at most 64 values, each of at most inline_limit().
class arguments {
 public:
  arguments() : bytes_(std::numeric_limits<std::size_t>::max()) {}

  // A value: its bytes, or an object of its own where they are many.
  template <class T>
  void add_value(const T& value) {
    ++count_;
    if constexpr (raw_value<T> && sizeof(T) <= 256) {
      bytes_.write(std::addressof(value), sizeof(T));
    } else {
      encoded one(inline_limit());
      encode_value(one, value);
      add_encoded(one, is_array<T>);
    }
  }
  // A value that the function gets resolved.
  void add_dependency(const handle& h) {
    mask_ |= std::uint64_t{1} << count_++;
    deps_.push_back(h);
  }

  void clear() noexcept;

  const writer& bytes() const noexcept { return bytes_; }
  const std::vector<handle>& deps() const noexcept { return deps_; }
  std::uint64_t mask() const noexcept { return mask_; }

 private:
  void add_encoded(encoded& one, bool is_array_value);
  void add_large(handle h);

  writer bytes_;
  std::vector<handle> deps_;
  std::uint64_t mask_ = 0;
  unsigned count_ = 0;
};

handle submit(const registration& function, const arguments& args, const options* how);
// Submits all in one go; results in order.
void submit_all(const registration& function, std::span<const arguments> args, handle* results);

handle create_actor(const registration& constructor, const char* class_name, const arguments& args,
                    const actor_options& how);
handle find_actor(const std::string& name, const char* class_name);
handle call_actor(const handle& actor, const registration& method, const arguments& args, const options* how);
void kill_actor(const handle& actor);

}  // namespace rota::detail
