// Settings as words, for people who ask what is in force.
#include <fmt/format.h>

#include "runtime/client/settings.h"

namespace rota::detail {
namespace {

std::string show(std::chrono::nanoseconds time) {
  const double seconds = std::chrono::duration<double>(time).count();
  return seconds > 0 && seconds < 1 ? fmt::format("{:g}ms", seconds * 1e3) : fmt::format("{:g}s", seconds);
}

// In the largest unit that gives a whole number.
std::string show(std::size_t bytes) {
  constexpr std::string_view units = "KMGT";
  std::size_t unit = 0;
  while (bytes > 0 && bytes % 1024 == 0 && unit < units.size()) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{}", bytes) : fmt::format("{}{}", bytes, units[unit - 1]);
}

std::string show(const std::map<std::string, double>& resources) {
  std::string text;
  for (const auto& [name, amount] : resources) text += fmt::format("{}{}:{:g}", text.empty() ? "" : ",", name, amount);
  return text;
}

}  // namespace

std::string show_setting(std::string_view name, const config& values) {
  if (name == "cpus") return fmt::format("{:g}", values.cpus);
  if (name == "head-slots") return fmt::format("{}", values.head_slots);
  if (name == "memory") return show(values.memory);
  if (name == "store") return show(values.store);
  if (name == "spill-dir") return values.spill_dir.empty() ? "auto" : values.spill_dir;
  if (name == "spill-quota") {
    return values.spill_quota == config::half_of_disk ? "auto" : show(values.spill_quota);
  }
  if (name == "store-patience") return show(values.store_patience);
  if (name == "inline-bytes") return show(values.inline_bytes);
  if (name == "shutdown-timeout") return show(values.shutdown_timeout);
  if (name == "suspect-after") return show(values.suspect_after);
  if (name == "lost-after") return show(values.lost_after);
  if (name == "resources") return show(values.resources);
  if (name == "fabric") return values.fabric;
  if (name == "log") return values.log;
  return {};
}

}  // namespace rota::detail
