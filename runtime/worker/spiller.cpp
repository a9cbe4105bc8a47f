#include "runtime/worker/spiller.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <algorithm>

#include "runtime/base/log.h"

namespace rota::detail {
namespace {

// Enough that a disk works at its speed, and not so much of a small store that it is empty at once.
constexpr std::size_t batch_bytes = std::size_t{64} << 20;
constexpr std::size_t batches_of_store = 8;
constexpr unsigned returns_per_batch = 8;
constexpr auto freshness = std::chrono::milliseconds(5);  // who looks asks again after 10
constexpr auto pause_when_full = std::chrono::milliseconds(200);
constexpr auto pause_of_warnings = std::chrono::minutes(1);

// Half of what the folder has free; all where nobody knows: then writing says what is wrong.
std::uint64_t chosen_quota(const std::string& folder, std::uint64_t spilled) {
  struct statvfs about {};
  if (statvfs(folder.c_str(), &about) != 0) return spiller::chosen;
  return (std::uint64_t{about.f_bavail} * about.f_frsize + spilled) / 2;
}

}  // namespace

struct spiller::batch {
  std::vector<objectstore::values::leaving> values;
  std::vector<bytes_view> pieces;
  objectstore::spill_files::written done;
  bool whole = true;         // the quota left out nothing
  bool for_another = false;  // rank
  bool ahead = false;        // nobody waits
};

// Bytes that may still be written. Two ranks that look at the same moment may pass the quota by a batch.
std::uint64_t spiller::room_left() {
  std::uint64_t spilled = 0;
  for (const objectstore::board* b : memory_.boards) spilled += b->spilled.load(std::memory_order_relaxed);  // a number
  if (limits_.quota == chosen) limits_.quota = chosen_quota(limits_.folder, spilled);
  return limits_.quota > spilled ? limits_.quota - spilled : 0;
}

bool spiller::may_write() {
  if (limits_.quota == 0) {
    why_full_ = "nothing is spilled to disk (--rota-spill-quota=0)";
    return false;
  }
  return std::chrono::steady_clock::now() >= again_;
}

std::size_t spiller::batch_size() const { return std::min(batch_bytes, memory_.pool.size() / batches_of_store); }

void spiller::make_room(std::size_t bytes, taker whom, wire::outbox& out) {
  // Many may look for room at once: what has just come free serves them first, as far as it is there still.
  const auto now = std::chrono::steady_clock::now();
  auto& fresh_until = whom.another_rank ? others_fresh_until_ : own_fresh_until_;
  const std::size_t there = whom.another_rank
                                ? freed_for_others_
                                : store_.books([](objectstore::values& v) { return v.memory().free_bytes(); });
  if (now < fresh_until && bytes <= there) return;
  const bool writes = may_write() && !writing_;
  objectstore::values::evicted found = store_.books(
      [&](objectstore::values& v) { return v.evict(std::max(bytes, batch_size()), writes ? batch_size() : 0); });
  if (found.bytes > 0) fresh_until = now + freshness;
  if (found.bytes > 0 && whom.another_rank) {
    freed_for_others_ = found.bytes;
    store_.give_back_all(out);
  }
  if (writing_) {
    board_.stuck.store(0, std::memory_order_relaxed);  // a hint: it will have something
    wanted_ |= found.bytes == 0;
    wanted_elsewhere_ |= wanted_ && whom.another_rank;
  } else if (!found.to_write.empty()) {
    auto b = std::make_shared<batch>();
    b->for_another = whom.another_rank;
    write(std::move(found), std::move(b), out);
  } else if (found.bytes > 0 && writes && (!whom.returning || ++returns_ % returns_per_batch == 0)) {
    write_ahead(out);
  }
}

void spiller::write_ahead(wire::outbox& out) {
  objectstore::values::evicted found = store_.books([&](objectstore::values& v) { return v.pick_ahead(batch_size()); });
  if (found.to_write.empty()) return;
  auto b = std::make_shared<batch>();
  b->ahead = true;
  write(std::move(found), std::move(b), out);
}

void spiller::write(objectstore::values::evicted found, std::shared_ptr<batch> b, wire::outbox& out) {
  b->values = std::move(found.to_write);
  std::uint64_t left = room_left(), taken = 0;
  // What the quota does not allow stays.
  const auto end = std::find_if(b->values.begin(), b->values.end(), [&](const objectstore::values::leaving& one) {
    taken += one.data.size();
    return taken > left;
  });
  if (end != b->values.end()) {
    why_full_ = fmt::format("the {} bytes that may be spilled to {} are used up (--rota-spill-quota)", limits_.quota,
                            limits_.folder);
    store_.books([&](objectstore::values& v) { v.not_written({end, b->values.end()}); });
    b->values.erase(end, b->values.end());
    b->whole = false;
    if (b->values.empty()) {
      again_ = std::chrono::steady_clock::now() + pause_when_full;
      return;
    }
  }
  for (const objectstore::values::leaving& one : b->values) b->pieces.push_back(one.data);
  writing_ = true;
  // What failed is tried again, but nobody waits longer for it. relaxed: a hint, as below.
  board_.writing.store(failed_ ? 0 : 1, std::memory_order_relaxed);
  wanted_ = wanted_elsewhere_ = false;
  disk_.later([this, b] { b->done = store_.files().write(b->pieces); }, [this, b, &out] { wrote(*b, out); });
}

void spiller::wrote(batch& b, wire::outbox& out) {
  writing_ = false;
  board_.writing.store(0, std::memory_order_relaxed);
  failed_ = !b.done.why.empty();
  if (failed_) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= warns_again_) {
      base::log().warn("spilling: {}", b.done.why);
      warns_again_ = now + pause_of_warnings;
    }
    why_full_ = b.done.why;
    again_ = now + pause_when_full;
    return store_.books([&](objectstore::values& v) { v.not_written(b.values); });
  }
  const bool stay = b.ahead && !wanted_;
  std::vector<objectstore::disk_place> forget;
  store_.books([&](objectstore::values& v) {
    if (stay) {
      v.cleaned(b.values, b.done.places, forget);
    } else {
      v.written(b.values, b.done.places, forget);
    }
  });
  store_.forget(std::move(forget));
  store_.note_spilled();
  if (b.whole) why_full_.clear();
  if (stay) return;
  if (b.for_another || wanted_elsewhere_) store_.give_back_all(out);
  if (b.whole) write_ahead(out);
}

}  // namespace rota::detail
