#include "objectstore/values.h"

#include <algorithm>
#include <functional>
#include <stdexcept>

namespace rota::objectstore {
namespace {

// Relaxed: a number for others to look at, which this rank alone writes.
void add(std::atomic<std::uint64_t>& to, std::uint64_t more) {
  to.store(to.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

}  // namespace

values::values(const node_memory& memory, std::size_t self, std::span<std::byte> ledger, books own)
    : memory_(memory), board_(*memory.boards[self]), heap_(memory.pool, ledger) {
  areas_.resize(2);
  for (std::size_t i = board::cells_here; i-- > 0;) areas_[0].free.push_back(node_memory::place_on_board(self, i));
  areas_[1].next = areas_[1].populated = own.start;
  areas_[1].end = own.start + own.bytes;
}

values::record& values::known(std::uint64_t place, const char* call) {
  auto found = by_place_.find(place);
  if (found != by_place_.end()) return records_[found->second];
  throw std::logic_error(std::string("values::") + call + ": there is no value at this place");
}

// -- making and freeing -----------------------------------------------------------------------------------------------

std::optional<values::room> values::reserve(std::size_t bytes) {
  area* cells = with_cell();
  if (cells == nullptr) return std::nullopt;
  const std::optional<std::size_t> offset = heap_.allocate(bytes);
  if (!offset) return std::nullopt;
  const index i = records_.add();
  record& r = records_[i];
  r.place = cells->free.back();
  cells->free.pop_back();
  ++cells->live;
  r.offset = *offset;
  r.size = bytes;
  by_place_.emplace(r.place, i);
  show(r);
  count_in(bytes);
  return room{memory_.pool.data() + r.offset, r.place};
}

void values::seal(std::uint64_t place, origin from) {
  record& r = known(place, "seal");
  if (r.at != stage::open) throw std::logic_error("values::seal: it is sealed already");
  r.at = stage::here;
  r.from = from;
  enlist(by_place_.find(place)->second);
}

void values::free(std::uint64_t place, std::vector<disk_place>& forget) {
  record& r = known(place, "free");
  if (r.freed) throw std::logic_error("values::free: it is freed already");
  const index i = by_place_.find(place)->second;
  if (r.at == stage::leaving || r.at == stage::returning || r.lent > 0) {
    r.freed = true;
    return;
  }
  erase(i, forget);
}

void values::erase(index i, std::vector<disk_place>& forget) {
  record& r = records_[i];
  if (r.at == stage::here || r.at == stage::away) delist(i);
  if (r.at != stage::away && r.at != stage::returning) {
    heap_.free(r.offset);
    count_out(r.size);
  }
  if (r.on_disk) forget.push_back(r.disk);
  const std::uint64_t place = r.place;
  by_place_.erase(place);
  records_.erase(i);
  drop_cell(place);
}

void values::count_in(std::uint64_t size) {
  add(board_.held, size);
  add(board_.values, 1);
  board_.stuck.store(0, std::memory_order_relaxed);  // a hint
}

void values::count_out(std::uint64_t size) {
  add(board_.held, 0 - size);
  add(board_.values, 0 - std::uint64_t{1});
  add(board_.left, footprint(size));
}

void values::enlist(index i) {
  record& r = records_[i];
  list& l = list_of(r);
  r.prev = l.last;
  r.next = 0;
  (l.last ? records_[l.last].next : l.first) = i;
  l.last = i;
}

void values::enlist_first(index i) {
  record& r = records_[i];
  list& l = list_of(r);
  r.prev = 0;
  r.next = l.first;
  (l.first ? records_[l.first].prev : l.last) = i;
  l.first = i;
}

void values::delist(index i) {
  record& r = records_[i];
  list& l = list_of(r);
  (r.prev ? records_[r.prev].next : l.first) = r.next;
  (r.next ? records_[r.next].prev : l.last) = r.prev;
}

values::whereabouts values::where(std::uint64_t place) const {
  auto found = by_place_.find(place);
  if (found == by_place_.end()) return whereabouts::unknown;
  const record& r = records_[found->second];
  if (r.freed) return whereabouts::unknown;
  if (r.at == stage::returning) return whereabouts::on_its_way;
  return r.at == stage::away ? whereabouts::away : whereabouts::in_memory;
}

std::uint64_t values::size_of(std::uint64_t place) const {
  auto found = by_place_.find(place);
  return found == by_place_.end() ? 0 : records_[found->second].size;
}

bytes_view values::lend(std::uint64_t place) {
  record& r = known(place, "lend");
  if (r.at == stage::away || r.at == stage::returning) throw std::logic_error("values::lend: it is not in memory");
  ++r.lent;
  return {memory_.pool.data() + r.offset, r.size};
}

std::optional<disk_place> values::lend_from_disk(std::uint64_t place) {
  record& r = known(place, "lend_from_disk");
  if (r.at != stage::away && r.at != stage::returning)
    throw std::logic_error("values::lend_from_disk: it is in memory");
  if (!r.on_disk || r.freed) return std::nullopt;
  ++r.lent;
  return r.disk;
}

void values::lend_over(std::uint64_t place, std::vector<disk_place>& forget) {
  record& r = known(place, "lend_over");
  if (--r.lent > 0 || !r.freed || r.at == stage::leaving || r.at == stage::returning) return;
  erase(by_place_.find(place)->second, forget);
}

// -- leaving ----------------------------------------------------------------------------------------------------------

// Of those that are looked at: which are pinned, by any rank, and which were read lately.
void values::mark_pinned() {
  pins::each(memory_, [this](std::uint64_t place, bool now) {
    auto found = by_place_.find(place);
    if (found == by_place_.end()) return;
    record& r = records_[found->second];
    if (r.looked_at && (now || !std::exchange(r.spared, true))) r.pinned = true;
  });
}

void values::leave_memory(index i) {
  record& r = records_[i];
  heap_.free(r.offset);
  count_out(r.size);
  r.at = stage::away;
  r.spared = false;
  enlist(i);
}

// Looks through a list from its front until `bytes` are found. Those that are in use go behind the others.
void values::evict_from(list& l, std::size_t bytes, evicted& out) {
  const bool writes = &l == &own_;
  std::vector<index> candidates;
  std::size_t left = records_.live();  // at most; so that none is met without end
  for (index i = l.first; i && out.found < bytes && left > 0;) {
    candidates.clear();
    std::size_t hoped = out.found;
    for (; i && hoped < bytes && left > 0; i = records_[i].next, --left) {
      record& r = records_[i];
      if (r.lent > 0) continue;
      candidates.push_back(i);
      hoped += footprint(r.size);
      r.looked_at = true;
      if (!writes) hide(r);
    }
    mark_pinned();
    for (index c : candidates) {
      record& r = records_[c];
      delist(c);
      r.looked_at = false;
      if (std::exchange(r.pinned, false)) {
        show(r);
        enlist(c);
        continue;
      }
      out.found += footprint(r.size);
      if (!writes) {
        out.bytes += r.size;
        leave_memory(c);
      } else {
        r.at = stage::leaving;
        out.to_write.push_back({r.place, {memory_.pool.data() + r.offset, r.size}});
      }
    }
  }
}

values::evicted values::evict(std::size_t bytes, std::size_t most_to_write) {
  evicted out;
  // Twice: what was read lately is passed over once.
  for (int round = 0; round < 2; ++round) {
    evict_from(copies_, bytes, out);
    evict_from(clean_, bytes, out);
    if (out.to_write.empty()) evict_from(own_, std::min(bytes, out.found + most_to_write), out);
  }
  board_.stuck.store(out.found == 0 ? 1 : 0, std::memory_order_relaxed);  // a hint
  return out;
}

values::evicted values::pick_ahead(std::size_t bytes) {
  evicted out;
  evict_from(own_, bytes, out);
  return out;
}

void values::cleaned(std::span<const leaving> kept, std::span<const disk_place> where,
                     std::vector<disk_place>& forget) {
  for (std::size_t n = kept.size(); n-- > 0;) {
    record& r = known(kept[n].place, "cleaned");
    const index i = by_place_.find(r.place)->second;
    r.disk = where[n];
    r.on_disk = true;
    r.at = stage::here;
    enlist_first(i);
    if (r.freed && r.lent == 0) erase(i, forget);
  }
}

std::size_t values::written(std::span<const leaving> gone, std::span<const disk_place> where,
                            std::vector<disk_place>& forget) {
  std::size_t bytes = 0;
  for (std::size_t n = 0; n < gone.size(); ++n) {
    record& r = known(gone[n].place, "written");
    r.disk = where[n];
    r.on_disk = true;
    r.spared = true;  // it has been looked for once
    r.looked_at = true;
    hide(r);
  }
  mark_pinned();
  for (const leaving& one : gone) {
    const index i = by_place_.find(one.place)->second;
    record& r = records_[i];
    r.looked_at = false;
    const bool in_use = std::exchange(r.pinned, false) || r.lent > 0;
    r.at = stage::here;
    enlist(i);
    if (r.freed && r.lent == 0) {
      bytes += r.size;
      erase(i, forget);
    } else if (in_use) {
      show(r);
    } else {
      delist(i);
      bytes += r.size;
      leave_memory(i);
    }
  }
  return bytes;
}

void values::not_written(std::span<const leaving> kept) {
  std::vector<disk_place> none;
  for (const leaving& one : kept) {
    const index i = by_place_.find(one.place)->second;
    records_[i].at = stage::here;
    enlist(i);
    if (records_[i].freed && records_[i].lent == 0) erase(i, none);
  }
}

// -- coming back ------------------------------------------------------------------------------------------------------

values::backing values::begin_return(std::uint64_t place) {
  record& r = known(place, "begin_return");
  if (r.at != stage::away) throw std::logic_error("values::begin_return: it is not away");
  backing back{r.from, r.disk, std::nullopt};
  if (r.next && r.on_disk) back.next = records_[r.next].place;
  delist(by_place_.find(place)->second);
  r.at = stage::returning;
  return back;
}

std::optional<values::early_return> values::begin_early_return(std::uint64_t place, std::size_t most) {
  auto found = by_place_.find(place);
  if (found == by_place_.end()) return std::nullopt;
  const record& r = records_[found->second];
  if (r.at != stage::away || !r.on_disk || r.freed || r.size > most) return std::nullopt;
  const std::optional<std::size_t> offset = heap_.allocate(r.size);
  if (!offset) return std::nullopt;
  return early_return{begin_return(place), *offset, r.size};
}

bool values::returned(std::uint64_t place, std::uint64_t offset, std::vector<disk_place>& forget) {
  record& r = known(place, "returned");
  const index i = by_place_.find(place)->second;
  if (r.freed && r.lent == 0) {
    heap_.free(offset);
    erase(i, forget);
    return false;
  }
  r.offset = offset;
  r.at = stage::here;
  r.spared = false;
  show(r);
  count_in(r.size);
  enlist(i);
  return true;
}

void values::not_returned(std::uint64_t place, std::vector<disk_place>& forget) {
  record& r = known(place, "not_returned");
  const index i = by_place_.find(place)->second;
  r.at = stage::away;
  enlist_first(i);
  if (r.freed && r.lent == 0) erase(i, forget);
}

std::vector<std::uint64_t> values::largest(std::size_t most) const {
  std::vector<std::uint64_t> sizes;
  for (const auto& [place, i] : by_place_) {
    const record& r = records_[i];
    if (r.at != stage::away && r.at != stage::returning) sizes.push_back(r.size);
  }
  most = std::min(most, sizes.size());
  std::partial_sort(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(most), sizes.end(), std::greater<>());
  sizes.resize(most);
  return sizes;
}

}  // namespace rota::objectstore
