#include "runtime/worker/far_links.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/clock.h"
#include "runtime/base/running_mean.h"
#include "runtime/wire/messages.h"

namespace rota::detail {
namespace {

// A batch that is this large goes without waiting for more.
constexpr std::size_t full_batch = std::size_t{16} << 10;
// On its way to one receiver at most; the rest waits here, where it is seen.
constexpr std::size_t most_unsent = std::size_t{1} << 20;

constexpr std::uint64_t leisure_ns = 100'000;
constexpr std::uint64_t longest_beat_ns = 1'000'000'000, shortest_beat_ns = 1'000'000;

std::uint64_t beat(const far_links::limits& silence) {
  const auto shorter = std::min(silence.suspect_after, silence.lost_after);
  return std::clamp(static_cast<std::uint64_t>(shorter.count()) / 5, shortest_beat_ns, longest_beat_ns);
}

// So often the ringer rings at once though nothing came of it the last time; then later.
constexpr std::uint32_t few_in_vain = 8;
constexpr std::chrono::milliseconds pause_in_vain{1};

constexpr std::size_t padded(std::size_t size) { return (size + 7) & ~std::size_t{7}; }

}  // namespace

far_links::far_links(std::unique_ptr<mpi::fabric> way, std::size_t ranks, std::vector<rank_t> watched, limits silence,
                     mpi::doorbell& bell, hearer& who)
    : way_(std::move(way)),
      beat_ns_(beat(silence)),
      silence_(silence),
      ringer_(way_->event_fd(), bell, std::chrono::milliseconds(std::max<std::uint64_t>(1, beat_ns_ / 1'000'000))),
      who_(who),
      watched_(std::move(watched)),
      peers_(ranks) {
  last_look_ = last_beat_ = base::now_ns();
  for (rank_t r : watched_) {
    peers_[r].watched = true;
    peers_[r].heard = last_beat_;
  }
}

void far_links::send(rank_t to, bytes_view record) {
  peer& p = peers_[to];
  if (!p.dirty) {
    p.dirty = true;
    dirty_.push_back(to);
    p.batch = way_->spare();
  }
  p.need = std::max(p.need, need_of(record));
  // Records begin at multiples of eight bytes.
  p.batch.put(static_cast<std::uint64_t>(record.size()));
  std::byte* place = p.batch.extend(padded(record.size()));
  std::memcpy(place, record.data(), record.size());
  std::fill(place + record.size(), place + padded(record.size()), std::byte{0});
}

void far_links::publish(wake whom) {
  if (!dirty_.empty()) send_batches([whom](const peer& p) { return p.need >= whom; });
}

void far_links::publish_leisurely() {
  if (dirty_.empty()) return;
  const std::uint64_t now = base::now_ns();
  send_batches([now](peer& p) {
    if (now - p.sent < leisure_ns) return false;
    p.sent = now;
    return true;
  });
}

template <class May>
void far_links::send_batches(May&& may) {
  backlog_bytes_ = 0;
  std::erase_if(dirty_, [&](rank_t to) {
    peer& p = peers_[to];
    if (p.lost) {
      p.batch.clear();
      p.dirty = false;
      return true;
    }
    if (!may(p) && p.batch.size() < full_batch) return false;
    if (way_->unsent(to) > most_unsent) {
      backlog_bytes_ += p.batch.size();
      return false;
    }
    p.dirty = false;
    p.need = wake::all;
    way_->send(to, std::move(p.batch));
    return true;
  });
}

bool far_links::receive(const std::function<void(rank_t, bytes_view)>& use) {
  use_ = &use;
  return way_->take(*this);
}

void far_links::batch(rank_t from, bytes_view bytes) {
  heard(from);
  if (waits_since_ != 0) {
    const auto waited = static_cast<float>(base::now_ns() - std::exchange(waits_since_, 0));
    mean_wait_ns_ = base::moved_mean(mean_wait_ns_, waited, 0.1f);
  }
  base::cursor cursor(bytes);
  const std::byte* const end = bytes.data() + bytes.size();
  while (cursor.at() < end) {
    const auto size = static_cast<std::size_t>(cursor.get<std::uint64_t>());
    const bytes_view record = cursor.take(padded(size)).first(size);
    if (wire::type_of(record) != wire::message::heartbeat) (*use_)(from, record);
  }
}

void far_links::tend() {
  const std::uint64_t now = base::now_ns();
  // Silence counts up to the moment when this rank last looked: one that was stopped itself, or had no core for long,
  // must not blame the others for it.
  const std::uint64_t looked = std::exchange(last_look_, now);
  if (now - last_beat_ < beat_ns_) return;
  last_beat_ = now;
  const std::byte beat = static_cast<std::byte>(wire::message::heartbeat);
  for (rank_t r : watched_) {
    peer& p = peers_[r];
    if (p.lost) continue;
    send(r, {&beat, 1});
    if (forgiving_) continue;
    const auto silent = std::chrono::nanoseconds(looked > p.heard ? looked - p.heard : 0);
    const bool suspect = silent > silence_.suspect_after;
    if (suspect != std::exchange(p.suspected, suspect)) who_.suspected(r, suspect);
    if (silent > silence_.lost_after) {
      lose(r, fmt::format("nothing was heard of it for {:.3g} s", std::chrono::duration<double>(silent).count()));
    }
  }
  // Two ranks that cannot speak to each other: the head, which knows more, has had time to end the run.
  for (rank_t r = 0; r < peers_.size(); ++r) {
    peer& p = peers_[r];
    if (p.why.empty() || p.lost || now - p.heard < static_cast<std::uint64_t>(silence_.lost_after.count())) continue;
    lose(r, p.why);
  }
  publish(wake::all);
}

void far_links::broken(rank_t who, const std::string& why) {
  peer& p = peers_[who];
  if (p.watched) return lose(who, "the connection broke: " + why);
  p.why = "the connection to it broke: " + why;
  p.heard = base::now_ns();
}

void far_links::lose(rank_t who, const std::string& why) {
  if (std::exchange(peers_[who].lost, true)) return;
  way_->sever(who);
  who_.broken(who, why);
}

// UCX's descriptor can stay readable while there is nothing to do: over TCP as long as a connection waits for its
// peer's answer. A rank that woke for it each time would keep its peer, on the same core, from answering.
bool far_links::arm() {
  if (!way_->arm()) return false;
  const std::uint32_t rings = ringer_.rings();
  if (const std::uint64_t moved = way_->moved(); std::exchange(moved_when_armed_, moved) != moved) {
    rings_in_vain_ = 0;
  } else if (rings != rings_when_armed_) {
    ++rings_in_vain_;
  }
  rings_when_armed_ = rings;
  ringer_.arm(rings_in_vain_ < few_in_vain ? std::chrono::nanoseconds(0) : pause_in_vain);
  return true;
}

}  // namespace rota::detail
