#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace kmers {

// Throws input_error unless a file could be written at `path` now. Changes nothing.
void check_writable(const std::string& path);

// A file that is there whole or not at all: written under another name beside it, and renamed by commit(). Where `path`
// is a device or a pipe, it is written directly. One thread. Errors are input_errors that name `path`.
class output_file {
 public:
  explicit output_file(std::string path);
  ~output_file();  // without commit(): removes what was written
  output_file(const output_file&) = delete;
  output_file& operator=(const output_file&) = delete;

  void write(std::string_view text);
  void commit();

 private:
  std::string path_;
  std::string written_path_;
  std::FILE* file_;
};

}  // namespace kmers
