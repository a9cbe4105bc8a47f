#include "runtime/base/memory.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <string_view>

namespace rota::base {
namespace {

using bound = std::optional<std::size_t>;

void lower(bound& to, const bound& other) {
  if (other && (!to || *other < *to)) to = other;
}

void tighten(memory_bound& to, const bound& other, std::string_view name) {
  if (other && *other < to.bytes) to = {*other, name};
}

// A file of one number; "max" is none.
bound number_in(const file_reader& read, const std::string& path) {
  const std::optional<std::string> text = read(path);
  std::size_t value = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc{}) return std::nullopt;
  return value;
}

// The number behind a word at the start of a line.
bound number_behind(const std::optional<std::string>& text, std::string_view word) {
  std::istringstream lines(text.value_or(""));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream parts(line);
    std::string name;
    std::size_t value = 0;
    if (parts >> name >> value && name == word) return value;
  }
  return std::nullopt;
}

// memory.high is no wall, but whoever is above it is slowed down until little of it moves.
bound limit_of(const file_reader& read, const control_group& group) {
  if (!group.unified) return number_in(read, group.folder + "/memory.limit_in_bytes");
  bound limit = number_in(read, group.folder + "/memory.max");
  lower(limit, number_in(read, group.folder + "/memory.high"));
  return limit;
}

void add_group(memory_bounds& to, const file_reader& read, const control_group& group) {
  const bound limit = limit_of(read, group);
  if (!limit) return;
  const char* usage = group.unified ? "/memory.current" : "/memory.usage_in_bytes";
  const char* cache = group.unified ? "inactive_file" : "total_inactive_file";
  const std::size_t used = number_in(read, group.folder + usage).value_or(0);
  const std::size_t cached = number_behind(read(group.folder + "/memory.stat"), cache).value_or(0);
  lower(to.group, limit);
  lower(to.group_left, *limit - std::min(*limit, used - std::min(used, cached)));
}

}  // namespace

memory_bound memory_bounds::limit() const {
  memory_bound least{machine, "the machine's memory"};
  tighten(least, group, "the control group's memory");
  tighten(least, job, "the memory that Slurm gave the job");
  return least;
}

memory_bound memory_bounds::usable() const {
  memory_bound least = limit();
  tighten(least, available, "the memory that the machine has available");
  tighten(least, group_left, "the memory that the control group has left");
  return least;
}

memory_bounds read_memory_bounds(std::size_t machine, const file_reader& read) {
  memory_bounds found;
  found.machine = machine;
  if (const bound kilobytes = number_behind(read("/proc/meminfo"), "MemAvailable:"))
    found.available = *kilobytes * 1024;
  for (const control_group& group : groups_around(read, "memory")) add_group(found, read, group);
  return found;
}

memory_bounds read_memory_bounds() {
  const auto machine =
      static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return read_memory_bounds(machine, files_under({}));
}

}  // namespace rota::base
