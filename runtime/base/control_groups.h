#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rota::base {

// The content of a file; nullopt where it cannot be read.
using file_reader = std::function<std::optional<std::string>(const std::string& path)>;

// Reads the files below a folder as if it were the root of all; empty: this machine's own.
file_reader files_under(std::string root);

// A control group that this process is in, or one around that.
struct control_group {
  std::string folder;
  bool unified = false;  // version 2
};

// The groups that bound what `controller` (memory, cpu) hands out, of both versions, each before those around it.
std::vector<control_group> groups_around(const file_reader& read, std::string_view controller);

// How many CPUs the tightest group gives time for (cpu.max, cpu.cfs_quota_us), as 1.5; nullopt where none bounds it.
std::optional<double> cpu_quota(const file_reader& read);

}  // namespace rota::base
