#include "apps/sweep/neighbours.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

namespace sweep {
namespace {

// A row that may vote. Orders by distance, then by row.
struct candidate {
  std::int64_t distance;  // squared where the norm is 2
  std::size_t row;
  friend auto operator<=>(const candidate&, const candidate&) = default;
};

std::int64_t distance_between(const std::int32_t* a, const std::int32_t* b, std::size_t features, std::int32_t norm) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < features; ++i) {
    const std::int64_t difference = std::int64_t{a[i]} - b[i];
    sum += norm == 1 ? std::abs(difference) : difference * difference;
  }
  return sum;
}

double vote(const candidate& voter, const point& chosen) {
  if (chosen.weights == weighting::uniform) return 1;
  constexpr double not_zero = 1e-12;  // for samples that are the same
  const auto distance = static_cast<double>(voter.distance);
  return 1 / ((chosen.norm == 1 ? distance : std::sqrt(distance)) + not_zero);
}

}  // namespace

std::vector<std::uint32_t> count_correct(std::span<const std::int32_t> values, std::size_t columns, const point& chosen,
                                         std::size_t folds) {
  const std::size_t rows = values.size() / columns;
  const std::size_t features = columns - 1;
  std::vector<std::uint32_t> correct(folds, 0);
  std::vector<candidate> candidates;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::int32_t* const sample = &values[row * columns];
    candidates.clear();
    for (std::size_t other = 0; other < rows; ++other) {
      if (other % folds == row % folds) continue;
      candidates.push_back({distance_between(sample, &values[other * columns], features, chosen.norm), other});
    }
    const std::size_t voters = std::min(candidates.size(), static_cast<std::size_t>(chosen.neighbours));
    const auto last = candidates.begin() + static_cast<std::ptrdiff_t>(voters);
    std::partial_sort(candidates.begin(), last, candidates.end());
    std::array<double, 256> votes{};
    for (auto voter = candidates.begin(); voter != last; ++voter) {
      votes[static_cast<std::size_t>(values[voter->row * columns + features])] += vote(*voter, chosen);
    }
    const auto winner = std::max_element(votes.begin(), votes.end()) - votes.begin();
    if (winner == sample[features]) ++correct[row % folds];
  }
  return correct;
}

}  // namespace sweep
