#pragma once

#include <nlohmann/json_fwd.hpp>

namespace info {

// All that rota-info tells, as README.md describes it. Asks every rank by a task. REQUIRES: a session runs here, and
// this is its program.
nlohmann::ordered_json gather_facts();

}  // namespace info
