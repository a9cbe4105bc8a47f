#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rota::mpi {

// A network interface of this host that is up and has an IPv4 address.
struct interface {
  std::string name;
  std::uint32_t address = 0;  // host byte order
  bool bridge = false;        // a switch in software, of containers or virtual machines
  friend bool operator==(const interface&, const interface&) = default;
};

// All but loopback.
std::vector<interface> interfaces_here();

// As bytes, for other ranks.
std::string pack(const std::vector<interface>& list);
std::vector<interface> unpack_interfaces(const std::string& bytes);

// Where the kernel sends what is for `peer`: the name of an interface, empty where there is no way, or where the
// address is this host's own.
std::string route_to(std::uint32_t peer, const std::vector<interface>& mine);

// The devices by which all peers can be reached, as UCX_NET_DEVICES takes them: the interfaces by which the kernel
// reaches some address of theirs, bridges only where nothing else leads there, and all RDMA devices. Container hosts
// have interfaces with one and the same address on each of them; UCX, left alone, takes those for a common network.
// Empty where nothing is known. Throws config_error naming the first peer without a way to it.
struct peer_interfaces {
  std::string host;
  std::vector<interface> list;
};
std::string devices_towards(const std::vector<peer_interfaces>& peers, const std::vector<interface>& mine);

}  // namespace rota::mpi
