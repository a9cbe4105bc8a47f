#include "runtime/client/network.h"

#include <fmt/format.h>
#include <rota/error.h>

#include <cstdlib>
#include <functional>
#include <random>

#include "mpi/devices.h"
#include "runtime/base/log.h"

namespace rota::detail {
namespace {

// Runs make() on every rank and gives all results to each; where it throws on one, all throw the same.
std::vector<std::string> gather(const mpi::world& world, const std::function<std::string()>& make) {
  std::string mine;
  try {
    mine = "+" + make();
  } catch (const std::exception& e) {
    mine = "-" + std::string(e.what());
  }
  std::vector<std::string> all = world.allgather(mine);
  for (rank_t r = 0; r < all.size(); ++r) {
    if (all[r].front() == '-') {
      throw config_error(fmt::format("rank {} ({}): {}", r, world.facts(r).host, all[r].substr(1)));
    }
    all[r].erase(0, 1);
  }
  return all;
}

std::uint64_t common_cookie(const mpi::world& world) {
  std::random_device source;
  const std::uint64_t mine = (std::uint64_t{source()} << 32) | source();
  const std::string bytes = world.broadcast({reinterpret_cast<const char*>(&mine), sizeof mine});
  return base::cursor({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}).get<std::uint64_t>();
}

std::string devices_of(const mpi::world& world) {
  const std::vector<mpi::interface> mine = mpi::interfaces_here();
  const std::vector<std::string> all = world.allgather(mpi::pack(mine));
  std::vector<mpi::peer_interfaces> peers;
  for (rank_t r = 0; r < all.size(); ++r) {
    const mpi::rank_facts& who = world.facts(r);
    if (who.node_rank == 0 && who.node != world.node()) peers.push_back({who.host, mpi::unpack_interfaces(all[r])});
  }
  std::string devices;
  gather(world, [&] {
    // What the user said holds.
    if (std::getenv("UCX_NET_DEVICES") == nullptr) devices = mpi::devices_towards(peers, mine);
    return devices;
  });
  return devices;
}

}  // namespace

network join_network(const mpi::world& world, const std::string& wanted) {
  network n;
  if (world.nodes() == 1) return n;
  if (wanted == "shared") {
    throw config_error(fmt::format("--rota-fabric=shared holds for one node, but the ranks are on {}", world.nodes()));
  }
  mpi::fabric_options options;
  options.cookie = common_cookie(world);
  options.self = world.rank();
  options.devices = devices_of(world);
  std::vector<std::string> addresses = gather(world, [&] {
    n.way = mpi::open_ucx(options);
    return n.way->address();
  });
  for (rank_t r : world.node_ranks()) addresses[r].clear();
  n.way->meet(std::move(addresses));
  n.name = "ucx";
  n.devices = options.devices;
  base::log().debug("rank {} ({}) reaches other nodes by UCX, devices {}", world.rank(), world.facts(world.rank()).host,
                    options.devices.empty() ? "as UCX_NET_DEVICES says" : options.devices);
  return n;
}

}  // namespace rota::detail
