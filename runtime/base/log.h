#pragma once

#include <spdlog/logger.h>

#include <string>

namespace rota::base {

// The library's one logger: named "rota", to stderr, level warn until set_log_level. Any thread.
spdlog::logger& log();

// One of trace, debug, info, warn, error, off. Throws config_error for any other word.
void set_log_level(const std::string& level);

}  // namespace rota::base
