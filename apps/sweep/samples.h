#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/common/program.h"

namespace sweep {

using common::input_error;

// Labelled samples, row by row: `columns` integers, the last of which is the label.
struct samples {
  std::size_t columns = 0;
  std::vector<std::int32_t> values{};
};

// Reads comma-separated integers, plain or .gz, without a head line. Throws input_error: no such file, a truncated one,
// rows of different length, what is no integer, labels outside 0 to 255.
samples read_samples(const std::string& path);

}  // namespace sweep
