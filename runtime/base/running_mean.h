#pragma once

#include <algorithm>

namespace rota::base {

// The mean that follows what is measured by `weight` of the difference. One value takes it to ten times itself at most:
// a short task that the kernel put aside for some milliseconds is no reason to take all of its kind for long ones.
inline float moved_mean(float mean, float measured, float weight) {
  constexpr float most_growth = 9;
  return mean + std::min((measured - mean) * weight, mean * most_growth);
}

}  // namespace rota::base
