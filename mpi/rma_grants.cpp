// Messages of MPI's between ranks: rings that are asked for, granted, recalled and returned.
#include <algorithm>

#include "mpi/rma_fabric.h"
#include "runtime/base/clock.h"

namespace rota::mpi {

void rma_fabric::tell(peer& p, const control& what) {
  if (p.gone()) return;
  auto& [request, sent] = controls_.emplace_back(MPI_REQUEST_NULL, what);
  const int rc = MPI_Isend(&sent, sizeof sent, MPI_BYTE, static_cast<int>(p.rank), tag_control, comm_, &request);
  watch_->active(base::now_ns());
  if (rc == MPI_SUCCESS) return;
  controls_.pop_back();
  fail(p, rc, "MPI_Isend");
}

// True if some came.
bool rma_fabric::poll_control() {
  controls_.remove_if([](auto& one) {
    int done = 0;
    return MPI_Test(&one.first, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0;
  });
  for (bool any = false;; any = true) {
    int there = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    if (MPI_Improbe(MPI_ANY_SOURCE, tag_control, comm_, &there, &message, &status) != MPI_SUCCESS) return any;
    if (there == 0) return any;
    control what{};
    peer& p = *peers_[static_cast<rank_t>(status.MPI_SOURCE)];
    const int rc = MPI_Mrecv(&what, sizeof what, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    if (rc != MPI_SUCCESS) {
      fail(p, rc, "MPI_Mrecv");
    } else if (!p.gone() && win_ != MPI_WIN_NULL) {
      heard(p, what);
    }
  }
}

void rma_fabric::heard(peer& p, const control& what) {
  switch (what.what) {
    case control::kind::ask:
      askers_.push_back(&p);
      grant_rings();
      break;
    case control::kind::granted:
      p.state = way_out::open;
      p.ring_there = static_cast<MPI_Aint>(layout_.granted(p.rank, what.which));
      push(p);
      break;
    case control::kind::recall:
      if (!p.busy()) busy_.push_back(&p);
      p.state = way_out::leaving;
      break;
    case control::kind::returned:
      ring_returned(p);
      break;
    case control::kind::forgotten:
      bulks_.erase({p.rank, what.number});  // it holds grants, and no bytes were given
      break;
    case control::kind::piece: {
      bulk& b = bulks_[{p.rank, what.number}];
      if (b.given) {
        send_piece(p, b, what);
      } else {
        b.granted.push_back(what);
      }
      break;
    }
  }
}

// In the order in which they were asked for.
void rma_fabric::grant_rings() {
  while (!askers_.empty() && !free_rings_.empty()) {
    peer& p = *askers_.front();
    askers_.pop_front();
    p.ring = free_rings_.back();
    free_rings_.pop_back();
    std::byte* const ring = mine_ + layout_.granted(options_.self, p.ring);
    std::memset(ring, 0, rma_layout::granted_ring);  // a mark of another writer's may be the next of this one
    MPI_Win_sync(win_);
    p.in.use(ring);
    p.reads = true;
    p.recalled = false;
    p.used = ++uses_;
    readable_.push_back(&p);
    tell(p, {.what = control::kind::granted, .which = static_cast<std::uint32_t>(p.ring)});
  }
  recall_rings();
}

// As many as are waited for: those that were quiet for longest. Whoever has more to send then asks again.
void rma_fabric::recall_rings() {
  const auto under_way =
      std::count_if(readable_.begin(), readable_.end(), [](const peer* p) { return p->recalled && !p->gone(); });
  for (auto recalled = static_cast<std::size_t>(under_way); recalled < askers_.size(); ++recalled) {
    peer* quiet = nullptr;
    for (peer* p : readable_) {
      const bool may = p->ring != no_ring && !p->recalled && !p->gone();
      if (may && (quiet == nullptr || p->used < quiet->used)) quiet = p;
    }
    if (quiet == nullptr) return;
    quiet->recalled = true;
    tell(*quiet, {.what = control::kind::recall});
    if (quiet->in.owes(true)) give_credit(*quiet);
  }
}

void rma_fabric::ring_returned(peer& p) {
  free_rings_.push_back(std::exchange(p.ring, no_ring));
  p.in.use(nullptr);
  p.reads = p.recalled = false;
  std::erase(readable_, &p);
  grant_rings();
}

}  // namespace rota::mpi
