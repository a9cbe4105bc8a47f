#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace rota {

// Amounts of what ranks offer, added up.
struct resources {
  double cpus = 0, gpus = 0;
  std::size_t memory = 0;  // bytes
  std::map<std::string, double> custom{};
};

// One node of the session, as on_node(id) names it.
struct node_info {
  std::uint64_t id = 0;
  std::string host;
  std::vector<unsigned> ranks;  // those that live
  resources total;              // what they offer together
};

// What the head knows at this moment. A round trip to it; any thread; throw config_error outside a session.
std::vector<node_info> nodes();
resources cluster_resources();    // offered by all ranks
resources available_resources();  // of that, not in use now

}  // namespace rota
