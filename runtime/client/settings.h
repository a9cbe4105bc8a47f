#pragma once

#include <rota/config.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/memory.h"

namespace rota::detail {

// A node's store is made of extents of this size; `store` is rounded up to a multiple of it.
inline constexpr std::size_t store_granule = std::size_t{2} << 20;

// A setting in force, as --rota-`name` would give it, and who set it.
struct shown_setting {
  std::string name, value, from;
};

struct settings {
  config values;
  std::vector<shown_setting> shown{};  // all there are
  std::optional<std::string> help;     // the text for stdout where --rota-help was given; `values` is then the base
};

// Value of an environment variable; nullptr where it is not set.
using environment_lookup = std::function<const char*(const char*)>;

// Takes the flags --rota-name=value and --rota-name value out of argv, up to an argument "--", and returns what they,
// the environment and `base` say: flag beats environment beats base; of two equal flags the last counts. A variable
// that is set but empty, and an unknown ROTA_ variable, are left alone. Throws config_error, with argv as it was, for
// an unknown --rota- flag, a value that is missing, and a value that is not accepted from any of the three. REQUIRES:
// argv has argc entries and a null pointer behind them (it does again afterwards), or is null with argc 0.
settings resolve(int& argc, char**& argv, const config& base, const environment_lookup& lookup);

// The same with the environment of this process.
settings resolve(int& argc, char**& argv, const config& base);

// The value of the setting `name`, in the words that its flag takes; empty where there is no such setting.
std::string show_setting(std::string_view name, const config& values);

struct store_choice {
  std::size_t bytes = 0;
  std::string from{};  // what decided, in words
};

// The store where nobody says how large it is to be: a third of the machine's memory, at most half of what is usable of
// it and, where ranks share the store, half of what /dev/shm has free. It is filled as values come.
store_choice chosen_store(const base::memory_bounds& memory, std::optional<std::size_t> free_shared);

}  // namespace rota::detail
