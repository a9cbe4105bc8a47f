#pragma once

#include <memory>
#include <string>

#include "mpi/fabric.h"
#include "mpi/world.h"

namespace rota::detail {

// How a rank reaches those of other nodes.
struct network {
  std::unique_ptr<mpi::fabric> way;  // null where all ranks share one node
  std::string name = "shared";       // as in --rota-fabric
  std::string devices;               // that UCX was given; empty where the user's own setting holds
  std::string why = "one node";
};

// What must be known before MPI starts. Throws config_error where settings of the user's stand against it.
void prepare_network(const std::string& wanted);

// `wanted`: a value of --rota-fabric. Collective. Throws on every rank alike: config_error where the nodes cannot be
// reached in that way, or by no network; rota::error with the words of the rank that failed.
network join_network(const mpi::world& world, const std::string& wanted);

}  // namespace rota::detail
