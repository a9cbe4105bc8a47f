#pragma once

#include <rota/rota.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/kmers/progress.h"
#include "apps/kmers/runs.h"

namespace kmers {

// A run in the store.
using run = rota::array<kmer_count>;

// What one part adds to the report.
struct part_summary {
  totals sums{};
  std::vector<kmer_count> top{};
  template <class Archive>
  void serialize(Archive& archive) {
    archive(sums, top);
  }
};

// How the work is cut up for the slots that the cluster has.
struct shape {
  std::size_t parts;      // merges that run side by side; part i has smaller codes than part i + 1
  std::size_t in_flight;  // chunks that are being counted at a time: bounds the memory of rank 0
};
shape shape_for_cluster();

// Counts the k-mers of `files` by tasks: one a chunk, and merges for each part. Reading, deciding and waiting happen
// here, on rank 0. Returns the run of each part; its last merge may still be going on. Throws input_error where a file
// is bad, and what rota::get throws.
std::vector<rota::ref<run>> count_files(const std::vector<std::string>& files, std::size_t chunk, int k,
                                        const shape& cut, progress& bar);

// Sums and top list over all parts, summed up by a task a part.
part_summary summarize(const std::vector<rota::ref<run>>& parts, std::size_t top, progress& bar);

}  // namespace kmers
