#include "mpi/rma_layout.h"

#include <algorithm>
#include <bit>

namespace rota::mpi {

rma_layout::rma_layout(std::vector<std::uint32_t> node_of, std::size_t most_granted)
    : node_of_(std::move(node_of)), most_granted_(most_granted) {
  constexpr std::size_t all = std::size_t{64} << 20, least = std::size_t{16} << 10, most = std::size_t{256} << 10;
  const auto beside = static_cast<std::size_t>(std::count(node_of_.begin(), node_of_.end(), node_of_[0]));
  const std::size_t share = std::bit_floor(all / std::max<std::size_t>(1, node_of_.size() - beside));
  star_ring_ = std::clamp(share, least, most);
}

std::size_t rma_layout::granted_rings(rank_t owner) const {
  if (owner == 0) return 0;
  std::size_t others = 0;
  for (rank_t r = 1; r < node_of_.size(); ++r) others += far(owner, r) ? 1 : 0;
  return std::min(others, most_granted_);
}

std::size_t rma_layout::star(rank_t owner, rank_t writer) const {
  std::size_t before = 0;
  if (owner == 0) {
    for (rank_t r = 0; r < writer; ++r) before += far(0, r) ? 1 : 0;
  }
  return node_of_.size() * line_bytes + before * star_ring_;
}

std::size_t rma_layout::granted(rank_t owner, std::size_t which) const {
  const std::size_t lines = node_of_.size() * line_bytes;
  if (owner == 0) return star(0, static_cast<rank_t>(node_of_.size()));
  return lines + (far(owner, 0) ? star_ring_ : 0) + which * granted_ring;
}

}  // namespace rota::mpi
