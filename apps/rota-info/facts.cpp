#include "apps/rota-info/facts.h"

#include <arpa/inet.h>
#include <rota/rota.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "mpi/devices.h"
#include "runtime/client/report.h"

namespace info {
namespace {

using json = nlohmann::ordered_json;
using rota::detail::start_facts;

// Larger jobs are asked for the links of rank 0 only: for all pairs each node would connect to each.
constexpr std::size_t most_connected_nodes = 32;

// Variables by which people tell Open MPI and UCX what to use; what mpirun tells its own processes is of no interest.
bool is_setting(std::string_view variable) {
  constexpr std::array prefixes = {"UCX_",           "OMPI_MCA_bml",         "OMPI_MCA_btl", "OMPI_MCA_coll",
                                   "OMPI_MCA_mpi_",  "OMPI_MCA_mtl",         "OMPI_MCA_osc", "OMPI_MCA_pml",
                                   "OMPI_MCA_topo_", "OMPI_MCA_opal_common_"};
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return variable.starts_with(prefix); });
}

json environment_here() {
  std::map<std::string, std::string> found;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (is_setting(text)) found.emplace(text.substr(0, text.find('=')), text.substr(text.find('=') + 1));
  }
  return found;
}

json interfaces_here() {
  json list = json::array();
  for (const rota::mpi::interface& one : rota::mpi::interfaces_here()) {
    std::array<char, INET_ADDRSTRLEN> text{};
    const in_addr address{htonl(one.address)};
    inet_ntop(AF_INET, &address, text.data(), text.size());
    list.push_back({{"name", one.name}, {"address", text.data()}, {"inner_bridge", one.bridge}});
  }
  return list;
}

template <class T>
json or_null(const std::optional<T>& value) {
  return value ? json(*value) : json();
}

json memory_of(const start_facts& f) {
  const rota::base::memory_bound limit = f.memory.limit(), usable = f.memory.usable();
  return {{"machine", f.memory.machine},     {"limit", limit.bytes},   {"limit_is", limit.of},
          {"usable", usable.bytes},          {"usable_is", usable.of}, {"shm", or_null(f.shm_total)},
          {"shm_free", or_null(f.shm_free)}, {"store", f.store_bytes}, {"store_is", f.store_from}};
}

json settings_of(const start_facts& f) {
  json list = json::array();
  for (const rota::detail::shown_setting& one : f.settings)
    list.push_back({{"name", one.name}, {"value", one.value}, {"from", one.from}});
  return list;
}

// Runs on each rank. `peers`: ranks of other nodes whose links are of interest.
std::string describe_rank(const std::vector<unsigned>& peers) {
  const start_facts& f = rota::detail::facts_of_start();
  json ways = json::array();
  for (const unsigned peer : peers) ways.push_back({{"rank", peer}, {"by", rota::detail::way_to(peer)}});
  return json{{"rank", f.rank},
              {"host", f.host},
              {"node", f.nodes[f.rank]},
              {"slots", f.slots},
              {"slots_from", f.slots_from},
              {"cores", f.cores},
              {"cpu_quota", or_null(f.cpu_quota)},
              {"memory", memory_of(f)},
              {"devices", f.devices},
              {"interfaces", interfaces_here()},
              {"ways", ways},
              {"environment", environment_here()},
              {"settings", settings_of(f)}}
      .dump();
}

// The lowest rank of each node.
std::vector<unsigned> first_ranks(const std::vector<std::uint32_t>& nodes) {
  std::vector<unsigned> firsts;
  for (unsigned rank = 0; rank < nodes.size(); ++rank) {
    if (nodes[rank] == firsts.size()) firsts.push_back(rank);
  }
  return firsts;
}

std::vector<json> ask_ranks(const start_facts& here) {
  const std::vector<unsigned> firsts = first_ranks(here.nodes);
  const auto peers_of = [&](unsigned rank) {
    std::vector<unsigned> peers;
    const bool asked = firsts[here.nodes[rank]] == rank && (rank == 0 || firsts.size() <= most_connected_nodes);
    // Each pair once, by its lower rank.
    for (const unsigned first : firsts) {
      if (asked && first > rank) peers.push_back(first);
    }
    return peers;
  };
  std::vector<rota::ref<std::string>> answers;
  for (unsigned rank = 1; rank < here.nodes.size(); ++rank) {
    answers.push_back(rota::remote<describe_rank>.with({.cpus = 0, .where = rota::on_rank(rank)})(peers_of(rank)));
  }
  std::vector<json> ranks{json::parse(describe_rank(peers_of(0)))};
  for (const std::string& answer : rota::get(answers)) ranks.push_back(json::parse(answer));
  return ranks;
}

