#include "runtime/worker/store_link.h"

#include <algorithm>

#include "runtime/base/pages.h"

namespace rota::detail {
namespace {

// Free memory that stays populated, so that the next large value is not slowed by fresh pages.
constexpr std::size_t most_kept = std::size_t{256} << 20;
constexpr std::size_t forgotten_at_once = 1024;

}  // namespace

store_link::store_link(const objectstore::node_memory& memory, std::span<std::byte> ledger, rank_t self,
                       std::size_t node_rank, rank_t keeper, objectstore::values::books books, disk_thread& disk,
                       std::string folder)
    : memory_(memory),
      board_(*memory.boards[node_rank]),
      self_(self),
      keeper_(keeper),
      keep_bytes_(std::min(most_kept, memory.pool.size() / 8)),
      disk_(disk),
      files_(std::move(folder)),
      values_(memory, node_rank, ledger, books),
      pins_(memory, node_rank) {
  if (self == keeper) table_.emplace(extents());
}

std::optional<place> store_link::try_reserve(std::size_t bytes) {
  const auto room = books([&](objectstore::values& v) { return v.reserve(bytes); });
  if (!room) return std::nullopt;
  return place{room->data, room->place};
}

void store_link::seal(std::uint64_t cell, objectstore::origin from) {
  books([&](objectstore::values& v) { v.seal(cell, from); });
}

// To make holes in a file takes the disk's time: many at once, for neighbours share one, and not so many that a value
// which is to come back waits for them.
void store_link::forget(std::vector<objectstore::disk_place> gone) {
  gone_.insert(gone_.end(), gone.begin(), gone.end());
  if (!forgetting_ && !gone_.empty()) forget_some();
}

void store_link::forget_some() {
  forgetting_ = true;
  const auto first = gone_.end() - static_cast<std::ptrdiff_t>(std::min(gone_.size(), forgotten_at_once));
  std::vector<objectstore::disk_place> some(first, gone_.end());
  gone_.erase(first, gone_.end());
  disk_.later([this, some = std::move(some)] { files_.forget(some); },
              [this] {
                note_spilled();
                forgetting_ = false;
                if (!gone_.empty()) forget_some();
              });
}

void store_link::free(std::uint64_t cell, wire::outbox& out) {
  std::vector<objectstore::disk_place> gone;
  std::size_t spare = 0;
  std::vector<objectstore::run> idle;
  books([&](objectstore::values& v) {
    v.free(cell, gone);
    spare = v.memory().free_bytes();
    idle = v.take_idle_books();
  });
  for (objectstore::run r : idle) give_back(r, out);
  forget(std::move(gone));
  if (spare > keep_bytes_ + keep_bytes_ / 2 + objectstore::extent_bytes) trim(keep_bytes_, out);
}

void store_link::trim(std::size_t keep, wire::outbox& out) {
  for (objectstore::run r : books([&](objectstore::values& v) { return v.memory().trim(keep); })) give_back(r, out);
  for (objectstore::run r : books([](objectstore::values& v) { return v.take_idle_books(); })) give_back(r, out);
}

void store_link::give_back_all(wire::outbox& out) { trim(0, out); }

void store_link::give_back(objectstore::run r, wire::outbox& out) {
  base::release(memory_.pool.data() + r.first * objectstore::extent_bytes, r.count * objectstore::extent_bytes);
  if (table_) return table_->give_back(self_, r);
  grant_head head;
  head.type = wire::message::give_back;
  head.first = r.first;
  head.count = r.count;
  out.send(keeper_, wire::as_bytes(head));
}

std::uint32_t store_link::request(std::uint32_t count, objectstore::extent_table::side from, wire::outbox& out) {
  grant_head head;
  head.from = from;
  head.count = count;
  head.number = ++next_number_;
  if (!table_) {
    out.send(keeper_, wire::as_bytes(head));
    return head.number;
  }
  answers_[head.number] = answer_to(self_, head);
  return head.number;
}

grant_head store_link::answer_to(rank_t rank, grant_head request) {
  std::optional<objectstore::run> granted = table_->grant(rank, request.count, request.from);
  request.type = wire::message::granted;
  request.first = granted ? granted->first : 0;
  request.count = granted ? granted->count : 0;
  request.largest = table_->largest_free();
  return request;
}

std::optional<grant_head> store_link::answer(std::uint32_t number) {
  auto found = answers_.find(number);
  if (found == answers_.end()) return std::nullopt;
  grant_head head = found->second;
  answers_.erase(found);
  return head;
}

void store_link::withdraw(std::uint32_t number, wire::outbox& out) {
  const std::optional<grant_head> came = answer(number);
  if (!came) {
    withdrawn_.insert(number);
  } else if (came->count > 0) {
    give_back({came->first, came->count}, out);
  }
}

bool store_link::adopt(objectstore::run granted, bool for_books) {
  std::byte* start = memory_.pool.data() + granted.first * objectstore::extent_bytes;
  if (!base::populate(start, granted.count * objectstore::extent_bytes)) return false;
  books([&](objectstore::values& v) { for_books ? v.add_books(granted) : v.memory().add(granted); });
  return true;
}

bool store_link::receive(rank_t from, bytes_view record, wire::outbox& out) {
  switch (wire::type_of(record)) {
    case wire::message::grant: {
      out.send(from, wire::as_bytes(answer_to(from, base::cursor(record).get<grant_head>())));
      return true;
    }
    case wire::message::granted: {
      auto head = base::cursor(record).get<grant_head>();
      answers_[head.number] = head;
      if (withdrawn_.erase(head.number) > 0) withdraw(head.number, out);
      return true;
    }
    case wire::message::give_back: {
      auto head = base::cursor(record).get<grant_head>();
      if (head.count == 0) {  // others need what this rank keeps for later
        give_back_all(out);
      } else {
        table_->give_back(from, {head.first, head.count});
      }
      return true;
    }
    default:
      return false;
  }
}

std::size_t store_link::live_objects() {
  return books([](const objectstore::values& v) { return v.count(); });
}

}  // namespace rota::detail
