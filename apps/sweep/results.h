#pragma once

#include <cstdint>
#include <vector>

#include "apps/sweep/options.h"

namespace sweep {

// What one point gave, in the order of the grid.
struct result {
  std::vector<std::uint32_t> correct{};  // of each fold
  double accuracy = 0;                   // mean over the folds
  double deviation = 0;                  // of the folds from it, as standard deviation of a sample
};

// Throws input_error where no HDF5 file can be written at `path`: it cannot be made, is there and no regular file, or
// this is a sweep without HDF5.
void check_results_file(const std::string& path);

// Writes a dataset for each column: /k, /norm (int32), /weights (uint8: 0 uniform, 1 distance), /correct (uint32, a
// column for each fold), /accuracy and /deviation (float64); attributes of the file: data and folds. The file is there
// whole or not at all. Throws input_error where it cannot be written.
void write_results(const options& chosen, const std::vector<result>& results);

}  // namespace sweep
