#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "apps/sweep/neighbours.h"

namespace sweep {

struct options {
  std::vector<point> grid{};
  std::size_t folds = 5;
  std::string out{};  // none where empty
  std::string file{};
};

// The options of a command line. Prints the help and returns none where --help was asked for. Throws input_error.
std::optional<options> parse_options(int argc, char** argv);

}  // namespace sweep
