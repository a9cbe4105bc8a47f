#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/types.h"

namespace rota::mpi {

// What each rank's part of the window of puts holds, which all ranks compute alike: a line of credits for each rank,
// then a ring for each rank of another node that makes a star with rank 0, then rings that their owner grants to other
// ranks of other nodes. `node_of`: by rank; `most_granted`: rings that one rank has to grant.
class rma_layout {
 public:
  static constexpr std::size_t line_bytes = 64, granted_ring = std::size_t{64} << 10;

  rma_layout(std::vector<std::uint32_t> node_of, std::size_t most_granted);

  bool far(rank_t a, rank_t b) const { return node_of_[a] != node_of_[b]; }
  // Of the rings of the star: 256 KiB, less where rank 0 has many.
  std::size_t star_ring() const { return star_ring_; }
  std::size_t granted_rings(rank_t owner) const;

  // Offsets in `owner`'s part. The line that `writer` writes; the ring of the star: REQUIRES: far(owner, writer), and
  // one of them is 0; the ring that is granted: REQUIRES: which < granted_rings(owner).
  std::size_t line(rank_t writer) const { return writer * line_bytes; }
  std::size_t star(rank_t owner, rank_t writer) const;
  std::size_t granted(rank_t owner, std::size_t which) const;
  std::size_t bytes(rank_t owner) const { return granted(owner, granted_rings(owner)); }

 private:
  std::vector<std::uint32_t> node_of_;
  std::size_t most_granted_;
  std::size_t star_ring_ = 0;
};

}  // namespace rota::mpi
