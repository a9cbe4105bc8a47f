#pragma once

#include <cstdint>

namespace rota::simulator {

// A step of SplitMix64 (Steele, Lea, Flood 2014), also used to mix values.
inline constexpr std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e37'79b9'7f4a'7c15u;
  x = (x ^ (x >> 30)) * 0xbf58'476d'1ce4'e5b9u;
  x = (x ^ (x >> 27)) * 0x94d0'49bb'1331'11ebu;
  return x ^ (x >> 31);
}
inline constexpr std::uint64_t mixed(std::uint64_t a, std::uint64_t b) { return mixed(mixed(a) ^ (b * 3 + 1)); }

// Random numbers that are the same on every machine.
class random {
 public:
  explicit random(std::uint64_t seed) : state_(mixed(seed)) {}
  std::uint64_t next() { return state_ = mixed(state_); }
  // In [0, bound). REQUIRES: bound > 0.
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>((next() >> 32) * bound >> 32); }
  // In [low, high].
  std::uint32_t between(std::uint32_t low, std::uint32_t high) { return low + below(high - low + 1); }
  bool chance(std::uint32_t percent) { return below(100) < percent; }

 private:
  std::uint64_t state_;
};

}  // namespace rota::simulator
