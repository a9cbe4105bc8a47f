#include "apps/rota-info/text.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace info {
namespace {

using json = nlohmann::ordered_json;

constexpr std::size_t most_named = 8;  // of a kind on one line

std::string text_of(const json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

std::string size(const json& bytes) {
  if (bytes.is_null()) return "none";
  std::array<char, 32> text{};
  const double mebibytes = bytes.get<double>() / (1 << 20);
  if (mebibytes < 10240) {
    std::snprintf(text.data(), text.size(), "%.0f MiB", mebibytes);
  } else {
    std::snprintf(text.data(), text.size(), "%.1f GiB", mebibytes / 1024);
  }
  return text.data();
}

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", value);
  return text.data();
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

// "3, 4, 5 and 9 more"
std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < most_named; ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > most_named) text += " and " + std::to_string(names.size() - most_named) + " more";
  return text;
}

// Rising numbers, as "0-3, 7".
std::string ranges(const std::vector<unsigned>& numbers) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    parts.push_back(std::to_string(numbers[i]) + (last > i ? "-" + std::to_string(numbers[last]) : ""));
    i = last + 1;
  }
  return join(parts);
}

std::string build_text(const json& facts) {
  const json& build = facts["build"];
  std::string text =
      "rota " + text_of(facts["version"]) + " (" + text_of(build["type"]) + ", " + text_of(build["compiler"]);
  if (!text_of(build["sanitizers"]).empty()) text += ", sanitizers " + text_of(build["sanitizers"]);
  const std::string ucx = text_of(facts["ucx"]);
  return text + "), " + text_of(facts["mpi"]) + ", " + (ucx.empty() ? "without UCX" : "UCX " + ucx) + "\n";
}

std::string links_text(const json& facts) {
  struct kind {
    std::size_t pairs = 0;
    std::vector<std::string> where;
  };
  std::map<std::string, kind> kinds;
  for (const json& link : facts["links"]) {
    const std::string by = text_of(link["by"]);
    kind& k = kinds[text_of(link["fabric"]) + (by.empty() ? "" : " " + by)];
    k.pairs += link["pairs"].get<std::size_t>();
    std::string where;
    for (const json& node : link["nodes"])
      where += (where.empty() ? "" : "-") + text_of(facts["nodes"][node.get<std::size_t>()]["host"]);
    if (!where.empty()) k.where.push_back(where);
  }
  std::string text = "links, in pairs of ranks\n";
  if (kinds.empty()) text += "  none: one rank is alone\n";
  for (const auto& [name, k] : kinds) {
    text += "  " + padded(name, 20) + " " + padded(std::to_string(k.pairs), 8) + (k.where.empty() ? "" : " on ") +
            join(k.where) + "\n";
  }
  return text;
}

std::string ranks_text(const json& node) {
  std::map<std::string, std::vector<unsigned>> alike;
  for (const json& rank : node["ranks"]) {
    const std::string slots = text_of(rank["slots"]);
    alike[slots + (slots == "1" ? " slot: " : " slots: ") + text_of(rank["slots_from"])].push_back(rank["rank"]);
  }
  std::string text;
  for (const auto& [what, ranks] : alike)
    text +=
        "  " + padded(ranks.size() == 1 ? "rank " + ranges(ranks) : "ranks " + ranges(ranks), 12) + " " + what + "\n";
  return text;
}

std::string node_text(const json& node, std::size_t number_of_node) {
  const json& memory = node["memory"];
  std::string text = "node " + std::to_string(number_of_node) + ", " + text_of(node["host"]) + "\n" + ranks_text(node);
  if (!node["cpu_quota"].is_null())
    text += "  CPU time     of " + number(node["cpu_quota"]) + " CPUs, by control group\n";
  text += "  memory       " + size(memory["limit"]) + ": " + text_of(memory["limit_is"]) + "; usable " +
          size(memory["usable"]) +
          (memory["usable_is"] == memory["limit_is"] ? "" : ": " + text_of(memory["usable_is"])) + "\n";
  text += "  /dev/shm     " + size(memory["shm"]) + ", of which " + size(memory["shm_free"]) + " were free\n";
  text += "  store        " + size(memory["store"]) + ": " + text_of(memory["store_is"]) + "\n";
  std::vector<std::string> interfaces;
  for (const json& one : node["interfaces"]) {
    const bool bridge = one["inner_bridge"].get<bool>();
    interfaces.push_back(text_of(one["name"]) + " " + text_of(one["address"]) + (bridge ? " (an inner bridge)" : ""));
  }
  text += "  interfaces   " + (interfaces.empty() ? "none" : join(interfaces)) + "\n";
  if (!text_of(node["devices"]).empty()) text += "  in use       " + text_of(node["devices"]) + "\n";
  return text;
}

std::string settings_text(const json& facts) {
  std::string text = "settings\n";
  for (const json& one : facts["settings"]) {
    text += "  --rota-" + padded(text_of(one["name"]), 17) + " " + padded(text_of(one["value"]), 8) + " " +
            text_of(one["from"]) + "\n";
    if (!one.contains("elsewhere")) continue;
    std::map<std::string, std::vector<unsigned>> others;
    for (const json& other : one["elsewhere"])
      others[text_of(other["value"]) + " " + text_of(other["from"])].push_back(other["rank"]);
    for (const auto& [what, ranks] : others) text += "    rank " + ranges(ranks) + ": " + what + "\n";
  }
  if (facts["environment"].empty()) return text;
  text += "environment of MPI and UCX\n";
  for (const json& one : facts["environment"]) {
    text += "  " + text_of(one["name"]) + "=" + text_of(one["value"]);
    if (!one["everywhere"].get<bool>()) text += " on rank " + ranges(one["ranks"].get<std::vector<unsigned>>());
    text += "\n";
  }
  return text;
}

}  // namespace

std::string to_text(const json& facts) {
  std::string text = build_text(facts) + text_of(facts["ranks"]) + " ranks, " + std::to_string(facts["nodes"].size()) +
                     " nodes, " + number(facts["slots"]) + " slots, fabric " + text_of(facts["fabric"]) + " (" +
                     text_of(facts["fabric_why"]) + ")\n";
  text += links_text(facts);
  for (std::size_t i = 0; i < facts["nodes"].size(); ++i) text += node_text(facts["nodes"][i], i);
  return text + settings_text(facts);
}

}  // namespace info
