#include "apps/kmers/kmer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "apps/kmers/runs.h"

namespace kmers {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> canonical(std::string_view bases, int k) {
  std::vector<kmer_code> codes;
  append_canonical(bases, k, codes);
  std::vector<std::string> texts;
  for (kmer_code code : codes) texts.push_back(letters(code, k));
  return texts;
}

std::string reverse_complement(std::string text) {
  std::reverse(text.begin(), text.end());
  for (char& c : text) c = "TGCA"[std::string_view("ACGT").find(c)];
  return text;
}

std::string random_bases(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::string bases;
  while (bases.size() < n) bases += "ACGT"[random() % 4];
  return bases;
}

std::vector<kmer_count> count(std::string_view bases, int k) {
  std::vector<kmer_code> codes;
  append_canonical(bases, k, codes);
  return count_codes(codes, k);
}

TEST(kmer, letters_and_codes_are_inverse_up_to_k_31) {
  const std::string longest = "TGCATGCATGCATGCATGCATGCATGCATGC";
  EXPECT_EQ(letters(encode(longest), max_k), longest);
  EXPECT_EQ(letters(encode("A"), 1), "A");
  EXPECT_LT(encode("ACGT"), encode("ACTA"));
}

TEST(kmer, canonical_is_the_smaller_of_both_strands) {
  EXPECT_THAT(canonical("TTTT", 3), ElementsAre("AAA", "AAA"));
  EXPECT_THAT(canonical("ACGT", 4), ElementsAre("ACGT"));
  EXPECT_THAT(canonical("G", 1), ElementsAre("C"));
}

TEST(kmer, both_strands_give_the_same_counts) {
  const std::string bases = random_bases(5000, 1);
  for (int k : {1, 2, 11, 21, 30, 31}) EXPECT_EQ(count(bases, k), count(reverse_complement(bases), k)) << k;
}

TEST(kmer, counts_are_those_of_a_plain_map_of_strings) {
  const std::string bases = random_bases(3000, 2);
  constexpr int k = 5;
  std::map<std::string, std::uint64_t> expected;
  for (std::size_t i = 0; i + k <= bases.size(); ++i) {
    const std::string window = bases.substr(i, k);
    ++expected[std::min(window, reverse_complement(window))];
  }
  const auto counts = count(bases, k);
  ASSERT_EQ(counts.size(), expected.size());
  auto at = counts.begin();
  for (const auto& [text, n] : expected) {
    EXPECT_EQ(letters(at->code, k), text);
    EXPECT_EQ(at++->count, n);
  }
}

TEST(kmer, lower_case_counts_as_upper_case) { EXPECT_EQ(canonical("acgtTGca", 3), canonical("ACGTTGCA", 3)); }

TEST(kmer, windows_with_another_letter_are_skipped) {
  EXPECT_THAT(canonical("AACNAAG", 3), ElementsAre("AAC", "AAG"));
  EXPECT_THAT(canonical("ACUAC-AC\nAC", 3), IsEmpty());
}

TEST(kmer, sequences_shorter_than_k_have_none) {
  EXPECT_THAT(canonical("ACGT", 5), IsEmpty());
  EXPECT_THAT(canonical("", 1), IsEmpty());
}

TEST(runs, merging_adds_up_and_keeps_order) {
  const std::vector<kmer_count> a{{1, 1}, {3, 2}}, b{{3, 5}}, c{}, d{{0, 1}, {9, 1}}, e{{9, 7}};
  const std::vector<run_view> runs{a, b, c, d, e};
  EXPECT_THAT(merge_runs(runs), ElementsAre(kmer_count{0, 1}, kmer_count{1, 1}, kmer_count{3, 7}, kmer_count{9, 8}));
  EXPECT_THAT(merge_runs({}), IsEmpty());
}

TEST(runs, pieces_between_splitters_make_up_the_run) {
  const std::vector<kmer_count> run{{1, 1}, {4, 1}, {5, 1}, {9, 1}};
  const std::vector<kmer_code> splitters{0, 4, 4, 20};
  const auto pieces = split_run(run, splitters);
  std::vector<std::size_t> sizes;
  for (const auto& piece : pieces) sizes.push_back(piece.size());
  EXPECT_THAT(sizes, ElementsAre(0U, 1U, 0U, 3U, 0U));
}

TEST(runs, splitters_cut_random_bases_into_even_parts) {
  constexpr int k = 21;
  constexpr std::size_t parts = 7;
  const auto counts = count(random_bases(100'000, 3), k);
  std::vector<kmer_code> sample;
  append_canonical(random_bases(10'000, 4), k, sample);
  for (const auto& splitters : {choose_splitters({}, k, parts), choose_splitters(sample, k, parts)}) {
    const auto pieces = split_run(counts, splitters);
    ASSERT_EQ(pieces.size(), parts);
    for (const auto& piece : pieces) {
      EXPECT_GT(piece.size(), counts.size() / parts * 3 / 4);
      EXPECT_LT(piece.size(), counts.size() / parts * 5 / 4);
    }
  }
  EXPECT_THAT(choose_splitters({}, k, 1), IsEmpty());
}

TEST(runs, totals_say_unique_distinct_total_and_highest) {
  const std::vector<kmer_count> run{{1, 1}, {2, 5}, {3, 1}};
  EXPECT_EQ(add_up(run), (totals{2, 3, 7, 5}));
  EXPECT_EQ(add_up(run) + totals{}, add_up(run));
  EXPECT_EQ(add_up({}), totals{});
}

TEST(runs, highest_counts_come_first_and_equal_ones_by_letters) {
  const std::vector<kmer_count> run{{1, 2}, {2, 5}, {3, 2}, {4, 1}};
  EXPECT_THAT(highest_counts(run, 3), ElementsAre(kmer_count{2, 5}, kmer_count{1, 2}, kmer_count{3, 2}));
  EXPECT_EQ(highest_counts(run, 100).size(), 4U);
  EXPECT_THAT(highest_counts(run, 0), IsEmpty());
}

}  // namespace
}  // namespace kmers
