#include "runtime/client/network.h"

#include <fmt/format.h>
#include <rota/error.h>

#include <cstdlib>
#include <functional>
#include <random>

#include "mpi/devices.h"
#include "mpi/rma_settings.h"
#include "runtime/base/log.h"
#include "slurm/environment.h"

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

constexpr auto longest_check = std::chrono::seconds(15);  // with the first words between nodes

void check(const mpi::world& world, network& n) {
  gather(world, [&] {
    mpi::check_fabric(*n.way, world, std::chrono::steady_clock::now() + longest_check);
    return std::string();
  });
}

const char* variable(const char* name) { return std::getenv(name); }
bool launched_on_nodes() { return mpi::launched_on_nodes(variable, slurm::read_environment().nodes.value_or(0)); }

void join_ucx(const mpi::world& world, mpi::fabric_options options, network& n) {
  n.devices = options.devices = devices_of(world);
  std::vector<std::string> addresses = gather(world, [&] {
    n.way = mpi::open_ucx(options);
    return n.way->address();
  });
  for (rank_t r : world.node_ranks()) addresses[r].clear();
  n.way->meet(std::move(addresses));
  check(world, n);
  base::log().debug("rank {} ({}) reaches other nodes by UCX, devices {}", world.rank(), world.facts(world.rank()).host,
                    options.devices.empty() ? "as UCX_NET_DEVICES says" : options.devices);
}

void join_rma(const mpi::world& world, const mpi::fabric_options& options, network& n) {
  try {
    gather(world, [&] {
      n.way = mpi::open_rma(world, options);
      return std::string();
    });
    check(world, n);
  } catch (const config_error& e) {
    throw config_error(
        fmt::format("MPI gives no window over the nodes: {} ({})", e.what(), mpi::rma_settings(variable)));
  }
  base::log().debug("rank {} ({}) reaches other nodes by puts of MPI, {}", world.rank(), world.facts(world.rank()).host,
                    mpi::rma_settings(variable));
}

// UCX where it reaches the other nodes, else puts of MPI.
void join_best(const mpi::world& world, const mpi::fabric_options& options, network& n) {
  n.name = "rma";
  n.why = "this build has no UCX";
  if (!mpi::has_ucx()) return join_rma(world, options, n);
  try {
    join_ucx(world, options, n);
    n.name = "ucx";
    n.why = "by default";
    return;
  } catch (const config_error& e) {
    n.why = fmt::format("by UCX: {}", e.what());
  }
  if (n.way) n.way->close(std::chrono::steady_clock::now() + std::chrono::seconds(1));
  n.way.reset();
  n.devices.clear();
  try {
    join_rma(world, options, n);
  } catch (const config_error& e) {
    throw config_error(
        fmt::format("--rota-fabric=auto: no way to the other nodes. By UCX: {}. By MPI: {}; "
                    "--rota-fabric=rma lets rota prepare MPI for it",
                    n.why.substr(8), e.what()));
  }
}

}  // namespace

void prepare_network(const std::string& wanted) {
  // In a build with UCX `auto` leaves MPI as it is: what serves a window best there may not serve the program.
  const bool by_default = wanted == "auto" && !mpi::has_ucx() && launched_on_nodes();
  if (wanted != "rma" && !by_default) return;
  if (const std::string obstacle = mpi::rma_obstacle(variable); !obstacle.empty()) {
    throw config_error("--rota-fabric=" + wanted + ": " + obstacle);
  }
  mpi::prepare_rma();
}

network join_network(const mpi::world& world, const std::string& wanted) {
  network n;
  if (world.nodes() == 1) return n;
  if (wanted == "shared") {
    throw config_error(fmt::format("--rota-fabric=shared holds for one node, but the ranks are on {}", world.nodes()));
  }
  mpi::fabric_options options;
  options.cookie = common_cookie(world);
  options.self = world.rank();
  if (wanted == "auto") {
    join_best(world, options, n);
    return n;
  }
  n.name = wanted;
  n.why = "asked for";
  n.name == "rma" ? join_rma(world, options, n) : join_ucx(world, options, n);
  return n;
}

}  // namespace rota::detail
