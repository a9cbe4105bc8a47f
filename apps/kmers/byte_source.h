#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/common/program.h"

namespace kmers {

using common::input_error;

// The bytes of one file, unpacked when it is gzip (also of several members, as bgzip writes). Memory does not grow with
// the file. One thread. Every error is an input_error that names the file: a truncated or damaged member, and bytes
// behind the last member, never pass for the end of the file.
class byte_source {
 public:
  explicit byte_source(std::string path);
  ~byte_source();
  byte_source(const byte_source&) = delete;
  byte_source& operator=(const byte_source&) = delete;

  // The next bytes, valid until the next call; empty at the end of the file.
  std::span<const char> next();

  const std::string& path() const { return path_; }

  // Bytes of the file itself, packed if it is, read so far.
  std::uint64_t bytes_read() const { return bytes_read_; }

 private:
  struct close_file {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  bool fill();    // more packed bytes into packed_; false at the end of the file
  void detect();  // reads the beginning and decides whether the file is gzip
  std::span<const char> unpack();
  bool next_member();  // true where another member follows
  [[noreturn]] void fail(const std::string& cause) const;

  std::string path_;
  std::unique_ptr<std::FILE, close_file> file_;
  std::uint64_t bytes_read_ = 0;
  bool started_ = false;
  bool gzip_ = false;
  bool in_member_ = false;
  std::size_t packed_begin_ = 0;  // packed_[packed_begin_, packed_end_) is not yet consumed
  std::size_t packed_end_ = 0;
  std::vector<char> packed_;
  std::vector<char> unpacked_;
  z_stream stream_{};
};

}  // namespace kmers
