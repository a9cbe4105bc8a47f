#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>

namespace rota::mpi {

// A mailbox is a byte ring in shared memory: this header, then `capacity` bytes (a power of two, at least 1 KiB).
// tail and head count bytes since the start and never wrap; position & (capacity - 1) is the place in the ring.
// A record is an 8-byte length, the bytes, and padding to 8; it is always contiguous: one that would cross the end is
// preceded by a wrap marker that fills the rest. All zero bytes are a valid, empty ring.
struct ring_header {
  alignas(64) std::atomic<std::uint64_t> tail{0};  // written by the producer
  std::atomic<std::uint32_t> room_wanted{0};       // written by the producer: it sleeps until room is given back
  alignas(64) std::atomic<std::uint64_t> head{0};  // written by the consumer
};
static_assert(sizeof(ring_header) == 128);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

inline constexpr std::uint64_t ring_wrap_marker = ~std::uint64_t{0};

inline constexpr std::size_t ring_bytes(std::size_t capacity) { return sizeof(ring_header) + capacity; }

inline constexpr std::uint64_t ring_record_bytes(std::size_t payload) {
  return (std::uint64_t{payload} + 15) & ~std::uint64_t{7};
}

// The producer's end. One thread at a time. Records become visible, in order, with publish(); what was not published
// does not exist for the consumer. Lives no longer than the window it points into.
class mailbox_writer {
 public:
  mailbox_writer() = default;

  // Goes on where an earlier writer of the same ring stopped publishing.
  mailbox_writer(ring_header* ring, std::size_t capacity)
      : ring_(ring), data_(reinterpret_cast<std::byte*>(ring + 1)), capacity_(capacity), mask_(capacity - 1) {
    assert(capacity >= 1024 && (capacity & mask_) == 0);
    // relaxed: tail is ours. acquire: see refresh_head.
    write_ = published_ = ring_->tail.load(std::memory_order_relaxed);
    head_ = ring_->head.load(std::memory_order_acquire);
  }

  // Largest record that the ring takes, in bytes.
  std::size_t max_record() const { return capacity_ / 4; }

  // Room for a record of at most n bytes, 8-byte aligned, or nullptr when the ring is full: publish what was
  // committed, and try again later. REQUIRES: n <= max_record(). A reservation that is not committed costs nothing.
  std::byte* try_reserve(std::size_t n) {
    assert(n <= max_record());
    const std::uint64_t need = ring_record_bytes(n);
    const std::uint64_t to_end = capacity_ - (write_ & mask_);
    skip_ = need <= to_end ? 0 : to_end;
    if (capacity_ - (write_ - head_) < skip_ + need && !refresh_head(skip_ + need)) return nullptr;
    return data_ + ((write_ + skip_) & mask_) + 8;
  }

  // Ends the record that the last try_reserve gave. REQUIRES: n <= the bytes reserved.
  void commit(std::size_t n) {
    if (skip_ != 0) *length_at(write_) = ring_wrap_marker;
    write_ += skip_;
    *length_at(write_) = n;
    write_ += ring_record_bytes(n);
    skip_ = 0;
  }

  bool has_unpublished() const { return write_ != published_; }

  // Shows all committed records to the consumer; one store, whatever their number. The caller then rings the
  // consumer's doorbell (ring_if_sleeping).
  void publish() {
    // release: pairs with the acquire load of tail in mailbox_reader::empty.
    ring_->tail.store(write_, std::memory_order_release);
    published_ = write_;
  }

  // A producer that would sleep for room says so first: want_room(true); try_reserve again; only then sleep on its own
  // doorbell. The consumer's pop() then tells when to ring it. want_room(false) when it sleeps no longer.
  void want_room(bool wanted) {
    // relaxed: ordered by the fence, which pairs with the fence in mailbox_reader::give_back.
    ring_->room_wanted.store(wanted ? 1 : 0, std::memory_order_relaxed);
    if (wanted) std::atomic_thread_fence(std::memory_order_seq_cst);
  }

 private:
  bool refresh_head(std::uint64_t need) {
    // acquire: pairs with the release store of head in mailbox_reader::give_back: its reads end before we overwrite.
    head_ = ring_->head.load(std::memory_order_acquire);
    return capacity_ - (write_ - head_) >= need;
  }

  std::uint64_t* length_at(std::uint64_t position) {
    return reinterpret_cast<std::uint64_t*>(data_ + (position & mask_));
  }

  ring_header* ring_ = nullptr;
  std::byte* data_ = nullptr;
  std::uint64_t capacity_ = 0;
  std::uint64_t mask_ = 0;
  std::uint64_t write_ = 0;      // end of what is committed
  std::uint64_t published_ = 0;  // what tail holds
  std::uint64_t head_ = 0;       // last seen; the true one may be further on
  std::uint64_t skip_ = 0;       // bytes before the ring's end that the reserved record jumps over
};

// The consumer's end, made once for the life of the ring. One thread at a time. Room goes back to the producer a
// quarter of the ring at a time: a producer that finds no room always has more than that left to be read, so it is
// never forgotten.
class mailbox_reader {
 public:
  mailbox_reader() = default;

  mailbox_reader(ring_header* ring, std::size_t capacity)
      : ring_(ring), data_(reinterpret_cast<const std::byte*>(ring + 1)), mask_(capacity - 1), batch_(capacity / 4) {
    assert(capacity >= 1024 && (capacity & mask_) == 0);
    head_ = given_ = tail_ = ring_->head.load(std::memory_order_relaxed);  // relaxed: head is ours
  }

  bool empty() {
    if (head_ != tail_) return false;
    // acquire: pairs with the release store of tail in mailbox_writer::publish.
    tail_ = ring_->tail.load(std::memory_order_acquire);
    return head_ == tail_;
  }

  // The oldest record, 8-byte aligned; valid until pop(). REQUIRES: !empty() was seen.
  std::span<const std::byte> front() {
    std::uint64_t length = *length_at(head_);
    if (length == ring_wrap_marker) {  // a marker is only ever published together with the record behind it
      head_ += mask_ + 1 - (head_ & mask_);
      length = *length_at(head_);
    }
    return {data_ + (head_ & mask_) + 8, static_cast<std::size_t>(length)};
  }

  // Drops the record that front() gave. True when this gave room to a producer that waits for it: ring the producer's
  // doorbell. REQUIRES: front() was called for this record.
  [[nodiscard]] bool pop() {
    head_ += ring_record_bytes(static_cast<std::size_t>(*length_at(head_)));
    return head_ - given_ >= batch_ && give_back();
  }

  // Gives back all that was read. True as for pop().
  bool give_back() {
    // release: pairs with the acquire load of head in mailbox_writer::refresh_head.
    ring_->head.store(head_, std::memory_order_release);
    given_ = head_;
    // pairs with the fence in mailbox_writer::want_room: either it sees the room or we see that it wants some.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return ring_->room_wanted.load(std::memory_order_relaxed) != 0;  // relaxed: ordered by the fence
  }

 private:
  const std::uint64_t* length_at(std::uint64_t position) const {
    return reinterpret_cast<const std::uint64_t*>(data_ + (position & mask_));
  }

  ring_header* ring_ = nullptr;
  const std::byte* data_ = nullptr;
  std::uint64_t mask_ = 0;
  std::uint64_t batch_ = 0;
  std::uint64_t head_ = 0;   // start of the oldest unread record
  std::uint64_t given_ = 0;  // what the ring's head holds
  std::uint64_t tail_ = 0;   // last seen; the true one may be further on
};

}  // namespace rota::mpi
