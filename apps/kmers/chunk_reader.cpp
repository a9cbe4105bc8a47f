#include "apps/kmers/chunk_reader.h"

#include <algorithm>
#include <utility>

namespace kmers {

std::optional<std::string> chunk_reader::next() {
  std::string chunk;
  chunk.reserve(tail_.size() + chunk_);
  chunk = tail_;
  // A read that fills the chunk also ends a record if a file ends there, so it may pass the size by one character.
  if (!read(chunk, tail_.size() + chunk_)) return std::nullopt;
  tail_ = chunk.substr(chunk.size() - std::min(overlap_, chunk.size()));
  return chunk;
}

bool chunk_reader::read(std::string& out, std::size_t size) {
  bool any = false;
  while (out.size() < size) {
    if (!reader_) {
      if (next_file_ == files_.size()) break;
      reader_.emplace(files_[next_file_++]);
    }
    if (reader_->read(out, size)) {
      any = true;
    } else {
      bytes_of_ended_files_ += reader_->bytes_read();
      reader_.reset();
    }
  }
  return any;
}

}  // namespace kmers
