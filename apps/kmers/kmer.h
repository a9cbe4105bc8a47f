#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kmers {

// A k-mer in 2 bits a base (A 0, C 1, G 2, T 3), first base highest: codes of one k order as their letters do.
using kmer_code = std::uint64_t;

constexpr int max_k = 31;

// The letters of `code`. REQUIRES: 1 <= k <= max_k.
std::string letters(kmer_code code, int k);

// Writes the k letters of `code` to `out`.
void write_letters(kmer_code code, int k, char* out);

// The code of `kmer`, not made canonical. REQUIRES: 1 to max_k letters of ACGTacgt.
kmer_code encode(std::string_view kmer);

// Appends to `codes`, for each window of k letters in `bases`, the canonical k-mer: the smaller of the window and its
// reverse complement. Lower case counts as upper case; a window with any other character is skipped.
// REQUIRES: 1 <= k <= max_k.
void append_canonical(std::string_view bases, int k, std::vector<kmer_code>& codes);

}  // namespace kmers
