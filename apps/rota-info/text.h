#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace info {

// The facts, for people.
std::string to_text(const nlohmann::ordered_json& facts);

}  // namespace info
