#include "runtime/wire/resources.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace rota::wire {
namespace {

auto find(auto& others, const std::string& name) {
  return std::lower_bound(others.begin(), others.end(), name,
                          [](const auto& entry, const std::string& wanted) { return entry.first < wanted; });
}

}  // namespace

std::optional<std::int64_t> to_units(double amount) {
  if (!(amount >= 0 && amount <= most_amount)) return std::nullopt;
  return static_cast<std::int64_t>(std::ceil(amount * resources::unit - 1e-6));
}

bool is_own_resource(std::string_view name) { return name == "cpus" || name == "gpus" || name == "memory"; }

std::int64_t resources::amount(const std::string& name) const {
  auto at = find(others, name);
  return at != others.end() && at->first == name ? at->second : 0;
}

bool resources::others_fit_in(const resources& room) const {
  return std::all_of(others.begin(), others.end(),
                     [&](const auto& need) { return need.second <= room.amount(need.first); });
}

void resources::add_others(resources& room, int sign) const {
  for (const auto& [name, need] : others) find(room.others, name)->second += sign * need;
}

void put_resources(base::buffer& to, const resources& r) {
  to.put(r.cpus);
  to.put(static_cast<std::uint32_t>(r.others.size()));
  for (const auto& [name, need] : r.others) {
    to.put(need);
    base::put_text(to, name);
  }
}

resources get_resources(base::cursor& from) {
  resources r;
  r.cpus = from.get<std::int64_t>();
  r.others.resize(from.get<std::uint32_t>());
  for (auto& [name, need] : r.others) {
    need = from.get<std::int64_t>();
    name = base::get_text(from);
  }
  return r;
}

std::string describe(const resources& r) {
  std::string text = fmt::format("{:g} cpus", static_cast<double>(r.cpus) / resources::unit);
  for (const auto& [name, need] : r.others) {
    if (name == "memory") {
      text += fmt::format(", {} bytes of memory", need);
    } else {
      text += fmt::format(", {:g} {}", static_cast<double>(need) / resources::unit, name);
    }
  }
  return text;
}

}  // namespace rota::wire
