#include "runtime/client/settings.h"

#include <rota/error.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/wire/resources.h"

namespace rota::detail {
namespace {

constexpr std::string_view flag_prefix = "--rota-";
constexpr double most_slots = 4096;
constexpr std::size_t least_inline_bytes = 64, most_inline_bytes = 65536;
constexpr double longest_timeout_s = 1e9;
constexpr auto least_silence = std::chrono::milliseconds(100);

// Readers set one field from a text and return false for a text that is not accepted.
using reader = bool (*)(config&, std::string_view);

struct setting {
  std::string_view name;  // of the flag; the variable is ROTA_ and the same in capitals
  std::string_view accepted;
  std::string_view meaning;
  reader read;
};

template <class Number>
bool read_number(std::string_view text, Number& out) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, out);
  return error == std::errc{} && stop == end && !text.empty();
}

bool read_amount(std::string_view text, double& out) {
  return read_number(text, out) && std::isfinite(out) && !std::signbit(out);
}

bool read_size(std::string_view text, std::size_t& out) {
  constexpr std::string_view suffixes = "KMGT";
  unsigned shift = 0;
  if (!text.empty()) {
    const auto at = suffixes.find(static_cast<char>(std::toupper(static_cast<unsigned char>(text.back()))));
    if (at != std::string_view::npos) {
      shift = 10 * (static_cast<unsigned>(at) + 1);
      text.remove_suffix(1);
    }
  }
  std::size_t count = 0;
  if (!read_number(text, count) || count > (std::numeric_limits<std::size_t>::max() >> shift)) return false;
  out = count << shift;
  return true;
}

bool read_duration(std::string_view text, std::chrono::nanoseconds& out) {
  double unit_s = 1;
  const auto take = [&](std::string_view suffix, double seconds) {
    if (!text.ends_with(suffix)) return false;
    text.remove_suffix(suffix.size());
    unit_s = seconds;
    return true;
  };
  static_cast<void>(take("ms", 1e-3) || take("s", 1) || take("m", 60));
  double count = 0;
  if (!read_amount(text, count) || count * unit_s > longest_timeout_s) return false;
  out = std::chrono::nanoseconds(std::llround(count * unit_s * 1e9));
  return true;
}

bool read_resources(std::string_view text, std::map<std::string, double>& out) {
  std::map<std::string, double> resources;
  while (!text.empty()) {
    const auto comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    const auto colon = item.rfind(':');
    double amount = 0;
    if (colon == std::string_view::npos || colon == 0 || !read_amount(item.substr(colon + 1), amount)) return false;
    if (!resources.emplace(item.substr(0, colon), amount).second) return false;
    if (comma == text.size() - 1) return false;
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
  }
  out = std::move(resources);
  return true;
}

constexpr std::string_view size_text = "a number of bytes, with K, M, G or T for powers of 1024; 0 chooses";

constexpr std::array known_settings = {
    setting{"cpus", "a number from 0 to 4096; 0 takes the cores that the rank may run on",
            "slots that each rank offers", [](config& c, std::string_view text) { return read_amount(text, c.cpus); }},
    setting{"head-slots", "a whole number from -1 to 4096; -1 is none under a launcher, as cpus alone",
            "slots of rank 0", [](config& c, std::string_view text) { return read_number(text, c.head_slots); }},
    setting{"memory", size_text, "memory that each rank offers to tasks that ask for some",
            [](config& c, std::string_view text) { return read_size(text, c.memory); }},
    setting{"store", size_text, "object store of each node",
            [](config& c, std::string_view text) { return read_size(text, c.store); }},
    setting{"spill-dir", "a folder of each node; auto chooses", "where values go that do not fit in the store",
            [](config& c, std::string_view text) {
              c.spill_dir = text == "auto" ? "" : text;
              return true;
            }},
    setting{"spill-quota",
            "a number of bytes, with K, M, G or T for powers of 1024; 0: nothing is spilled; auto: half of "
            "what the folder has free",
            "bytes that the ranks of a node spill at most",
            [](config& c, std::string_view text) {
              if (text != "auto") return read_size(text, c.spill_quota);
              c.spill_quota = config::half_of_disk;
              return true;
            }},
    setting{"store-patience", "a time from 0 to 1e9 seconds: 500ms, 10s, 2m, or seconds alone",
            "how long a writer waits for room in a store from which nothing leaves",
            [](config& c, std::string_view text) { return read_duration(text, c.store_patience); }},
    setting{"inline-bytes", "a size from 64 to 64K", "arguments and results up to this size ride in messages",
            [](config& c, std::string_view text) { return read_size(text, c.inline_bytes); }},
    setting{"shutdown-timeout", "a time from 0 to 1e9 seconds: 500ms, 30s, 2m, or seconds alone",
            "how long the end of the session waits for running tasks",
            [](config& c, std::string_view text) { return read_duration(text, c.shutdown_timeout); }},
    setting{"suspect-after", "a time of 100ms at least: 500ms, 5s, 2m, or seconds alone",
            "silence of a rank of another node after which a warning names it",
            [](config& c, std::string_view text) { return read_duration(text, c.suspect_after); }},
    setting{"lost-after", "a time of 100ms at least: 500ms, 15s, 2m, or seconds alone",
            "silence of a rank of another node after which it is taken for lost",
            [](config& c, std::string_view text) { return read_duration(text, c.lost_after); }},
    setting{"resources",
            "name:amount,name:amount, each name once, amounts from 0 to 1e14; cpus and memory have flags of their own, "
            "--rota-cpus and --rota-memory, and gpus is no custom resource either",
            "custom resources that each rank offers",
            [](config& c, std::string_view text) { return read_resources(text, c.resources); }},
    setting{"fabric", "auto, shared, rma or ucx", "how ranks of other nodes are reached",
            [](config& c, std::string_view text) {
              c.fabric = text;
              return text == "auto" || text == "shared" || text == "rma" || text == "ucx";
            }},
    setting{"log", "trace, debug, info, warn, error or off", "least severe messages that are shown",
            [](config& c, std::string_view text) {
              c.log = text;
              return true;
            }},
};

