#include "mpi/devices.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <rota/error.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string_view>

#include "runtime/base/buffer.h"

namespace rota::mpi {
namespace {

namespace fs = std::filesystem;

// Ports of InfiniBand and RoCE that are up, as UCX names them: mlx5_0:1.
std::vector<std::string> rdma_devices() {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& device : fs::directory_iterator("/sys/class/infiniband", none)) {
    for (const auto& port : fs::directory_iterator(device.path() / "ports", none)) {
      std::string state;  // "4: ACTIVE"
      std::getline(std::ifstream(port.path() / "state"), state);
      if (state.find("ACTIVE") == std::string::npos) continue;
      names.push_back(device.path().filename().string() + ":" + port.path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

sockaddr_in to_sockaddr(std::uint32_t address) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(9);  // any: nothing is sent
  to.sin_addr.s_addr = htonl(address);
  return to;
}

// Has it hardware behind it, or another device below it, as bonds and VLANs have?
bool leads_out(const fs::path& device) {
  std::error_code none;
  if (fs::exists(device / "device", none)) return true;
  for (const auto& entry : fs::directory_iterator(device, none)) {
    if (entry.path().filename().string().starts_with("lower_")) return true;
  }
  return false;
}

// In Open MPI's files of parameters, of which the user's own may be anywhere.
bool parameter_file_names(std::string_view word) {
  const char* home = std::getenv("HOME");
  const char* named = std::getenv("OMPI_MCA_mca_base_param_files");
  std::vector<std::string> files{"/etc/openmpi/openmpi-mca-params.conf"};
  if (home != nullptr) files.push_back(std::string(home) + "/.openmpi/mca-params.conf");
  if (named != nullptr) {
    std::istringstream names(named);
    for (std::string name; std::getline(names, name, ':');) files.push_back(name);
  }
  for (const std::string& name : files) {
    std::ifstream file(name);
    for (std::string line; std::getline(file, line);) {
      const auto first = line.find_first_not_of(" \t");
      if (first != std::string::npos && std::string_view(line).substr(first).starts_with(word)) return true;
    }
  }
  return false;
}

}  // namespace

std::string device_of(const std::string& label) { return label.substr(0, label.find(':')); }

bool is_inner_bridge(const fs::path& device) {
  std::error_code none;
  if (!fs::exists(device / "bridge", none)) return false;
  for (const auto& port : fs::directory_iterator(device / "brif", none)) {
    if (leads_out(device.parent_path() / port.path().filename())) return false;
  }
  return true;
}

void keep_mpi_off_inner_bridges() {
  constexpr const char *include = "OMPI_MCA_btl_tcp_if_include", *exclude = "OMPI_MCA_btl_tcp_if_exclude";
  if (std::getenv(include) != nullptr || std::getenv(exclude) != nullptr) return;
  std::string bridges;
  bool others = false;
  for (const interface& one : interfaces_here()) {
    if (one.bridge) {
      bridges += "," + one.name;
    } else {
      others = true;
    }
  }
  if (bridges.empty() || !others || parameter_file_names("btl_tcp_if_")) return;
  setenv(exclude, ("127.0.0.1/8,sppp" + bridges).c_str(), 0);  // Open MPI's own default, and the bridges
}

std::vector<interface> interfaces_here() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> all(first, freeifaddrs);
  std::vector<interface> list;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    const bool usable = (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_LOOPBACK) == 0;
    if (!usable || one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    const auto* address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    const std::string device = device_of(one->ifa_name);
    list.push_back({device, ntohl(address->sin_addr.s_addr), is_inner_bridge(fs::path("/sys/class/net") / device)});
  }
  return list;
}

std::string pack(const std::vector<interface>& list) {
  base::buffer b;
  b.put(static_cast<std::uint32_t>(list.size()));
  for (const interface& one : list) {
    base::put_text(b, one.name);
    b.put(one.address);
    b.put(one.bridge);
  }
  return {reinterpret_cast<const char*>(b.data()), b.size()};
}

std::vector<interface> unpack_interfaces(const std::string& bytes) {
  base::cursor from({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()});
  std::vector<interface> list(from.get<std::uint32_t>());
  for (interface& one : list) {
    one.name = base::get_text(from);
    one.address = from.get<std::uint32_t>();
    one.bridge = from.get<bool>();
  }
  return list;
}

std::string route_to(std::uint32_t peer, const std::vector<interface>& mine) {
  for (const interface& one : mine) {
    if (one.address == peer) return {};
  }
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return {};
  const sockaddr_in to = to_sockaddr(peer);
  sockaddr_in from{};
  socklen_t length = sizeof from;
  // Connecting a datagram socket sends nothing, but looks up the route.
  const bool found = connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&from), &length) == 0;
  ::close(fd);
  if (!found) return {};
  for (const interface& one : mine) {
    if (one.address == ntohl(from.sin_addr.s_addr)) return one.name;
  }
  return {};
}

std::string devices_towards(const std::vector<peer_interfaces>& peers, const std::vector<interface>& mine) {
  const std::vector<std::string> rdma = rdma_devices();
  std::set<std::string> used;
  for (const peer_interfaces& peer : peers) {
    std::set<std::string> ways, bridges;
    for (const interface& theirs : peer.list) {
      const std::string way = route_to(theirs.address, mine);
      if (way.empty()) continue;
      const bool bridge = theirs.bridge || std::any_of(mine.begin(), mine.end(), [&](const interface& one) {
                            return one.name == way && one.bridge;
                          });
      (bridge ? bridges : ways).insert(way);
    }
    if (ways.empty()) ways = bridges;
    if (ways.empty() && rdma.empty()) {
      throw config_error("no network leads to host " + peer.host +
                         ": none of its addresses is reached from here; check the interfaces of both hosts, or name "
                         "those to use in UCX_NET_DEVICES");
    }
    used.insert(ways.begin(), ways.end());
  }
  std::vector<std::string> names = rdma;
  names.insert(names.end(), used.begin(), used.end());
  std::string devices;
  for (const std::string& name : names) devices += (devices.empty() ? "" : ",") + name;
  return devices;
}

}  // namespace rota::mpi
