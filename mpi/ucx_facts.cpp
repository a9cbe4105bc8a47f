// What UCX says of itself, for people.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>

#include "mpi/ucx_fabric.h"

namespace rota::mpi {
namespace {

// UCX 1.11 tells the transports of an endpoint in no other way than in the text that it prints.
std::string printed(ucp_ep_h ep) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* file = open_memstream(&text, &size);
  if (file == nullptr) return {};
  ucp_ep_print_info(ep, file);
  std::fclose(file);
  const std::unique_ptr<char, decltype(&std::free)> owned(text, std::free);
  return {text, size};
}

}  // namespace

// Lines such as "#   lane[0]:  1:tcp/eth0.0 md[1]   -> md[1]/tcp/sysdev[255] am am_bw#0": its number, then transport
// and device, whose last part is the system's number.
std::string ucx_fabric::way_to(rank_t to) {
  if (to >= peers_.size() || peers_[to].address.empty()) return {};
  const ucp_ep_h ep = endpoint(to);
  if (ep == nullptr) return {};
  std::istringstream lines(printed(ep));
  std::string ways;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string hash, lane, way;
    if (!(words >> hash >> lane >> way) || !lane.starts_with("lane[")) continue;
    way = way.substr(way.find(':') + 1);
    way = way.substr(0, way.rfind('.'));
    if (("," + ways + ",").find("," + way + ",") != std::string::npos) continue;
    ways += (ways.empty() ? "" : ",") + way;
  }
  return ways;
}

std::string ucx_version() { return ucp_get_version_string(); }

}  // namespace rota::mpi
