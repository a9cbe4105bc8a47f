#pragma once

#include <string>
#include <vector>

#include "apps/kmers/count.h"
#include "apps/kmers/options.h"

namespace kmers {

// Throws input_error where no HDF5 table can be written at `path`: no regular file, or a kmers without HDF5.
void check_hdf5_table(const std::string& path);

// Writes the datasets /kmers (uint64, 2 bits a base) and /counts (uint32), in order, part by part: one part at a time
// is on this rank. Attributes of the file: k, and source, the names of the input files, one a line. The file is there
// whole or not at all. Throws input_error where it cannot be written.
void write_hdf5_table(const options& chosen, const std::vector<rota::ref<run>>& parts, progress& bar);

}  // namespace kmers
