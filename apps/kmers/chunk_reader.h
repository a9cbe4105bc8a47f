#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/kmers/sequence_reader.h"

namespace kmers {

// The sequences of several files cut into chunks of about `chunk` letters, so that each window of k letters inside a
// record is in exactly one chunk: a chunk begins with the last k - 1 characters of the one before. Short records share
// a chunk, with record_end between them. Memory: one chunk. One thread.
class chunk_reader {
 public:
  // REQUIRES: k >= 1, chunk >= 1.
  chunk_reader(std::vector<std::string> files, std::size_t chunk, int k)
      : files_(std::move(files)), chunk_(chunk), overlap_(static_cast<std::size_t>(k) - 1) {}

  // The next chunk; none at the end of the last file. Errors as sequence_reader.
  std::optional<std::string> next();

  // Bytes of the files read so far, packed where they are.
  std::uint64_t bytes_read() const { return bytes_of_ended_files_ + (reader_ ? reader_->bytes_read() : 0); }

 private:
  bool read(std::string& out, std::size_t size);

  std::vector<std::string> files_;
  std::size_t chunk_;
  std::size_t overlap_;
  std::size_t next_file_ = 0;
  std::optional<sequence_reader> reader_{};
  std::uint64_t bytes_of_ended_files_ = 0;
  std::string tail_{};  // the last overlap_ characters handed out
};

}  // namespace kmers
