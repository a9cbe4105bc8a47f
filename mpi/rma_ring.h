#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>

#include "runtime/base/types.h"

namespace rota::mpi {

// A ring that one rank fills by puts into another's memory. Nothing orders puts, and nothing tells their end but a
// flush, which waits for the target. So each frame proves by its sum that all of it is there: whoever reads needs
// neither order nor flush. A frame is a head and its bytes, at a multiple of frame_unit; none crosses the ring's end.
struct frame_head {
  std::uint64_t mark = 0;  // 1 + the frame's position: bytes since the start, which never wrap
  std::uint64_t sum = 0;   // of all that follows, and of the mark
  std::uint32_t size = 0;  // of the bytes behind the head
  std::uint32_t last = 0;  // 1 in the last part of a batch
};
static_assert(sizeof(frame_head) == 24);

inline constexpr std::size_t frame_unit = 64;

inline constexpr std::size_t frame_bytes(std::size_t size) {
  return (sizeof(frame_head) + size + frame_unit - 1) / frame_unit * frame_unit;
}

// 64 bits that depend on every bit; four lanes, each a rotation and a product, as xxHash has them.
inline std::uint64_t sum_of(std::uint64_t seed, bytes_view bytes) {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;
  const auto word = [](const std::byte* at, std::size_t n = 8) {
    std::uint64_t value = 0;
    std::memcpy(&value, at, n);
    return value;
  };
  const auto mix = [](std::uint64_t lane, std::uint64_t value) { return std::rotl(lane ^ value, 29) * odd; };
  std::uint64_t a = seed ^ bytes.size(), b = a + odd, c = b + odd, d = c + odd;
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 32; left -= 32, at += 32) {
    a = mix(a, word(at));
    b = mix(b, word(at + 8));
    c = mix(c, word(at + 16));
    d = mix(d, word(at + 24));
  }
  for (; left >= 8; left -= 8, at += 8) a = mix(a, word(at));
  if (left > 0) a = mix(a, word(at, left));
  a = mix(mix(mix(a, b), c), d);
  a = (a ^ (a >> 32)) * odd;
  return a ^ (a >> 29);
}

inline std::uint64_t sum_of(std::uint64_t seed, frame_head head, bytes_view body) {
  head.sum = 0;
  return sum_of(sum_of(seed, {reinterpret_cast<const std::byte*>(&head), sizeof head}), body);
}

// A word in this rank's memory that another changes by a put: a thread may look at it while others work.
struct put_word {
  const std::byte* at = nullptr;
  std::uint64_t value = 0;
  bool more = false;  // filled once the word is greater, else once it is equal

  std::uint64_t load() const {
    auto& word = *reinterpret_cast<std::uint64_t*>(const_cast<std::byte*>(at));
    // acquire: what was read of the frame before it came is read anew. The bytes come from a device or from MPI.
    return std::atomic_ref(word).load(std::memory_order_acquire);
  }
  bool filled() const { return more ? load() > value : load() == value; }
};

// How far a ring was read, in a line of the writer's memory which the reader puts to. Its words take turns, and the
// greatest counts, so that a put which is overtaken by the next does no harm.
inline constexpr std::size_t credit_words = 8;

// The sender's end: a copy of the ring in its own memory, from which the puts are made. What was put stays in the copy
// until the receiver has read it, so it is known without a flush that MPI does not need it any more. One thread at a
// time.
class frame_writer {
 public:
  // `credits`: credit_words words, all zero at first. REQUIRES: capacity is a power of two, at least 4 KiB.
  frame_writer(std::size_t capacity, std::uint64_t seed, const std::byte* credits)
      : capacity_(capacity), seed_(seed), credits_(credits) {
    assert(std::has_single_bit(capacity) && capacity >= 4096);
  }

  // How many bytes the next frame may carry; none: not even a head fits now.
  std::optional<std::size_t> room() {
    if (used() + frame_unit > capacity_) take_credits();
    if (used() + frame_unit > capacity_) return std::nullopt;
    const std::size_t to_end = capacity_ - place(sent_);
    return std::min({capacity_ - used(), to_end, capacity_ / 4}) - sizeof(frame_head);
  }

