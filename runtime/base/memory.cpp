#include "runtime/base/memory.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

namespace rota::base {
namespace {

using bound = std::optional<std::size_t>;

void lower(bound& to, const bound& other) {
  if (other && (!to || *other < *to)) to = other;
}

// A group of either version: its folder, and how its files are called.
struct group_files {
  std::string folder;
  const char *limit, *usage, *cached;
};

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

void add_group(memory_bounds& to, const file_reader& read, const group_files& files) {
  const bound limit = number_in(read, files.folder + files.limit);
  if (!limit) return;
  const std::size_t used = number_in(read, files.folder + files.usage).value_or(0);
  const std::size_t cached = number_behind(read(files.folder + "/memory.stat"), files.cached).value_or(0);
  lower(to.group, limit);
  lower(to.group_left, *limit - std::min(*limit, used - std::min(used, cached)));
}

// A group and all around it. In a container the path may be one of the host's, of which only the root is here.
void add_groups(memory_bounds& to, const file_reader& read, const std::string& root, std::string path,
                const group_files& names) {
  for (;;) {
    group_files files = names;
    files.folder = root + path;
    add_group(to, read, files);
    if (path.empty()) return;
    path.erase(path.find_last_of('/'));
  }
}

}  // namespace

std::size_t memory_bounds::limit() const {
  bound least = machine;
  lower(least, group);
  lower(least, job);
  return *least;
}

std::size_t memory_bounds::usable() const {
  bound least = limit();
  lower(least, available);
  lower(least, group_left);
  return *least;
}

memory_bounds read_memory_bounds(std::size_t machine, const file_reader& read) {
  memory_bounds found;
  found.machine = machine;
  if (const bound kilobytes = number_behind(read("/proc/meminfo"), "MemAvailable:"))
    found.available = *kilobytes * 1024;
  // Lines "number:controllers:path"; version 2 has no controllers.
  std::istringstream lines(read("/proc/self/cgroup").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    std::string path = line.substr(second + 1);
    if (path == "/" || !path.starts_with('/')) path.clear();
    if (controllers == ",,") {
      add_groups(found, read, "/sys/fs/cgroup", path, {"", "/memory.max", "/memory.current", "inactive_file"});
    } else if (controllers.find(",memory,") != std::string::npos) {
      add_groups(found, read, "/sys/fs/cgroup/memory", path,
                 {"", "/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file"});
    }
  }
  return found;
}

memory_bounds read_memory_bounds() {
  const auto machine =
      static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return read_memory_bounds(machine, [](const std::string& path) -> std::optional<std::string> {
    std::ifstream file(path);
    if (!file) return std::nullopt;
    return std::string{std::istreambuf_iterator<char>(file), {}};
  });
}

}  // namespace rota::base