std::string variable_of(std::string_view name) {
  std::string variable = "ROTA_";
  for (const char letter : name) {
    variable += letter == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  }
  return variable;
}

const setting* find_setting(std::string_view name) {
  const auto found = std::find_if(known_settings.begin(), known_settings.end(),
                                  [&](const setting& known) { return known.name == name; });
  return found == known_settings.end() ? nullptr : &*found;
}

[[noreturn]] void refuse(std::string_view source, std::string_view value, std::string_view accepted) {
  throw config_error(std::string(source) + ": '" + std::string(value) + "' is not accepted; give " +
                     std::string(accepted));
}

// Levenshtein's distance: letters to insert, remove or change.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, changed}));
    }
  }
  return row[b.size()];
}

[[noreturn]] void refuse_unknown(std::string_view name) {
  std::string message = "unknown flag " + std::string(flag_prefix) + std::string(name);
  const auto nearest = std::min_element(
      known_settings.begin(), known_settings.end(),
      [&](const setting& a, const setting& b) { return distance(name, a.name) < distance(name, b.name); });
  if (distance(name, nearest->name) <= std::max<std::size_t>(2, nearest->name.size() / 3)) {
    message += "; did you mean " + std::string(flag_prefix) + std::string(nearest->name) + "?";
  }
  message += " Known flags:";
  for (const setting& known : known_settings) message += " " + std::string(flag_prefix) + std::string(known.name);
  throw config_error(message + " --rota-help");
}

std::string help_text() {
  std::string text = "Flags of the rota runtime (--rota-name=value), and variables for the same:\n";
  for (const setting& known : known_settings) {
    text += "  " + std::string(flag_prefix) + std::string(known.name) + ", " + variable_of(known.name) + "\n      " +
            std::string(known.meaning) + "\n      (" + std::string(known.accepted) + ")\n";
  }
  return text + "  --rota-help\n      print this\n";
}

// What the readers leave open: bounds, which hold for the fields that the program itself filled too.
bool within_bounds(std::string_view name, const config& values) {
  if (name == "cpus") return std::isfinite(values.cpus) && values.cpus >= 0 && values.cpus <= most_slots;
  if (name == "head-slots") return values.head_slots >= -1 && values.head_slots <= static_cast<int>(most_slots);
  if (name == "store") return values.store <= std::numeric_limits<std::size_t>::max() - store_granule;
  if (name == "inline-bytes") {
    return values.inline_bytes >= least_inline_bytes && values.inline_bytes <= most_inline_bytes;
  }
  if (name == "shutdown-timeout") {
    return values.shutdown_timeout.count() >= 0 &&
           std::chrono::duration<double>(values.shutdown_timeout).count() <= longest_timeout_s;
  }
  if (name == "store-patience") return values.store_patience.count() >= 0;
  if (name == "suspect-after") return values.suspect_after >= least_silence;
  if (name == "lost-after") return values.lost_after >= least_silence;
  if (name == "resources") {
    return std::all_of(values.resources.begin(), values.resources.end(), [](const auto& entry) {
      return !entry.first.empty() && !wire::is_own_resource(entry.first) && wire::to_units(entry.second);
    });
  }
  if (name == "log") {
    constexpr std::array levels = {"trace", "debug", "info", "warn", "error", "off"};
    return std::find(levels.begin(), levels.end(), values.log) != levels.end();
  }
  return true;
}