  struct placed {
    std::size_t offset;  // in the ring
    bytes_view bytes;    // to put there
  };
  // REQUIRES: room() >= body.size().
  placed write(bool last, bytes_view body) {
    if (!copy_) copy_.reset(new std::byte[capacity_]);
    frame_head head;
    head.mark = sent_ + 1;
    head.size = static_cast<std::uint32_t>(body.size());
    head.last = last ? 1 : 0;
    head.sum = sum_of(seed_, head, body);
    std::byte* at = copy_.get() + place(sent_);
    std::memcpy(at, &head, sizeof head);
    if (!body.empty()) std::memcpy(at + sizeof head, body.data(), body.size());
    const placed frame{place(sent_), {at, sizeof head + body.size()}};
    sent_ += frame_bytes(body.size());
    return frame;
  }

  bool all_read() {
    if (read_ != sent_) take_credits();
    return read_ == sent_;
  }
  // The word that the next credit changes.
  put_word next_credit() const { return {credits_ + turn_ * sizeof(std::uint64_t), read_, true}; }
  // Gives the copy's memory back until the next frame. REQUIRES: all_read().
  void rest() { copy_.reset(); }

 private:
  std::size_t place(std::uint64_t position) const { return static_cast<std::size_t>(position) & (capacity_ - 1); }
  std::size_t used() const { return static_cast<std::size_t>(sent_ - read_); }
  void take_credits() {
    for (std::size_t i = 0; i < credit_words; ++i) {
      const std::uint64_t position = put_word{credits_ + i * sizeof(std::uint64_t)}.load();
      if (position <= read_ || position > sent_) continue;
      read_ = position;
      turn_ = (i + 1) % credit_words;
    }
  }

  std::size_t capacity_;
  std::uint64_t seed_;
  const std::byte* credits_;
  std::unique_ptr<std::byte[]> copy_;
  std::uint64_t sent_ = 0;
  std::uint64_t read_ = 0;
  std::size_t turn_ = 0;
};

// The receiver's end, over the ring itself. One thread at a time.
class frame_reader {
 public:
  frame_reader(std::size_t capacity, std::uint64_t seed) : capacity_(capacity), seed_(seed) {}

  // The ring is there from now on, all zero; or, null, is not any more. What was read counts on. REQUIRES, for null:
  // the writer's end has all_read().
  void use(const std::byte* ring) { ring_ = ring; }

  struct frame {
    frame_head head;
    bytes_view body;  // valid until pop()
  };
  // The next frame, if all of it is there. REQUIRES: there is a ring.
  std::optional<frame> front() const {
    if (!next().filled()) return std::nullopt;
    frame f;
    const std::size_t place = static_cast<std::size_t>(read_) & (capacity_ - 1);
    std::memcpy(&f.head, ring_ + place, sizeof f.head);
    if (f.head.size > capacity_ - place - sizeof f.head) return std::nullopt;  // half a head
    f.body = {ring_ + place + sizeof f.head, f.head.size};
    if (sum_of(seed_, f.head, f.body) != f.head.sum) return std::nullopt;
    return f;
  }
  void pop(const frame& f) { read_ += frame_bytes(f.head.size); }
  put_word next() const { return {ring_ + (static_cast<std::size_t>(read_) & (capacity_ - 1)), read_ + 1}; }

  // What the writer should hear now: once a quarter of the ring was read, or at all where it waits for the end.
  bool owes(bool all) const { return all ? read_ > told_ : read_ - told_ >= capacity_ / 4; }
  struct credit {
    std::size_t offset;  // in the writer's line
    bytes_view bytes;    // to put there; stays until all the other words had their turn
  };
  credit tell() {
    const std::size_t turn = turns_++ % credit_words;
    credits_[turn] = told_ = read_;
    return {turn * sizeof(std::uint64_t), std::as_bytes(std::span(&credits_[turn], 1))};
  }

 private:
  const std::byte* ring_ = nullptr;
  std::size_t capacity_;
  std::uint64_t seed_;
  std::uint64_t read_ = 0, told_ = 0;
  std::size_t turns_ = 0;
  std::array<std::uint64_t, credit_words> credits_{};
};

}  // namespace rota::mpi
