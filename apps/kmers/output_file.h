#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace kmers {

// Throws input_error unless a file could be written at `path` now. Changes nothing.
void check_writable(const std::string& path);

// Where a file is written that is to be there whole or not at all: another name beside it, until commit() renames it.
// Where `path` is a device or a pipe it is that itself. One thread. Errors are input_errors that name `path`.
class unfinished_file {
 public:
  explicit unfinished_file(std::string path);
  ~unfinished_file();  // without commit(): removes what was written
  unfinished_file(const unfinished_file&) = delete;
  unfinished_file& operator=(const unfinished_file&) = delete;

  const std::string& path() const noexcept { return path_; }
  const std::string& written_path() const noexcept { return written_path_; }
  // REQUIRES: it is written and closed.
  void commit();

 private:
  std::string path_;
  std::string written_path_;
  bool kept_;
};

// An unfinished_file that is written as a stream. One thread. Errors are input_errors that name the path.
class output_file {
 public:
  explicit output_file(std::string path);
  ~output_file();  // without commit(): removes what was written
  output_file(const output_file&) = delete;
  output_file& operator=(const output_file&) = delete;

  void write(std::string_view text);
  void commit();

 private:
  unfinished_file place_;
  std::FILE* file_;
};

}  // namespace kmers
