#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace kmers {

struct options {
  int k = 21;
  std::size_t chunk = 64 * 1024;  // letters
  std::size_t top = 10;
  std::string out{};  // no table where empty
  std::vector<std::string> files{};
};

// Whether a table is to be an HDF5 file: by its suffix, .h5 or .hdf5.
bool names_hdf5(const std::string& path);

// The options of a command line, checked as far as that goes before work begins: ranges, that every file begins as
// FASTA or FASTQ, that `out` can be written. Prints the help and returns none where --help was asked for. Throws
// input_error.
std::optional<options> parse_options(int argc, char** argv);

}  // namespace kmers
