#pragma once

#include <rota/detail/core.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace rota {

template <class T>
class ref;

// Where a task may run, or an actor live.
struct placement {
  enum kind_type : std::uint8_t { anywhere_kind, spread_kind, on_node_kind, on_rank_kind, near_kind };
  kind_type kind = anywhere_kind;
  std::uint64_t target = 0;  // node, rank or object
};

inline constexpr placement anywhere{};
// On the least loaded rank, wherever its arguments are.
inline constexpr placement spread{placement::spread_kind, 0};
inline constexpr placement on_node(std::uint64_t node) { return {placement::on_node_kind, node}; }
inline constexpr placement on_rank(std::uint64_t rank) { return {placement::on_rank_kind, rank}; }
// Preferably where the value is or will be.
template <class T>
placement near(const ref<T>& r) {
  return {placement::near_kind, r.id()};
}

// What a task asks for. Amounts are per task: a negative or NaN one is a config_error at the call, more than any rank
// has is infeasible.
struct options {
  double cpus = 1, gpus = 0;
  std::size_t memory = 0;                     // bytes
  std::map<std::string, double> resources{};  // custom, as offered with --rota-resources=name:amount
  int priority = 0;                           // higher first
  placement where = anywhere;
  std::string name{};
};

// The same for an actor, which holds what it asks for as long as it lives.
struct actor_options {
  double cpus = 0, gpus = 0;
  std::size_t memory = 0;
  std::map<std::string, double> resources{};
  int priority = 0;
  placement where = anywhere;
  std::string name{};
  bool get_if_exists = false;  // with a name: the actor that has it, if there is one
};

}  // namespace rota
