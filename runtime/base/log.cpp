#include "runtime/base/log.h"

#include <rota/error.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <array>
#include <memory>
#include <string_view>

namespace rota::base {

spdlog::logger& log() {
  // Never destroyed: threads and static destructors may still log while the process ends.
  static spdlog::logger& logger = []() -> spdlog::logger& {
    auto* made = new spdlog::logger("rota", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("rota: %l: %v");
    made->set_level(spdlog::level::warn);
    made->flush_on(spdlog::level::trace);
    return *made;
  }();
  return logger;
}

void set_log_level(const std::string& level) {
  static constexpr std::array<std::string_view, 6> known = {"trace", "debug", "info", "warn", "error", "off"};
  for (std::string_view word : known) {
    if (word == level) return log().set_level(spdlog::level::from_str(level));
  }
  throw config_error("--rota-log=" + level + ": the levels are trace, debug, info, warn, error and off");
}

}  // namespace rota::base
