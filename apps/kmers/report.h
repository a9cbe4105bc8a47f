#pragma once

#include <string>
#include <vector>

#include "apps/kmers/count.h"

namespace kmers {

// Writes "k-mer <tab> count" lines in alphabetical order, part by part: one part at a time is on this rank. The file is
// there whole or not at all. Throws input_error where it cannot be written.
void write_table(const std::string& path, const std::vector<rota::ref<run>>& parts, int k, progress& bar);

// The report of a run of the program, on stdout. Throws input_error where it cannot be written.
void print_summary(const part_summary& summary, int k);

}  // namespace kmers
