#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace rota {

using rank_t = std::uint32_t;
using bytes_view = std::span<const std::byte>;

inline constexpr rank_t no_rank = 0xffff'ffff;

// Names an object, the task that makes it, or an actor: the rank that named it in the high 24 bits, that rank's
// sequence number in the low 40. Never reused. 0 names nothing.
using object_id = std::uint64_t;

inline constexpr std::uint64_t most_sequence = (std::uint64_t{1} << 40) - 1;
inline constexpr object_id make_id(rank_t origin, std::uint64_t sequence) {
  return (static_cast<object_id>(origin) << 40) | (sequence & most_sequence);
}
inline constexpr rank_t origin_of(object_id id) { return static_cast<rank_t>(id >> 40); }

}  // namespace rota
