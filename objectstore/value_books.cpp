// Where the cells of values lie, and further pins: on the board, in the books behind the pool, in extents.
#include <algorithm>
#include <new>

#include "objectstore/values.h"
#include "runtime/base/pages.h"

namespace rota::objectstore {
namespace {

constexpr std::size_t cells_at_once = 8;  // a cache line
constexpr std::size_t page_bytes = 4096;
constexpr std::uint64_t populated_at_once = std::uint64_t{64} << 10;

}  // namespace

// A cell for each 512 bytes of the pool, which is enough until eight times what is in memory is on disk, where values
// are of 4 KiB; and never less than a page.
std::size_t values::books_for(std::size_t pool_bytes, std::size_t ranks) {
  return std::max(page_bytes, pool_bytes / 512 * sizeof(cell) / ranks / page_bytes * page_bytes);
}

// An area with so many bytes that nobody has used yet.
values::area* values::find_in_books(std::size_t bytes) {
  for (area& a : areas_) {
    if (a.end - a.next < bytes) continue;
    if (a.next + bytes <= a.populated) return &a;
    const std::uint64_t more = std::min(std::max<std::uint64_t>(bytes, populated_at_once), a.end - a.populated);
    if (base::populate(memory_.pool.data() + a.populated, more)) {
      a.populated += more;
      return &a;
    }
    a.end = a.next;  // the machine has no memory for it
  }
  return nullptr;
}

values::area* values::with_cell() {
  for (area& a : areas_) {
    if (!a.free.empty()) return &a;
  }
  area* a = find_in_books(cells_at_once * sizeof(cell));
  if (a == nullptr) return nullptr;
  for (std::size_t i = cells_at_once; i-- > 0;) {
    const std::uint64_t place = a->next + i * sizeof(cell);
    new (memory_.pool.data() + place) cell(0);
    a->free.push_back(place);
  }
  a->next += cells_at_once * sizeof(cell);
  return a;
}

bool values::lacks_cells() { return with_cell() == nullptr; }

void values::add_books(run granted) {
  heap_.keep_aside(granted, true);
  const std::uint64_t start = std::uint64_t{granted.first} * extent_bytes;
  area& a = areas_.emplace_back();
  a.extents = granted;
  a.next = start;
  a.end = a.populated = start + std::uint64_t{granted.count} * extent_bytes;
}

std::optional<std::uint64_t> values::take_for_pins(std::size_t bytes) {
  area* a = find_in_books(bytes);
  if (a == nullptr) return std::nullopt;
  a->pins = true;
  return std::exchange(a->next, a->next + (bytes + 63) / 64 * 64);
}

void values::drop_cell(std::uint64_t place) {
  memory_.at(place).store(0);
  const auto holds = [&](const area& a) {
    return place / extent_bytes >= a.extents.first && place / extent_bytes < a.extents.first + a.extents.count;
  };
  auto of = areas_.begin();
  if ((place & 1) == 0) of = place >= memory_.pool.size() ? of + 1 : std::find_if(of + 2, areas_.end(), holds);
  of->free.push_back(place);
  if (--of->live > 0 || of->extents.count == 0 || of->pins) return;
  heap_.keep_aside(of->extents, false);
  idle_books_.push_back(of->extents);
  areas_.erase(of);
}

}  // namespace rota::objectstore
