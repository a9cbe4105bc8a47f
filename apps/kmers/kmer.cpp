#include "apps/kmers/kmer.h"

#include <algorithm>
#include <array>

namespace kmers {
namespace {

constexpr char base_letters[] = "ACGT";
constexpr std::uint8_t no_base = 4;

constexpr std::array<std::uint8_t, 256> make_base_codes() {
  std::array<std::uint8_t, 256> table{};
  table.fill(no_base);
  for (std::uint8_t i = 0; i < 4; ++i) {
    const auto upper = static_cast<unsigned char>(base_letters[i]);
    table[upper] = i;
    table[upper + ('a' - 'A')] = i;
  }
  return table;
}

constexpr std::array<std::uint8_t, 256> base_codes = make_base_codes();

}  // namespace

std::string letters(kmer_code code, int k) {
  std::string text(static_cast<std::size_t>(k), ' ');
  write_letters(code, k, text.data());
  return text;
}

void write_letters(kmer_code code, int k, char* out) {
  for (int i = k - 1; i >= 0; --i) {
    out[i] = base_letters[code & 3];
    code >>= 2;
  }
}

kmer_code encode(std::string_view kmer) {
  kmer_code code = 0;
  for (char c : kmer) code = (code << 2) | base_codes[static_cast<unsigned char>(c)];
  return code;
}

void append_canonical(std::string_view bases, int k, std::vector<kmer_code>& codes) {
  const kmer_code mask = (kmer_code{1} << (2 * k)) - 1;
  const int top = 2 * (k - 1);
  kmer_code forward = 0;
  kmer_code reverse = 0;  // reverse complement of the window
  int length = 0;         // good letters behind us, at most k
  codes.reserve(codes.size() + bases.size());
  for (char c : bases) {
    const kmer_code base = base_codes[static_cast<unsigned char>(c)];
    if (base == no_base) {
      length = 0;
      continue;
    }
    forward = ((forward << 2) | base) & mask;
    reverse = (reverse >> 2) | ((3 - base) << top);
    if (length < k) ++length;
    if (length == k) codes.push_back(std::min(forward, reverse));
  }
}

}  // namespace kmers
