#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sweep {

enum class weighting : std::uint8_t { uniform, distance };

// One point of the grid: what `sbatch --array` would number.
struct point {
  std::int32_t neighbours;  // k
  std::int32_t norm;        // 1: sum of differences, 2: Euclidean
  weighting weights;        // of the neighbours' votes: 1, or 1 / distance
};

// Cross-validation of the k nearest neighbours: sample i is of fold i mod `folds`, and is classified by the samples of
// the other folds. Returns how many of each fold are classified as labelled. `values` are rows of `columns` integers,
// the last of which is the label, 0 to 255. Equally near neighbours come in the order of the rows; of equal votes the
// smallest label wins. REQUIRES: neighbours >= 1, 2 <= folds <= rows.
std::vector<std::uint32_t> count_correct(std::span<const std::int32_t> values, std::size_t columns, const point& chosen,
                                         std::size_t folds);

}  // namespace sweep
