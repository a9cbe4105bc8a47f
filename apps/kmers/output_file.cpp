#include "apps/kmers/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "apps/kmers/byte_source.h"

namespace kmers {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, int error) {
  throw input_error(path + ": cannot be written: " + std::strerror(error));
}

bool is_special(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored) && !fs::is_regular_file(path, ignored) && !fs::is_directory(path, ignored);
}

// Where the bytes go until they are complete. Beside the file that a symbolic link names, so that the link stays.
std::string unfinished_path(const std::string& path) {
  if (is_special(path)) return path;
  std::error_code ignored;
  const fs::path target = fs::weakly_canonical(path, ignored);
  return (target.empty() ? path : target.string()) + ".unfinished-" + std::to_string(getpid());
}

std::FILE* open_to_write(const std::string& path, const std::string& written_path) {
  const int only_new = written_path == path ? 0 : O_CREAT | O_EXCL;
  const int descriptor = open(written_path.c_str(), O_WRONLY | O_CLOEXEC | only_new, 0666);
  if (descriptor < 0) fail(path, errno);
  return fdopen(descriptor, "wb");
}

}  // namespace

void check_writable(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) fail(path, EISDIR);
  if (access(path.c_str(), W_OK) != 0 && errno != ENOENT) fail(path, errno);
  if (is_special(path)) return;
  const std::string written_path = unfinished_path(path);
  std::fclose(open_to_write(path, written_path));
  unlink(written_path.c_str());
}

unfinished_file::unfinished_file(std::string path)
    : path_(std::move(path)), written_path_(unfinished_path(path_)), kept_(written_path_ == path_) {}

unfinished_file::~unfinished_file() {
  if (!kept_) unlink(written_path_.c_str());
}

void unfinished_file::commit() {
  if (written_path_ == path_) return;
  std::error_code ignored;
  const fs::path target = fs::weakly_canonical(path_, ignored);
  if (std::rename(written_path_.c_str(), target.empty() ? path_.c_str() : target.c_str()) != 0) fail(path_, errno);
  kept_ = true;
}

output_file::output_file(std::string path)
    : place_(std::move(path)), file_(open_to_write(place_.path(), place_.written_path())) {}

output_file::~output_file() {
  if (file_ != nullptr) std::fclose(file_);
}

void output_file::write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size()) fail(place_.path(), errno);
}

void output_file::commit() {
  bool failed = std::ferror(file_) != 0;
  failed = std::fclose(std::exchange(file_, nullptr)) != 0 || failed;  // some file systems report a full disk only here
  if (failed) fail(place_.path(), errno);
  place_.commit();
}

}  // namespace kmers
