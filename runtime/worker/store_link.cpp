#include "runtime/worker/store_link.h"

#include <algorithm>

#include "runtime/base/pages.h"

namespace rota::detail {
namespace {

// Free memory that stays populated, so that the next large value is not slowed by fresh pages.
constexpr std::size_t most_kept = std::size_t{256} << 20;

}  // namespace

store_link::store_link(std::span<std::byte> pool, std::span<std::byte> ledger, rank_t self, rank_t keeper)
    : pool_(pool),
      self_(self),
      keeper_(keeper),
      keep_bytes_(std::min(most_kept, pool.size() / 8)),
      heap_(pool, ledger) {
  if (self == keeper) table_.emplace(extents());
}

std::optional<place> store_link::try_reserve(std::size_t bytes) {
  std::lock_guard lock(mutex_);
  std::optional<std::size_t> offset = heap_.allocate(bytes);
  if (!offset) return std::nullopt;
  return place{pool_.data() + *offset, *offset};
}

void store_link::free(std::uint64_t offset, wire::outbox& out) {
  {
    std::lock_guard lock(mutex_);
    heap_.free(offset);
    if (heap_.free_bytes() <= keep_bytes_ + keep_bytes_ / 2 + objectstore::extent_bytes) return;
  }
  trim(keep_bytes_, out);
}

void store_link::trim(std::size_t keep, wire::outbox& out) {
  std::vector<objectstore::run> runs;
  {
    std::lock_guard lock(mutex_);
    runs = heap_.trim(keep);
  }
  for (objectstore::run r : runs) give_back(r, out);
}

void store_link::give_back_all(wire::outbox& out) { trim(0, out); }

void store_link::give_back(objectstore::run r, wire::outbox& out) {
  base::release(pool_.data() + r.first * objectstore::extent_bytes, r.count * objectstore::extent_bytes);
  if (table_) return table_->give_back(self_, r);
  grant_head head;
  head.type = wire::message::give_back;
  head.first = r.first;
  head.count = r.count;
  out.send(keeper_, wire::as_bytes(head));
}

std::uint32_t store_link::request(std::uint32_t count, wire::outbox& out) {
  grant_head head;
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
  std::optional<objectstore::run> granted = table_->grant(rank, request.count);
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

bool store_link::adopt(objectstore::run granted) {
  std::byte* start = pool_.data() + granted.first * objectstore::extent_bytes;
  if (!base::populate(start, granted.count * objectstore::extent_bytes)) return false;
  std::lock_guard lock(mutex_);
  heap_.add(granted);
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
      return true;
    }
    case wire::message::give_back: {
      auto head = base::cursor(record).get<grant_head>();
      if (head.count == 0) {  // from the keeper: others need what this rank keeps for later
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
  std::lock_guard lock(mutex_);
  return heap_.live_objects();
}

std::size_t store_link::used_bytes() {
  std::lock_guard lock(mutex_);
  return heap_.used_bytes();
}

}  // namespace rota::detail
