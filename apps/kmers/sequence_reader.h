#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "apps/kmers/byte_source.h"

namespace kmers {

// Stands between the bases of two records; no letter, so no k-mer reaches across it.
constexpr char record_end = '\n';

// The sequences of one FASTA or FASTQ file, as a stream of letters. Lines of any length and all three line ends
// (LF, CRLF, CR) are read; FASTQ records have four lines. Memory does not grow with lines or records. One thread.
// Every error is an input_error that names the file, the line and the cause.
class sequence_reader {
 public:
  explicit sequence_reader(std::string path) : source_(std::move(path)) {}

  // Appends letters, as they stand in the file, and record_end behind each record, until `out` holds `size` characters
  // or the file ends. False: the file had ended before anything was appended.
  bool read(std::string& out, std::size_t size);

  const std::string& path() const { return source_.path(); }
  std::uint64_t bytes_read() const { return source_.bytes_read(); }

 private:
  enum class format { unknown, fasta, fastq };
  enum class line { header, sequence, plus, quality };

  void take(char c, std::string& out);
  void begin_line(char c, std::string& out);
  void end_line();
  void end_file(std::string& out);
  std::size_t take_run(std::string_view bytes, std::string& out, std::size_t size);
  [[noreturn]] void fail(const std::string& cause) const;
  [[noreturn]] void fail_at_letter(char c) const;

  byte_source source_;
  std::string_view bytes_{};  // unread part of what source_ gave last
  format format_ = format::unknown;
  line line_ = line::header;  // kind of the present line; at the start of a FASTQ line, of the one to come
  bool at_line_start_ = true;
  bool after_cr_ = false;  // the last character was CR: an LF here belongs to it
  bool in_record_ = false;
  bool ended_ = false;
  std::uint64_t line_number_ = 1;
  std::uint64_t sequence_length_ = 0;  // of the present FASTQ record
  std::uint64_t quality_length_ = 0;
};

// Throws input_error unless the file can be opened and begins like FASTA or FASTQ. Pipes are left for the reader, since
// they can be read only once.
void check_begins_as_sequences(const std::string& path);

}  // namespace kmers
