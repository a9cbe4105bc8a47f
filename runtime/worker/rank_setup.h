#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/types.h"
#include "runtime/wire/resources.h"

namespace rota::detail {

// What a rank tells the others when it joins.
struct rank_setup {
  rank_t rank = 0;
  rank_t world_size = 1;
  std::uint32_t node = 0;
  std::string host;
  wire::resources offered;
  std::vector<unsigned> cores;  // one for each slot to bind executors to; empty: unbound
  unsigned slots = 0;
  bool crowded = false;  // more ranks on the host than cores: whoever spins keeps another from working
  std::vector<rank_t> node_ranks;
  std::vector<std::uint32_t> nodes;  // of each rank
};

}  // namespace rota::detail
