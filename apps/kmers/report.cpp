#include "apps/kmers/report.h"

#include <cerrno>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "apps/kmers/byte_source.h"
#include "apps/kmers/output_file.h"

namespace kmers {
namespace {

constexpr std::size_t buffer_bytes = 256 * 1024;

void append_line(const kmer_count& entry, int k, std::string& text) {
  char line[64];  // 31 letters, tab, 20 digits, line end
  write_letters(entry.code, k, line);
  line[k] = '\t';
  char* end = std::to_chars(line + k + 1, line + sizeof(line), entry.count).ptr;
  *end++ = '\n';
  text.append(line, end);
}

}  // namespace

void write_table(const std::string& path, const std::vector<rota::ref<run>>& parts, int k, progress& bar) {
  output_file out(path);
  std::string text;
  text.reserve(buffer_bytes + 64);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    bar.show("writing", i, parts.size());
    const run part = rota::get(parts[i]);
    for (const kmer_count& entry : part) {
      append_line(entry, k, text);
      if (text.size() < buffer_bytes) continue;
      out.write(text);
      text.clear();
    }
  }
  out.write(text);
  out.commit();
}

void print_summary(const part_summary& summary, int k) {
  const totals& sums = summary.sums;
  std::printf("k\t%d\nunique\t%" PRIu64 "\ndistinct\t%" PRIu64 "\ntotal\t%" PRIu64 "\nhighest\t%" PRIu64 "\n", k,
              sums.unique, sums.distinct, sums.total, sums.highest);
  for (const kmer_count& entry : summary.top) {
    std::printf("%s\t%" PRIu64 "\n", letters(entry.code, k).c_str(), entry.count);
  }
  if (std::fflush(stdout) != 0) throw input_error(std::string("standard output: ") + std::strerror(errno));
}

}  // namespace kmers
