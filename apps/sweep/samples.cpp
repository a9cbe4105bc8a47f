#include "apps/sweep/samples.h"

#include <zlib.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <string_view>

namespace sweep {
namespace {

std::string read_all(const std::string& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (!file) throw input_error(path + ": " + std::strerror(errno));
  std::string text;
  std::array<char, 64 * 1024> piece{};
  int count = 0;
  while ((count = gzread(file.get(), piece.data(), piece.size())) > 0) {
    text.append(piece.data(), static_cast<std::size_t>(count));
  }
  int status = Z_OK;
  const char* words = gzerror(file.get(), &status);
  if (status == Z_ERRNO) throw input_error(path + ": " + std::strerror(errno));
  if (status != Z_OK && status != Z_STREAM_END) throw input_error(path + ": " + words);
  return text;
}

// Appends the integers of one line; false where there is anything else.
bool append_line(std::string_view line, std::vector<std::int32_t>& values) {
  const char* at = line.data();
  const char* const end = at + line.size();
  while (true) {
    std::int32_t value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc() || (next != end && *next != ',')) return false;
    values.push_back(value);
    if (next == end) return true;
    at = next + 1;
  }
}

}  // namespace

samples read_samples(const std::string& path) {
  const std::string text = read_all(path);
  samples read;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line(text.data() + begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    begin = end + 1;
    const std::string where = path + ": line " + std::to_string(++number) + ": ";
    const std::size_t before = read.values.size();
    if (!append_line(line, read.values)) throw input_error(where + "not integers, separated by commas");
    const std::size_t columns = read.values.size() - before;
    if (number == 1) read.columns = columns;
    if (columns != read.columns || columns < 2) {
      throw input_error(where + std::to_string(columns) + " columns, not " +
                        (columns < 2 ? "at least 2" : std::to_string(read.columns)));
    }
    if (read.values.back() < 0 || read.values.back() > 255) throw input_error(where + "the label is not 0 to 255");
  }
  if (number == 0) throw input_error(path + ": empty");
  return read;
}

}  // namespace sweep