// Pairs of nodes by what their ranks use.
json links_of(const start_facts& here, const std::vector<json>& ranks) {
  std::vector<std::size_t> sizes;  // of nodes
  for (const std::uint32_t node : here.nodes) {
    if (node == sizes.size()) sizes.push_back(0);
    ++sizes[node];
  }
  json links = json::array();
  for (std::size_t node = 0; node < sizes.size(); ++node) {
    if (sizes[node] > 1)
      links.push_back(
          {{"fabric", "shared"}, {"by", ""}, {"nodes", {node}}, {"pairs", sizes[node] * (sizes[node] - 1) / 2}});
  }
  std::size_t told = 0;
  const rota::detail::pair_counts all = rota::detail::count_pairs(here.nodes);
  for (const json& rank : ranks) {
    const std::size_t node = rank["node"];
    for (const json& way : rank["ways"]) {
      const std::size_t other = here.nodes[way["rank"].get<std::size_t>()];
      const std::size_t pairs = sizes[node] * sizes[other];
      links.push_back({{"fabric", here.fabric}, {"by", way["by"]}, {"nodes", {node, other}}, {"pairs", pairs}});
      told += pairs;
    }
  }
  if (told < all.far)
    links.push_back({{"fabric", here.fabric}, {"by", ""}, {"nodes", json::array()}, {"pairs", all.far - told}});
  return links;
}

json nodes_of(std::vector<json>& ranks) {
  json nodes = json::array();
  for (json& rank : ranks) {
    const std::size_t number = rank["node"];
    if (number == nodes.size()) {  // its lowest rank, whose store it is
      json node{{"host", rank["host"]}};
      for (const char* key : {"memory", "cpu_quota", "devices", "interfaces"}) node[key] = rank[key];
      node["ranks"] = json::array();
      nodes.push_back(std::move(node));
    }
    json one;
    for (const char* key : {"rank", "slots", "slots_from", "cores"}) one[key] = rank[key];
    nodes[number]["ranks"].push_back(std::move(one));
  }
  return nodes;
}

// Variables, with the ranks that have them; settings, with their value on rank 0 and the ranks where it is another.
json environments_of(const std::vector<json>& ranks) {
  std::map<std::pair<std::string, std::string>, std::vector<unsigned>> found;
  for (const json& rank : ranks) {
    for (const auto& [name, value] : rank["environment"].items()) found[{name, value}].push_back(rank["rank"]);
  }
  json list = json::array();
  for (const auto& [entry, where] : found) {
    json one{{"name", entry.first}, {"value", entry.second}, {"ranks", where}};
    one["everywhere"] = where.size() == ranks.size();
    list.push_back(std::move(one));
  }
  return list;
}

json all_settings_of(const std::vector<json>& ranks) {
  json settings = ranks.front()["settings"];
  for (std::size_t at = 0; at < settings.size(); ++at) {
    for (const json& rank : ranks) {
      const json& theirs = rank["settings"][at];
      if (theirs["value"] == settings[at]["value"]) continue;
      settings[at]["elsewhere"].push_back(
          {{"rank", rank["rank"]}, {"value", theirs["value"]}, {"from", theirs["from"]}});
    }
  }
  return settings;
}

}  // namespace

json gather_facts() {
  const start_facts& here = rota::detail::facts_of_start();
  const rota::detail::build_facts build = rota::detail::facts_of_build();
  std::vector<json> ranks = ask_ranks(here);
  json facts{{"version", build.version},
             {"build", {{"type", build.type}, {"compiler", build.compiler}, {"sanitizers", build.sanitizers}}},
             {"mpi", build.mpi},
             {"ucx", build.ucx}};
  const rota::detail::pair_counts pairs = rota::detail::count_pairs(here.nodes);
  facts["ranks"] = ranks.size();
  facts["slots"] = rota::cluster_resources().cpus;
  facts["fabric"] = here.fabric;
  facts["fabric_why"] = here.fabric_why;
  facts["pairs"] = {{"shared", pairs.shared}, {"far", pairs.far}};
  facts["links"] = links_of(here, ranks);
  facts["settings"] = all_settings_of(ranks);
  facts["environment"] = environments_of(ranks);
  facts["nodes"] = nodes_of(ranks);
  return facts;
}

}  // namespace info
