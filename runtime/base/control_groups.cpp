#include "runtime/base/control_groups.h"

#include <fstream>
#include <iterator>
#include <sstream>

namespace rota::base {
namespace {

// In a container the path may be one of the host's, of which only the root is here.
void add_path(std::vector<control_group>& to, const std::string& root, std::string path, bool unified) {
  if (path == "/" || !path.starts_with('/')) path.clear();
  for (;;) {
    to.push_back({root + path, unified});
    if (path.empty()) return;
    path.erase(path.find_last_of('/'));
  }
}

// Two numbers, each from its own file or both from one; nullopt where one is missing, is no number or not positive.
std::optional<double> quotient(const std::string& text) {
  std::istringstream parts(text);
  double quota = 0, period = 0;
  if (!(parts >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

}  // namespace

file_reader files_under(std::string root) {
  return [root = std::move(root)](const std::string& path) -> std::optional<std::string> {
    std::ifstream file(root + path);
    if (!file) return std::nullopt;
    return std::string{std::istreambuf_iterator<char>(file), {}};
  };
}

std::vector<control_group> groups_around(const file_reader& read, std::string_view controller) {
  std::vector<control_group> found;
  // Lines "number:controllers:path"; version 2 has no controllers.
  std::istringstream lines(read("/proc/self/cgroup").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    if (controllers == ",,") {
      add_path(found, "/sys/fs/cgroup", line.substr(second + 1), true);
    } else if (controllers.find("," + std::string(controller) + ",") != std::string::npos) {
      add_path(found, "/sys/fs/cgroup/" + std::string(controller), line.substr(second + 1), false);
    }
  }
  return found;
}

std::optional<double> cpu_quota(const file_reader& read) {
  std::optional<double> least;
  for (const control_group& group : groups_around(read, "cpu")) {
    const std::string text = group.unified ? read(group.folder + "/cpu.max").value_or("")
                                           : read(group.folder + "/cpu.cfs_quota_us").value_or("") + " " +
                                                 read(group.folder + "/cpu.cfs_period_us").value_or("");
    const std::optional<double> cpus = quotient(text);
    if (cpus && (!least || *cpus < *least)) least = cpus;
  }
  return least;
}

}  // namespace rota::base
