#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/buffer.h"

namespace rota::wire {

// Amounts of resources in ten-thousandths, so that any number of takes and returns adds up exactly. Names: "cpus",
// "gpus", "memory" (whole bytes, not ten-thousandths) and the custom ones.
struct resources {
  std::int64_t cpus = 0;
  std::vector<std::pair<std::string, std::int64_t>> others;  // sorted by name; amounts > 0

  static constexpr std::int64_t unit = 10'000;

  bool operator==(const resources&) const = default;

  bool fits_in(const resources& room) const { return cpus <= room.cpus && (others.empty() || others_fit_in(room)); }
  void take_from(resources& room) const {  // REQUIRES: fits_in(room)
    room.cpus -= cpus;
    if (!others.empty()) add_others(room, -1);
  }
  void give_back_to(resources& room) const {
    room.cpus += cpus;
    if (!others.empty()) add_others(room, 1);
  }
  std::int64_t amount(const std::string& name) const;  // of `others`, 0 where absent

 private:
  bool others_fit_in(const resources& room) const;
  void add_others(resources& room, int sign) const;
};

// An amount in ten-thousandths, the next above that is not due to rounding; nullopt for one that is negative, NaN or
// above most_amount.
inline constexpr double most_amount = 1e14;
std::optional<std::int64_t> to_units(double amount);

// "cpus", "gpus" and "memory" are no names for custom resources.
bool is_own_resource(std::string_view name);

// Needs of one CPU and no CPU are so common that they travel as a number instead of bytes.
inline constexpr std::uint8_t one_cpu = 0;
inline constexpr std::uint8_t no_cpu = 1;
inline constexpr std::uint8_t explicit_needs = 2;

void put_resources(base::buffer& to, const resources& r);
resources get_resources(base::cursor& from);

// "2 cpus, 1 gpus, 1024 bytes of memory, 3 fpga"
std::string describe(const resources& r);

}  // namespace rota::wire
