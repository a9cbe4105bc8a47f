#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "runtime/base/id_map.h"
#include "runtime/base/pool.h"
#include "runtime/wire/messages.h"

namespace rota::scheduler {

using index = std::uint32_t;  // of an entry or an edge in its pool; 0: none

// Bytes that do not change. Up to `most_inside` of them lie in the blob itself: a task with an int or two, or its
// result, costs no allocation. False when empty. Move-only.
class blob {
 public:
  blob() = default;
  explicit blob(bytes_view bytes) {
    size_ = static_cast<std::uint32_t>(std::min<std::size_t>(bytes.size(), outside));
    std::byte* to = inside_;
    if (bytes.size() > most_inside) {
      auto* block = static_cast<std::byte*>(std::malloc(sizeof(std::uint64_t) + bytes.size()));
      if (!block) throw std::bad_alloc();
      size_ = outside;
      const std::uint64_t size = bytes.size();
      std::memcpy(inside_, &block, sizeof(block));
      std::memcpy(block, &size, sizeof(size));
      to = block + sizeof(size);
    }
    if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
  }
  blob(blob&& other) noexcept : size_(std::exchange(other.size_, 0)) {
    std::memcpy(inside_, other.inside_, sizeof(inside_));
  }
  blob& operator=(blob&& other) noexcept {
    if (this == &other) return *this;
    if (size_ == outside) std::free(block());
    size_ = std::exchange(other.size_, 0);
    std::memcpy(inside_, other.inside_, sizeof(inside_));
    return *this;
  }
  ~blob() {
    if (size_ == outside) std::free(block());
  }

  bytes_view view() const {
    if (size_ != outside) return {inside_, size_};
    std::uint64_t size;
    std::memcpy(&size, block(), sizeof(size));
    return {block() + sizeof(size), size};
  }
  explicit operator bool() const { return size_ > 0; }

 private:
  static constexpr std::size_t most_inside = 28;
  static constexpr std::uint32_t outside = 0xffff'ffff;  // as size_: inside_ holds the address of size and bytes

  std::byte* block() const {
    std::byte* at;
    std::memcpy(&at, inside_, sizeof(at));
    return at;
  }

  std::byte inside_[most_inside];
  std::uint32_t size_ = 0;
};

enum class stage : std::uint8_t {
  unknown,   // named by a message that overtook the one that makes it
  waiting,   // a producer of an argument has not been handed out
  queued,    // waits in its lane for a rank with room
  lost,      // `rank` was making it and is gone; survivors are asked whether they have it
  assigned,  // handed to `rank`
  produced,  // a rank's own object whose value will follow (result of an actor's call)
  done,      // the value is committed, or the failure
};

enum entry_flag : std::uint8_t {
  is_task = 1,
  is_actor = 2,       // the id also names an actor
  actor_over = 4,     // it is dead, or has been told to end
  wants_push = 8,     // the submitter gets the result without asking
  kept_by_rank = 16,  // runs in a slot that its parent's rank holds
  holds_needs = 32,   // its needs are taken from its rank's room
  has_near = 64,      // it prefers to run where an object is, whose id ends its task blob
};

// What the head knows of an object, and of the task that makes it: two cache lines; docs/protocol.md, "accounts".
struct alignas(64) entry {
  // What placing and counting touch fills the first line.
  object_id id = 0;
  std::uint32_t function = 0;
  std::uint32_t lane = 0;
  rank_t rank = no_rank;  // assigned, produced: who makes it; actor: where it lives
  index previous = 0;     // in its rank's list of assigned tasks, or in its lane
  index next = 0;
  index arguments = 0;   // first edge of its own arguments
  index dependents = 0;  // first edge of those who wait for its value
  // waiting: arguments whose producers have not been handed out; queued, assigned: arguments that are not done; done:
  // the rank that made it.
  std::uint32_t unmet = 0;
  std::uint32_t holds = 0;      // tasks that have it as argument, values that contain it
  std::uint32_t accounts = 0;   // ranks with a non-zero count
  rank_t first_rank = no_rank;  // one of them, and its count; the others in account_book
  std::uint32_t first_count = 0;
  std::uint32_t age = 0;  // order of becoming ready; wraps
  std::uint16_t attempt = 0;
  stage state = stage::unknown;
  std::uint8_t flags = 0;
  blob task;   // spawned_rest: what a rank needs to run it, until it is done
  blob value;  // wire value, once done
};
static_assert(sizeof(entry) == 128);

// "Task `task` has `object` as argument", "a task that had it as argument used a delivery at rank `task` and is done,
// though the object's own DONE has not come", or "rank `task` pulls it". 16 to 20 bytes.
struct edge {
  index object = 0;
  index task = 0;            // pull, used: the rank
  index next_argument = 0;   // of the same task
  index next_dependent = 0;  // of the same object
  std::uint8_t kind = 0;     // of edge_kind
};
enum edge_kind : std::uint8_t { edge_dep = 1, edge_held = 2, edge_pull = 3, edge_used = 4, edge_dead = 5 };

// The counts of ranks beyond an entry's first: (entry, rank) -> count.
class account_book {
 public:
  std::uint32_t* find(index e, rank_t r) {
    auto at = counts_.find(key(e, r));
    return at == counts_.end() ? nullptr : &at.value();
  }
  void add(index e, rank_t r) { counts_.emplace(key(e, r), 1); }
  void erase(index e, rank_t r) { counts_.erase(key(e, r)); }
  std::size_t size() const { return counts_.size(); }

 private:
  static std::uint64_t key(index e, rank_t r) { return (std::uint64_t{e} << 32) | r; }
  struct mix {
    // The low bits, which robin_map takes, must depend on the entry in the high half of the key.
    std::size_t operator()(std::uint64_t k) const { return (k * 0x9e37'79b9'7f4a'7c15u) >> 32; }
  };
  tsl::robin_map<std::uint64_t, std::uint32_t, mix> counts_;
};

// The variable part of a task as the head keeps it: then name, bytes.
struct spawned_rest {
  object_id parent = 0;
  std::uint64_t mask = 0;
  std::uint32_t name = 0;
  std::uint32_t bytes = 0;
};

}  // namespace rota::scheduler
