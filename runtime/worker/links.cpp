#include "runtime/worker/links.h"

#include <algorithm>

namespace rota::detail {

wake need_of(bytes_view record) {
  const wire::message type = wire::type_of(record);
  if (type == wire::message::count) return wake::all;
  if (type != wire::message::done) return wake::urgent;
  return base::cursor(record).get<wire::done_head>().served > 0 ? wake::all : wake::wanted;
}

links::links(mpi::node_window& window, std::vector<rank_t> ranks, int self)
    : window_(window), self_(self), self_rank_(ranks[static_cast<std::size_t>(self)]), peers_(ranks.size()) {
  by_rank_.resize(*std::max_element(ranks.begin(), ranks.end()) + 1, elsewhere);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    by_rank_[ranks[i]] = static_cast<std::uint32_t>(i);
    if (static_cast<int>(i) == self) continue;
    peers_[i].rank = ranks[i];
    peers_[i].out = window.writer_to(static_cast<int>(i));
    peers_[i].in = window.reader_from(static_cast<int>(i));
    peers_[i].bell = &window.bell(static_cast<int>(i));
  }
}

void links::connect(std::unique_ptr<far_links> far, std::size_t ranks) {
  far_ = std::move(far);
  by_rank_.resize(ranks, elsewhere);
}

void links::send(rank_t to, bytes_view record) {
  if (by_rank_[to] == elsewhere) return far_->send(to, record);
  peer& p = peers_[by_rank_[to]];
  write(p, record);
  p.need = std::max(p.need, need_of(record));
  if (!p.dirty) {
    p.dirty = true;
    dirty_.push_back(by_rank_[to]);
  }
}

void links::write(peer& p, bytes_view record) {
  std::size_t most = p.out.max_record();
  if (record.size() <= most) {
    if (p.backlog.empty() && try_write(p, record)) return;
    p.backlog.emplace_back().append(record);
    backlog_bytes_ += record.size();
    return;
  }
  while (!record.empty()) {
    std::size_t size = std::min(record.size(), most - sizeof(part_head));
    part_head head;
    head.last = size == record.size();
    base::buffer part;
    part.put(head);
    part.append(record.first(size));
    record = record.subspan(size);
    if (p.backlog.empty() && try_write(p, part.view())) continue;
    backlog_bytes_ += part.size();
    p.backlog.push_back(std::move(part));
  }
}

bool links::try_write(peer& p, bytes_view record) {
  std::byte* room = p.out.try_reserve(record.size());
  if (!room) return false;
  std::memcpy(room, record.data(), record.size());
  p.out.commit(record.size());
  return true;
}

void links::drain_backlog(peer& p) {
  bool any = false;
  while (!p.backlog.empty() && try_write(p, p.backlog.front().view())) {
    backlog_bytes_ -= p.backlog.front().size();
    p.backlog.pop_front();
    any = true;
  }
  if (any && p.backlog.empty()) p.out.want_room(false);
  if (!any || p.dirty) return;
  p.need = wake::urgent;
  p.dirty = true;
  dirty_.push_back(by_rank_[p.rank]);
}

bool links::anything_waits() {
  for (peer& p : peers_) {
    if (p.bell && !p.in.empty()) return true;
  }
  return far_ && far_->anything_waits();
}

void links::publish_near(wake whom) {
  if (backlog_bytes_ > 0) {
    for (peer& p : peers_) {
      if (!p.backlog.empty()) {
        if (p.out.has_unpublished()) p.out.publish();
        ring(p);
        drain_backlog(p);
        if (p.backlog.empty()) continue;
        // Whoever sleeps next, and wherever: the receiver rings when there is room.
        p.out.want_room(true);
        drain_backlog(p);
      }
    }
  }
  for (std::uint32_t i : dirty_) {
    peer& p = peers_[i];
    p.dirty = false;
    p.out.publish();
    if (std::exchange(p.need, wake::all) >= whom) {
      ring(p);
    } else if (!p.owed) {
      p.owed = true;
      owed_.push_back(i);
    }
  }
  dirty_.clear();
  if (whom != wake::all || owed_.empty()) return;
  for (std::uint32_t i : owed_) {
    if (peers_[i].owed) ring(peers_[i]);
  }
  owed_.clear();
}

// Once per sleep of the receiver: it changes the counter itself before each (process::sleep).
void links::ring(peer& p) {
  p.owed = false;
  std::atomic_thread_fence(std::memory_order_seq_cst);                // pairs with the fence in doorbell::prepare
  if (p.bell->sleeping.load(std::memory_order_relaxed) == 0) return;  // relaxed: ordered by the fence
  std::uint32_t seen = p.bell->counter.load(std::memory_order_relaxed);
  if (seen == p.rung_at) return;
  p.rung_at = p.bell->counter.fetch_add(1) + 1;
  base::futex_wake(p.bell->counter, 1 << 30);
}

bool links::await_room() {
  if (backlog_bytes_ == 0) return true;
  for (peer& p : peers_) {
    if (p.backlog.empty()) continue;
    p.out.want_room(true);
    std::size_t before = p.backlog.size();
    drain_backlog(p);
    if (p.backlog.size() < before) return false;
  }
  return true;
}

}  // namespace rota::detail
