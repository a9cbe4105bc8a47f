#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace rota::mpi {

// An IPv4 address of a network interface of this host that is up.
struct interface {
  std::string name;           // of the device
  std::uint32_t address = 0;  // host byte order
  bool bridge = false;        // an inner one, see is_inner_bridge
  friend bool operator==(const interface&, const interface&) = default;
};

// The device that has an address with this label, which the kernel gives as the interface's name: eth0 for eth0:1.
std::string device_of(const std::string& label);

// Is the device (/sys/class/net/docker0) a switch in software that connects containers or virtual machines of this host
// with each other, and has no device that leads out of it? A bridge over a network card, a bond or a VLAN is none.
bool is_inner_bridge(const std::filesystem::path& device);

// Before MPI_Init: keeps Open MPI's TCP, which would take such bridges of two hosts with one address for a network, and
// hang, off those of this host; unless somebody said which devices it is to use. Call from one thread.
void keep_mpi_off_inner_bridges();

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