void set(const setting& known, std::string_view source, std::string_view value, config& values) {
  if (!known.read(values, value) || !within_bounds(known.name, values)) refuse(source, value, known.accepted);
}

struct given_flag {
  const setting* known;
  std::string_view value;
};

struct split_arguments {
  std::vector<char*> kept;
  std::vector<given_flag> flags;
  bool help = false;
};

split_arguments split(int argc, char** argv) {
  split_arguments out;
  int at = 0;
  for (; at < argc; ++at) {
    const std::string_view argument = argv[at];
    if (at > 0 && argument == "--") break;
    if (at == 0 || !argument.starts_with(flag_prefix)) {
      out.kept.push_back(argv[at]);
      continue;
    }
    const auto equals = argument.find('=');
    const std::string_view name = argument.substr(0, equals).substr(flag_prefix.size());
    if (name == "help" && equals == std::string_view::npos) {
      out.help = true;
      continue;
    }
    const setting* known = find_setting(name);
    if (known == nullptr) refuse_unknown(name);
    if (equals != std::string_view::npos) {
      out.flags.push_back({known, argument.substr(equals + 1)});
    } else if (at + 1 < argc && !std::string_view(argv[at + 1]).starts_with("--")) {
      out.flags.push_back({known, argv[++at]});
    } else {
      throw config_error(std::string(argument) + " has no value; give " + std::string(known->accepted));
    }
  }
  out.kept.insert(out.kept.end(), argv + at, argv + argc);
  return out;
}

std::string describe_base(std::string_view name) {
  std::string field = "the config given to init, " + std::string(name);
  std::replace(field.begin(), field.end(), '-', '_');
  return field;
}

}  // namespace

settings resolve(int& argc, char**& argv, const config& base, const environment_lookup& lookup) {
  settings out{base, {}, std::nullopt};
  const split_arguments arguments = split(argc, argv);
  if (arguments.help) {
    out.help = help_text();
  } else {
    for (const setting& known : known_settings) {
      if (!within_bounds(known.name, base)) refuse(describe_base(known.name), "this value", known.accepted);
      const std::string variable = variable_of(known.name);
      const char* value = lookup(variable.c_str());
      const bool overridden = std::any_of(arguments.flags.begin(), arguments.flags.end(),
                                          [&](const given_flag& flag) { return flag.known == &known; });
      const bool by_variable = value != nullptr && *value != '\0' && !overridden;
      if (by_variable) set(known, variable, value, out.values);
      const bool by_program = show_setting(known.name, base) != show_setting(known.name, config{});
      out.shown.push_back({std::string(known.name),
                           {},
                           overridden    ? "flag"
                           : by_variable ? variable
                           : by_program  ? "program"
                                         : "default"});
    }
    for (const given_flag& flag : arguments.flags) {
      set(*flag.known, std::string(flag_prefix) + std::string(flag.known->name), flag.value, out.values);
    }
    out.values.store = (out.values.store + store_granule - 1) / store_granule * store_granule;
    for (shown_setting& one : out.shown) one.value = show_setting(one.name, out.values);
  }
  if (argv != nullptr) {
    std::copy(arguments.kept.begin(), arguments.kept.end(), argv);
    argc = static_cast<int>(arguments.kept.size());
    argv[argc] = nullptr;
  }
  return out;
}

settings resolve(int& argc, char**& argv, const config& base) {
  return resolve(argc, argv, base, [](const char* name) -> const char* { return std::getenv(name); });
}

store_choice chosen_store(const base::memory_bounds& memory, std::optional<std::size_t> free_shared) {
  constexpr std::size_t least = std::size_t{8} << 20;
  store_choice choice{memory.machine / 3, "a third of the machine's memory"};
  const base::memory_bound usable = memory.usable();
  if (usable.bytes / 2 < choice.bytes) choice = {usable.bytes / 2, "half of " + std::string(usable.of)};
  if (free_shared && *free_shared / 2 < choice.bytes) choice = {*free_shared / 2, "half of what /dev/shm has free"};
  if (choice.bytes < least) choice = {least, "the least, for there is little memory"};
  return choice;
}

}  // namespace rota::detail
