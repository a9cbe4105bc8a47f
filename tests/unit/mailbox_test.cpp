#include "mpi/mailbox.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <thread>

#include "mpi/doorbell.h"

namespace {

using rota::mpi::doorbell;
using rota::mpi::mailbox_reader;
using rota::mpi::mailbox_writer;
using rota::mpi::ring_header;

// A ring in zeroed memory of its own, as the window gives it.
class ring {
 public:
  explicit ring(std::size_t capacity) : capacity_(capacity) {
    const std::size_t bytes = rota::mpi::ring_bytes(capacity);
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)));
    std::memset(memory_.get(), 0, bytes);
    header_ = new (memory_.get()) ring_header;
  }

  mailbox_writer writer() { return {header_, capacity_}; }
  mailbox_reader reader() { return {header_, capacity_}; }

 private:
  struct release {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::size_t capacity_;
  std::unique_ptr<std::byte, release> memory_;
  ring_header* header_ = nullptr;
};

std::byte byte_of(std::uint64_t number, std::size_t i) { return static_cast<std::byte>(number * 31 + i); }

void fill(std::byte* to, std::size_t size, std::uint64_t number) {
  for (std::size_t i = 0; i < size; ++i) to[i] = byte_of(number, i);
}

bool is_record(std::span<const std::byte> record, std::size_t size, std::uint64_t number) {
  if (record.size() != size || reinterpret_cast<std::uintptr_t>(record.data()) % 8 != 0) return false;
  for (std::size_t i = 0; i < size; ++i) {
    if (record[i] != byte_of(number, i)) return false;
  }
  return true;
}

std::size_t random_size(std::minstd_rand& random, std::size_t largest) {
  // Mostly small, now and then anything up to the largest.
  return random() % 16 == 0 ? random() % (largest + 1) : random() % 65;
}

// Sends `records` of random size, `batch` to a publish, through a ring with both sides spinning.
void exchange(std::size_t capacity, std::uint64_t records, unsigned batch) {
  ring r(capacity);
  std::jthread producer([&] {
    mailbox_writer writer = r.writer();
    std::minstd_rand random(7);
    for (std::uint64_t i = 0; i < records; ++i) {
      const std::size_t size = random_size(random, writer.max_record());
      std::byte* to = nullptr;
      while ((to = writer.try_reserve(size)) == nullptr) {
        if (writer.has_unpublished()) writer.publish();
        std::this_thread::yield();
      }
      fill(to, size, i);
      writer.commit(size);
      if (i % batch == 0) writer.publish();
    }
    writer.publish();
  });
  mailbox_reader reader = r.reader();
  std::minstd_rand random(7);
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < records; ++i) {
    while (reader.empty()) std::this_thread::yield();
    if (!is_record(reader.front(), random_size(random, capacity / 4), i)) ++wrong;
    EXPECT_FALSE(reader.pop());  // the producer never asked for room
  }
  producer.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_TRUE(reader.empty());
}

TEST(mailbox, carries_records_of_any_size_in_order_through_a_small_ring) { exchange(1024, 1'000'000, 1); }

TEST(mailbox, carries_records_of_any_size_in_order_in_batches) { exchange(4096, 2'000'000, 32); }

