// What a rank has to do with ranks of other nodes.
#include "runtime/base/log.h"
#include "runtime/worker/process.h"

namespace rota::detail {

void process::connect(std::unique_ptr<mpi::fabric> way, std::function<void(rank_t, const std::string&)> broken,
                      std::function<void()> run_ends) {
  run_ends_ = std::move(run_ends);
  far_out_.on_broken = std::move(broken);
  stored_.use(way.get());
  std::vector<rank_t> watched;  // a star with the head
  for (rank_t r = 0; r < setup_.world_size; ++r) {
    if (setup_.nodes[r] != setup_.node && (setup_.rank == 0 || r == 0)) watched.push_back(r);
  }
  links_.connect(std::make_unique<far_links>(std::move(way), setup_.world_size, std::move(watched),
                                             far_links::limits{values_.suspect_after, values_.lost_after},
                                             links_.own_bell(), far_out_),
                 setup_.world_size);
}

void process::disconnect(std::chrono::steady_clock::time_point until) {
  store().pins().close();
  if (links_.far()) links_.far()->close(until);
}

// A flush of another rank ends only when this one has answered: a connection in the making takes both sides.
void process::drive_fabric() {
  const std::lock_guard pump(mutex_);
  if (links_.far()) links_.far()->anything_waits();
}

std::string process::way_to(rank_t other) {
  turn at_the_pump(*this);
  return links_.far() ? links_.far()->way().way_to(other) : std::string();
}

void process::tell_run_ends() noexcept {
  far_links* far = links_.far();
  if (!far) return;
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
  while (!mutex_.try_lock()) {
    if (std::chrono::steady_clock::now() > until) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  try {
    const std::byte ends = static_cast<std::byte>(wire::message::run_ends);
    for (rank_t r = 0; r < setup_.world_size; ++r) {
      if (setup_.nodes[r] != setup_.node) far->send(r, {&ends, 1});
    }
    far->flush();
    while (!far->all_sent() && std::chrono::steady_clock::now() < until) {
      far->anything_waits();
      far->publish(wake::all);
    }
  } catch (const std::exception&) {
    // They find out by themselves.
  }
  mutex_.unlock();
}

void process::far_hearer::suspected(rank_t peer, bool silent) {
  if (silent) {
    base::log().warn("rank {} has said nothing to rank {} ({}) for {:.3g} s", peer, process_.setup_.rank,
                     process_.setup_.host, std::chrono::duration<double>(process_.values_.suspect_after).count());
  } else {
    base::log().warn("rank {} is heard again by rank {} ({})", peer, process_.setup_.rank, process_.setup_.host);
  }
}

void process::far_hearer::broken(rank_t peer, const std::string& why) { on_broken(peer, why); }
void process::far_hearer::received(std::uint64_t number, bool whole) {
  process_.heard_ = wake::urgent;
  process_.news_ = true;
  process_.stored_.received(number, whole);
}
void process::far_hearer::sent(rank_t to, std::uint64_t number) { process_.stored_.sent(to, number); }

// True once all that was sent has left this rank.
bool process::flush_links(deadline until) {
  visit([this](agent::agent&) { links_.flush(); });
  return wait_until([this] { return links_.all_sent(); }, until);
}

}  // namespace rota::detail
