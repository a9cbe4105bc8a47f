#include <fmt/format.h>
#include <rota/error.h>

#include <set>
#include <thread>

#include "mpi/fabric.h"
#include "mpi/world.h"

namespace rota::mpi {
namespace {

struct greeted final : fabric::listener {
  std::set<rank_t> awaited;
  std::string trouble;

  void batch(rank_t from, bytes_view) override { awaited.erase(from); }
  void received(std::uint64_t, bool) override {}
  void sent(rank_t, std::uint64_t, bool) override {}
  void broken(rank_t peer, const std::string& why) override {
    trouble += fmt::format("; the connection to rank {} broke: {}", peer, why);
  }
};

rank_t first_of(const world& w, std::uint32_t node) {
  rank_t r = 0;
  while (w.facts(r).node != node) ++r;
  return r;
}

}  // namespace

void check_fabric(fabric& way, const world& w, std::chrono::steady_clock::time_point until) {
  const auto far = [&](rank_t r) { return w.facts(r).node != w.node(); };
  std::set<rank_t> greet;
  greeted heard;
  if (w.facts(w.rank()).node_rank == 0) {
    greet.insert(first_of(w, (w.node() + 1) % w.nodes()));
    heard.awaited.insert(first_of(w, (w.node() + w.nodes() - 1) % w.nodes()));
  }
  for (rank_t r = 0; r < (w.rank() == 0 ? w.size() : 1); ++r) {
    if (!far(r)) continue;
    greet.insert(r);
    heard.awaited.insert(r);
  }
  for (rank_t r : greet) {
    base::buffer hello = way.spare();
    hello.put(std::byte{1});
    way.send(r, std::move(hello));
  }
  while ((!heard.awaited.empty() || way.unsent() > 0) && heard.trouble.empty()) {
    if (std::chrono::steady_clock::now() > until) break;
    way.poll();
    if (!way.take(heard)) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  std::string what = heard.trouble;
  for (rank_t r : heard.awaited) what += fmt::format("; nothing came from rank {} ({})", r, w.facts(r).host);
  if (what.empty() && way.unsent() > 0) what = "; what was sent does not leave";
  if (!what.empty()) throw error(what.substr(2));
}

}  // namespace rota::mpi
