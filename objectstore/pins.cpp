#include "objectstore/pins.h"

#include <new>

namespace rota::objectstore {

pins::pins(const node_memory& memory, std::size_t self) : memory_(memory), board_(*memory.boards[self]) {
  for (entry& e : board_.pins) add(e);
}

void pins::add(entry& e) {
  free_.push_back(static_cast<std::uint32_t>(entries_.size()));
  entries_.push_back(&e);
}

pins::taken pins::take(std::uint64_t place) {
  taken t;
  entry* e = nullptr;
  {
    std::lock_guard lock(mutex_);
    if (free_.empty()) return {outcome::full};
    t.slot = free_.front();
    free_.pop_front();
    e = entries_[t.slot];
  }
  e->store(place | valid);                              // seq_cst, both: see the class
  const std::uint64_t word = memory_.at(place).load();  //
  if (word == 0) {
    give_back(t.slot);
    return {outcome::away};
  }
  t.how = outcome::pinned;
  t.data = memory_.pool.data() + (word - 1);
  return t;
}

void pins::give_back(std::uint32_t slot) noexcept {
  std::lock_guard lock(mutex_);
  if (closed_) return;
  entry& e = *entries_[slot];
  // Release: what was read comes before; pairs with the owner's look. Relaxed: this rank alone writes it.
  e.store(e.load(std::memory_order_relaxed) | released, std::memory_order_release);
  free_.push_back(slot);
}

bool pins::full() const {
  std::lock_guard lock(mutex_);
  return free_.empty();
}

std::size_t pins::next_block() const {
  std::lock_guard lock(mutex_);
  return blocks_ < board::most_pin_blocks ? entries_of(blocks_) * sizeof(entry) : 0;
}

void pins::grow(std::uint64_t offset) {
  std::lock_guard lock(mutex_);
  auto* first = reinterpret_cast<entry*>(memory_.pool.data() + offset);
  for (std::size_t i = 0; i < entries_of(blocks_); ++i) add(*new (first + i) entry(0));
  board_.pin_blocks[blocks_++].store(offset + 1, std::memory_order_release);  // pairs with each
}

void pins::close() {
  std::lock_guard lock(mutex_);
  closed_ = true;
}

std::size_t pins::in_use() const {
  std::lock_guard lock(mutex_);
  return entries_.size() - free_.size();
}

}  // namespace rota::objectstore
