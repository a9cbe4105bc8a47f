#include "runtime/client/report.h"

#include <map>

#include "mpi/fabric.h"
#include "mpi/world.h"
#include "runtime/client/instance.h"

namespace rota::detail {

pair_counts count_pairs(const std::vector<std::uint32_t>& nodes) {
  std::map<std::uint32_t, std::size_t> ranks;
  for (const std::uint32_t node : nodes) ++ranks[node];
  pair_counts pairs;
  for (const auto& [node, count] : ranks) pairs.shared += count * (count - 1) / 2;
  pairs.far = nodes.size() * (nodes.size() - 1) / 2 - pairs.shared;
  return pairs;
}

build_facts facts_of_build() {
  return {ROTA_VERSION, ROTA_BUILD_TYPE, ROTA_COMPILER, ROTA_SANITIZERS, mpi::library_version(), mpi::ucx_version()};
}

std::string way_to(rank_t other) { return running_instance().way_to(other); }

}  // namespace rota::detail
