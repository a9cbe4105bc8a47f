#include "apps/kmers/options.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>

#include "apps/common/program.h"
#include "apps/kmers/kmer.h"
#include "apps/kmers/output_file.h"
#include "apps/kmers/sequence_reader.h"

namespace kmers {
namespace {

constexpr std::uint64_t largest_chunk = std::uint64_t{1} << 30;

void check(const options& chosen) {
  for (const std::string& file : chosen.files) {
    check_begins_as_sequences(file);
    std::error_code ignored;
    if (!chosen.out.empty() && std::filesystem::equivalent(file, chosen.out, ignored)) {
      throw input_error(chosen.out + ": is an input, and would be overwritten");
    }
  }
  if (!chosen.out.empty()) check_writable(chosen.out);
}

}  // namespace

bool names_hdf5(const std::string& path) { return path.ends_with(".h5") || path.ends_with(".hdf5"); }

std::optional<options> parse_options(int argc, char** argv) {
  options chosen;
  std::uint64_t chunk = chosen.chunk;
  CLI::App app("Counts canonical k-mers of FASTA or FASTQ files, plain or .gz, with rota tasks.", "kmers");
  app.add_option("-k", chosen.k, "letters of a k-mer, 1 to 31")->check(CLI::Range(1, max_k))->capture_default_str();
  app.add_option("--chunk", chunk, "letters counted by one task, as 64K or 1M")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Range(std::uint64_t{1}, largest_chunk))
      ->default_str("64K");
  app.add_option("--out", chosen.out,
                 "write all k-mers and their counts here, in order: tab separated, or as HDF5 where it ends in .h5");
  app.add_option("--top", chosen.top, "how many of the most frequent k-mers to print")->capture_default_str();
  app.add_option("FILE", chosen.files, "FASTA or FASTQ")->required();
  if (!common::parse(app, argc, argv)) return std::nullopt;
  chosen.chunk = chunk;
  check(chosen);
  return chosen;
}

}  // namespace kmers