TEST(mailbox, carries_records_of_any_size_in_order_through_a_large_ring) { exchange(256 << 10, 60'000, 1000); }

TEST(mailbox, shows_nothing_before_publish_and_all_of_it_after) {
  ring r(1024);
  mailbox_writer writer = r.writer();
  mailbox_reader reader = r.reader();
  EXPECT_FALSE(writer.has_unpublished());
  for (std::uint64_t i = 0; i < 3; ++i) {
    std::byte* to = writer.try_reserve(40);
    ASSERT_NE(to, nullptr);
    fill(to, 5, i);
    writer.commit(5);  // less than was reserved
  }
  EXPECT_TRUE(writer.has_unpublished());
  EXPECT_TRUE(reader.empty());
  writer.publish();
  EXPECT_FALSE(writer.has_unpublished());
  for (std::uint64_t i = 0; i < 3; ++i) {
    ASSERT_FALSE(reader.empty());
    EXPECT_TRUE(is_record(reader.front(), 5, i));
    EXPECT_FALSE(reader.pop());
  }
  EXPECT_TRUE(reader.empty());
}

TEST(mailbox, carries_empty_records) {
  ring r(1024);
  mailbox_writer writer = r.writer();
  mailbox_reader reader = r.reader();
  ASSERT_NE(writer.try_reserve(0), nullptr);
  writer.commit(0);
  writer.publish();
  ASSERT_FALSE(reader.empty());
  EXPECT_EQ(reader.front().size(), 0u);
  EXPECT_FALSE(reader.pop());
  EXPECT_TRUE(reader.empty());
}

TEST(mailbox, refuses_when_full_and_has_room_again_once_read) {
  ring r(1024);
  mailbox_writer writer = r.writer();
  mailbox_reader reader = r.reader();
  int sent = 0;
  while (writer.try_reserve(56) != nullptr) {
    writer.commit(56);
    ++sent;
  }
  EXPECT_EQ(sent, 16);
  EXPECT_EQ(writer.try_reserve(0), nullptr);
  writer.publish();
  for (int i = 0; i < sent; ++i) {
    ASSERT_FALSE(reader.empty());
    reader.front();
    EXPECT_FALSE(reader.pop());
  }
  EXPECT_NE(writer.try_reserve(writer.max_record()), nullptr);
}

TEST(mailbox, any_record_fits_once_everything_was_read) {
  ring r(1024);
  mailbox_writer writer = r.writer();
  mailbox_reader reader = r.reader();
  for (std::uint64_t i = 0; i < 1000; ++i) {  // each place of the ring as a start
    ASSERT_NE(writer.try_reserve(i % 9), nullptr);
    writer.commit(i % 9);
    std::byte* to = writer.try_reserve(writer.max_record());
    ASSERT_NE(to, nullptr);
    fill(to, writer.max_record(), i);
    writer.commit(writer.max_record());
    writer.publish();
    for (std::size_t size : {static_cast<std::size_t>(i % 9), writer.max_record()}) {
      ASSERT_FALSE(reader.empty());
      EXPECT_EQ(reader.front().size(), size);
      EXPECT_FALSE(reader.pop());
    }
  }
}

TEST(mailbox, a_reservation_that_is_not_committed_leaves_nothing) {
  ring r(1024);
  mailbox_writer writer = r.writer();
  mailbox_reader reader = r.reader();
  for (int i = 0; i < 100; ++i) ASSERT_NE(writer.try_reserve(200), nullptr);
  ASSERT_NE(writer.try_reserve(8), nullptr);
  writer.commit(8);
  writer.publish();
  ASSERT_FALSE(reader.empty());
  EXPECT_EQ(reader.front().size(), 8u);
}

TEST(mailbox, a_new_writer_goes_on_after_what_was_published) {
  ring r(1024);
  mailbox_reader reader = r.reader();
  for (std::uint64_t i = 0; i < 100; ++i) {
    mailbox_writer writer = r.writer();
    std::byte* to = writer.try_reserve(100);
    ASSERT_NE(to, nullptr);
    fill(to, 100, i);
    writer.commit(100);
    writer.publish();
    ASSERT_NE(writer.try_reserve(100), nullptr);
    writer.commit(100);  // never published
    ASSERT_FALSE(reader.empty());
    EXPECT_TRUE(is_record(reader.front(), 100, i));
    EXPECT_FALSE(reader.pop());
    EXPECT_TRUE(reader.empty());
  }
}

TEST(mailbox, a_producer_that_sleeps_for_room_is_always_woken) {
  constexpr std::uint64_t records = 300'000;
  ring r(1024);
  doorbell bell;
  std::jthread producer([&] {
    mailbox_writer writer = r.writer();
    for (std::uint64_t i = 0; i < records; ++i) {
      const std::size_t size = (i * 37) % (writer.max_record() + 1);
      std::byte* to = nullptr;
      while ((to = writer.try_reserve(size)) == nullptr) {
        if (writer.has_unpublished()) writer.publish();
        const std::uint32_t value = bell.prepare();
        writer.want_room(true);
        if ((to = writer.try_reserve(size)) == nullptr) bell.wait(value);  // no limit: a lost wake-up would hang
        bell.awake();
        writer.want_room(false);
      }
      fill(to, size, i);
      writer.commit(size);
      writer.publish();
    }
  });
  mailbox_reader reader = r.reader();
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < records; ++i) {
    while (reader.empty()) std::this_thread::yield();
    if (!is_record(reader.front(), (i * 37) % 257, i)) ++wrong;
    if (reader.pop()) rota::mpi::ring(bell);
  }
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
