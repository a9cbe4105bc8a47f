#include "apps/kmers/sequence_reader.h"

#include <algorithm>
#include <array>
#include <filesystem>

namespace kmers {
namespace {

constexpr bool is_line_end(char c) { return c == '\n' || c == '\r'; }

// IUPAC letters, gaps and stops. Everything else in a sequence means that the file is something else.
constexpr std::array<bool, 256> make_sequence_letters() {
  std::array<bool, 256> table{};
  for (unsigned char c = 'a'; c <= 'z'; ++c) table[c] = true;
  for (unsigned char c = 'A'; c <= 'Z'; ++c) table[c] = true;
  for (unsigned char c : {'*', '-', '.'}) table[c] = true;
  return table;
}

constexpr std::array<bool, 256> sequence_letters = make_sequence_letters();

bool is_sequence_letter(char c) { return sequence_letters[static_cast<unsigned char>(c)]; }

std::string shown(char c) {
  constexpr std::string_view digits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  if (byte >= 0x20 && byte < 0x7f) return std::string("'") + c + "'";
  return std::string("byte 0x") + digits[byte >> 4] + digits[byte & 15];
}

}  // namespace

bool sequence_reader::read(std::string& out, std::size_t size) {
  const std::size_t before = out.size();
  while (!ended_ && out.size() < size) {
    if (bytes_.empty()) {
      const auto bytes = source_.next();
      bytes_ = {bytes.data(), bytes.size()};
      if (bytes_.empty()) {
        end_file(out);
        break;
      }
    }
    const std::size_t taken = take_run(bytes_, out, size);
    bytes_.remove_prefix(taken);
    if (taken > 0) continue;
    const char c = bytes_.front();
    bytes_.remove_prefix(1);
    take(c, out);
  }
  return out.size() > before;
}

// The characters at the front of `bytes` that only continue the present line, as far as there is room in `out`.
std::size_t sequence_reader::take_run(std::string_view bytes, std::string& out, std::size_t size) {
  if (at_line_start_) return 0;
  if (line_ == line::sequence) {
    const std::string_view room = bytes.substr(0, size - out.size());
    const auto end = std::find_if_not(room.begin(), room.end(), is_sequence_letter);
    out.append(room.begin(), end);
    const auto length = static_cast<std::size_t>(end - room.begin());
    sequence_length_ += length;
    return length;
  }
  const auto end = std::find_if(bytes.begin(), bytes.end(), is_line_end);
  const auto length = static_cast<std::size_t>(end - bytes.begin());
  if (line_ == line::quality) quality_length_ += length;
  return length;
}

void sequence_reader::take(char c, std::string& out) {
  if (after_cr_ && c == '\n') {
    after_cr_ = false;
    return;
  }
  after_cr_ = c == '\r';
  // An empty line says something in FASTQ only, and there between the header and the end of the record.
  const bool may_be_empty = format_ != format::fastq || line_ == line::header;
  if (at_line_start_ && !(is_line_end(c) && may_be_empty)) begin_line(c, out);
  if (is_line_end(c)) {
    if (!at_line_start_) end_line();
    at_line_start_ = true;
    ++line_number_;
  } else if (line_ == line::sequence) {
    if (!is_sequence_letter(c)) fail_at_letter(c);
    out += c;
    ++sequence_length_;
  } else if (line_ == line::quality) {
    ++quality_length_;
  }
}

void sequence_reader::begin_line(char c, std::string& out) {
  at_line_start_ = false;
  if (format_ == format::unknown) {
    if (c != '>' && c != '@') fail("not FASTA or FASTQ (begins with " + shown(c) + ", not with > or @)");
    format_ = c == '>' ? format::fasta : format::fastq;
  }
  if (format_ == format::fasta) {
    line_ = c == '>' ? line::header : line::sequence;
    if (line_ == line::header && in_record_) out += record_end;
    in_record_ = true;
    return;
  }
  if (line_ == line::header) {
    if (c != '@') fail("line " + std::to_string(line_number_) + ": a FASTQ record must begin with @");
    if (in_record_) out += record_end;
    in_record_ = true;
    sequence_length_ = 0;
    quality_length_ = 0;
  } else if (line_ == line::plus && c != '+') {
    fail("line " + std::to_string(line_number_) + ": the third line of a FASTQ record must begin with +");
  }
}

void sequence_reader::end_line() {
  if (format_ == format::fasta) return;
  switch (line_) {
    case line::header:
      line_ = line::sequence;
      break;
    case line::sequence:
      line_ = line::plus;
      break;
    case line::plus:
      line_ = line::quality;
      break;
    case line::quality:
      if (quality_length_ != sequence_length_) {
        fail("line " + std::to_string(line_number_) + ": " + std::to_string(quality_length_) + " qualities for " +
             std::to_string(sequence_length_) + " bases");
      }
      line_ = line::header;
      break;
  }
}

void sequence_reader::end_file(std::string& out) {
  ended_ = true;
  if (format_ == format::unknown) fail("not FASTA or FASTQ (the file is empty)");
  // The last line may lack its end; without a line of qualities only a record without bases is whole.
  if (!at_line_start_) end_line();
  const bool whole = line_ == line::header || (line_ == line::quality && at_line_start_ && sequence_length_ == 0);
  if (format_ == format::fastq && !whole) {
    fail("line " + std::to_string(line_number_) + ": the file ends inside a FASTQ record");
  }
  if (in_record_) out += record_end;
}

void sequence_reader::fail(const std::string& cause) const { throw input_error(path() + ": " + cause); }

void sequence_reader::fail_at_letter(char c) const {
  fail("not FASTA or FASTQ (line " + std::to_string(line_number_) + " has " + shown(c) + " in a sequence)");
}

void check_begins_as_sequences(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored) &&
      !std::filesystem::is_directory(path, ignored)) {
    return;
  }
  std::string beginning;
  sequence_reader(path).read(beginning, 1);
}

}  // namespace kmers
