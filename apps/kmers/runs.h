#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "apps/kmers/kmer.h"

namespace kmers {

struct kmer_count {
  kmer_code code;
  std::uint64_t count;
  friend bool operator==(const kmer_count&, const kmer_count&) = default;
};

// A run: counts with rising codes, each code once.
using run_view = std::span<const kmer_count>;

// Sorts `codes` and returns how often each occurs.
std::vector<kmer_count> count_codes(std::vector<kmer_code>& codes, int k);

// One run with the counts of all runs, added up.
std::vector<kmer_count> merge_runs(std::span<const run_view> runs);

// parts - 1 rising codes that cut all codes of k bases into parts: quantiles of `sample` where it is large enough,
// else of what random bases would give. REQUIRES: parts >= 1.
std::vector<kmer_code> choose_splitters(std::vector<kmer_code> sample, int k, std::size_t parts);

// The pieces of `run` between the splitters, one more than there are splitters: piece i has the codes from splitter
// i - 1 (included) to splitter i (excluded). Views into `run`.
std::vector<run_view> split_run(run_view run, std::span<const kmer_code> splitters);

struct totals {
  std::uint64_t unique = 0;    // k-mers seen once
  std::uint64_t distinct = 0;  // different k-mers
  std::uint64_t total = 0;     // windows counted
  std::uint64_t highest = 0;   // largest count
  friend bool operator==(const totals&, const totals&) = default;
};

totals add_up(run_view run);
totals operator+(const totals& a, const totals& b);

// The `n` highest counts of `counts`, highest first, equal ones by code; all of them where there are fewer.
std::vector<kmer_count> highest_counts(run_view counts, std::size_t n);

}  // namespace kmers
