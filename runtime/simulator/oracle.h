#pragma once

#include <memory>
#include <vector>

#include "runtime/simulator/plan.h"
#include "runtime/wire/failure.h"

namespace rota::simulator {

// What a value must turn out to be, whichever attempt makes it, while no rank is lost.
struct expectation {
  bool fails = false;       // it must fail
  std::uint32_t kinds = 0;  // of failure that may be seen: bits by failure_kind
  std::uint64_t hash = 0;
  std::vector<std::shared_ptr<const expectation>> inside;
};
using expected = std::shared_ptr<const expectation>;

inline std::uint32_t bit(wire::failure_kind kind) { return 1u << static_cast<std::uint32_t>(kind); }

// What a value is made from, by the simulated program and by the oracle alike.
std::uint64_t hash_of_put(std::uint64_t seed);

// What one step makes of these registers; null where it makes nothing.
expected expect_step(const shape& cluster, const step& s, const std::vector<expected>& registers);

// True if some rank of the cluster could run it.
bool can_run(const shape& cluster, const step& s);

}  // namespace rota::simulator
