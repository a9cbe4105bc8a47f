#include "mpi/rma_fabric.h"

#include <rota/error.h>

#include <algorithm>
#include <thread>

#include "mpi/patience.h"
#include "mpi/world.h"
#include "runtime/base/clock.h"

namespace rota::mpi {
namespace {

std::vector<std::uint32_t> nodes_of(const world& w) {
  std::vector<std::uint32_t> nodes;
  for (const rank_facts& who : w.facts()) nodes.push_back(who.node);
  return nodes;
}

MPI_Comm own_comm(const world& w) {
  MPI_Comm comm = MPI_COMM_NULL;
  come_together(w.comm());
  check(MPI_Comm_dup(w.comm(), &comm), "MPI_Comm_dup");
  check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  return comm;
}

// A ring of its own for each pair and direction has sums of its own.
std::uint64_t seed_of(std::uint64_t cookie, rank_t from, rank_t to) {
  return cookie ^ (std::uint64_t{from} << 32) ^ (std::uint64_t{to} << 8);
}

}  // namespace

rma_fabric::rma_fabric(const world& w, const fabric_options& options)
    : options_(options),
      layout_(nodes_of(w), options.peer_rings),
      comm_(own_comm(w)),
      peers_(w.size()),
      progress_(comm_, tag_poll) {
  open_window();
  for (std::size_t i = layout_.granted_rings(options_.self); i > 0; --i) free_rings_.push_back(i - 1);
  for (rank_t r = 0; r < w.size(); ++r) {
    if (layout_.far(options_.self, r)) add_peer(r);
  }
  come_together(comm_);  // nobody puts into what is not cleared
  watch_.emplace(rma_watch::place{comm_, win_, tag_watch, tag_control});
}

void rma_fabric::open_window() {
  const std::size_t size = layout_.bytes(options_.self);
  come_together(comm_);
  mpi::check(MPI_Win_allocate(static_cast<MPI_Aint>(size), 1, MPI_INFO_NULL, comm_, &mine_, &win_), "MPI_Win_allocate");
  mpi::check(MPI_Win_set_errhandler(win_, MPI_ERRORS_RETURN), "MPI_Win_set_errhandler");
  int* model = nullptr;
  int there = 0;
  mpi::check(MPI_Win_get_attr(win_, MPI_WIN_MODEL, &model, &there), "MPI_Win_get_attr");
  if (there == 0 || *model != MPI_WIN_UNIFIED) throw config_error("this MPI keeps two copies of a window's memory");
  std::memset(mine_, 0, size);
  mpi::check(MPI_Win_lock_all(MPI_MODE_NOCHECK, win_), "MPI_Win_lock_all");
  mpi::check(MPI_Win_sync(win_), "MPI_Win_sync");
}

void rma_fabric::add_peer(rank_t r) {
  const rank_t self = options_.self;
  const bool star = r == 0 || self == 0;
  peers_[r] = std::make_unique<peer>(r, star ? layout_.star_ring() : rma_layout::granted_ring, mine_ + layout_.line(r),
                                     seed_of(options_.cookie, self, r), seed_of(options_.cookie, r, self));
  if (!star) return;
  peer& p = *peers_[r];
  p.state = way_out::open;
  p.ring_there = static_cast<MPI_Aint>(layout_.star(r, self));
  p.in.use(mine_ + layout_.star(self, r));
  p.reads = true;
  readable_.push_back(&p);
}

void rma_fabric::put(peer& p, std::size_t there, bytes_view bytes) {
  if (p.gone()) return;
  const int size = static_cast<int>(bytes.size());
  const int rc = MPI_Put(bytes.data(), size, MPI_BYTE, static_cast<int>(p.rank), static_cast<MPI_Aint>(there), size,
                         MPI_BYTE, win_);
  watch_->active(base::now_ns());  // there may be an answer
  if (rc != MPI_SUCCESS) fail(p, rc, "MPI_Put");
}

// Calls come from within loops over what broke() clears away.
void rma_fabric::fail(peer& p, int rc, const char* call) {
  try {
    mpi::check(rc, call);
  } catch (const error& e) {
    p.failure = e.what();
    failed_ = true;
  }
}

void rma_fabric::send(rank_t to, base::buffer batch) {
  peer& p = *peers_[to];
  if (p.gone() || batch.empty()) return;
  p.unsent += batch.size();
  unsent_ += batch.size();
  if (!p.busy()) busy_.push_back(&p);
  p.batches.push_back(std::move(batch));
  push(p);
  if (!p.busy()) std::erase(busy_, &p);
}

// Sends as far as there is room.
void rma_fabric::push(peer& p) {
  if (p.gone()) return;
  if (p.state == way_out::leaving && p.out.all_read()) {
    p.out.rest();
    p.state = way_out::none;
    tell(p, {.what = control::kind::returned});
  }
  if (p.state == way_out::none && !p.batches.empty()) {
    p.state = way_out::asked;
    tell(p, {.what = control::kind::ask});
  }
  if (p.state == way_out::open) push_parts(p);
}

void rma_fabric::push_parts(peer& p) {
  while (!p.batches.empty()) {
    const std::optional<std::size_t> room = p.out.room();
    if (!room) break;
    base::buffer& batch = p.batches.front();
    const bytes_view rest = batch.view().subspan(p.begun);
    const bytes_view part = rest.first(std::min(rest.size(), *room));
    const frame_writer::placed frame = p.out.write(part.size() == rest.size(), part);
    put(p, static_cast<std::size_t>(p.ring_there) + frame.offset, frame.bytes);
    p.begun += part.size();
    p.unsent -= part.size();
    unsent_ -= part.size();
    if (part.size() < rest.size()) continue;
    events_.keep(std::move(batch));
    p.batches.pop_front();
    p.begun = 0;
  }
}

// The window's flush, since nothing less says that MPI has no work left with a put. It waits for the receivers, each of
// which looks once in a while: asked for at the end only, and left to the watch.
void rma_fabric::flush() {
  flush_asked_ = true;
  flush_now();
}

void rma_fabric::flush_now() {
  if (!flush_asked_ || unsent_ > 0) return;
  if (!std::exchange(flushing_, true)) watch_->flush();
  if (watch_->flushed()) flush_asked_ = flushing_ = false;
}

bool rma_fabric::poll() {
  progress_.make();
  MPI_Win_sync(win_);
  bool any = poll_control();
  for (peer* p : readable_) any |= hear(*p);
  any |= poll_pieces();
  for (peer* p : busy_) push(*p);
  std::erase_if(busy_, [](const peer* p) { return !p->busy(); });
  flush_now();
  if (std::exchange(failed_, false)) {
    for (const auto& p : peers_) {
      if (p && !p->failure.empty()) broke(p->rank, p->failure);
    }
  }
  if (any) {
    ++moved_;
    watch_->active(base::now_ns());
  }
  watch_->busy(!expected_.empty() || !bulks_.empty());
  return !events_.empty();
}

bool rma_fabric::hear(peer& p) {
  constexpr int most = 64;  // then others have their turn
  int count = 0;
  for (; count < most && !p.gone(); ++count) {
    const std::optional<frame_reader::frame> f = p.in.front();
    if (!f) break;
    part_came(p, *f);
    p.in.pop(*f);
  }
  if (count > 0) p.used = ++uses_;
  if (p.in.owes(p.recalled)) give_credit(p);
  return count > 0;
}

void rma_fabric::give_credit(peer& p) {
  const frame_reader::credit credit = p.in.tell();
  put(p, layout_.line(options_.self) + credit.offset, credit.bytes);
}

void rma_fabric::part_came(peer& p, const frame_reader::frame& f) {
  if (p.coming.empty()) p.coming = spare();
  p.coming.append(f.body);
  if (f.head.last == 0) return;
  events_.batch(p.rank, std::move(p.coming));
  p.coming = {};
}

bool rma_fabric::arm() {
  if (poll()) return false;
  words_.clear();
  for (const peer* p : readable_) {
    if (!p->gone()) words_.push_back(p->in.next());
  }
  for (const peer* p : busy_) {
    if (!p->gone()) words_.push_back(p->out.next_credit());
  }
  watch_->arm(words_);
  return true;
}

void rma_fabric::broke(rank_t who, const std::string& why) {
  peer& p = *peers_[who];
  if (std::exchange(p.broken, true)) return;
  unsent_ -= std::exchange(p.unsent, 0);
  p.batches.clear();
  p.state = way_out::none;
  std::erase(askers_, &p);
  if (!leaving_) events_.broken(who, why);
  break_bulk(who);
}

void rma_fabric::close(std::chrono::steady_clock::time_point until) {
  leaving_ = true;
  while ((unsent_ > 0 || !controls_.empty()) && std::chrono::steady_clock::now() < until) {
    poll();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  watch_->end();
  mpi::check(MPI_Win_unlock_all(win_), "MPI_Win_unlock_all");
  mpi::check(MPI_Win_free(&win_), "MPI_Win_free");
  poll_control();  // what others sent before they came here is unheard, but received
  progress_.end();
  mpi::check(MPI_Comm_free(&comm_), "MPI_Comm_free");
}

std::unique_ptr<fabric> open_rma(const world& w, const fabric_options& options) {
  return std::make_unique<rma_fabric>(w, options);
}

}  // namespace rota::mpi
