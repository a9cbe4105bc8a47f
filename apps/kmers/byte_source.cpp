#include "apps/kmers/byte_source.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace kmers {
namespace {

constexpr std::size_t packed_bytes = 64 * 1024;
constexpr std::size_t unpacked_bytes = 256 * 1024;
constexpr int gzip_window_bits = 15 + 16;  // zlib.h, inflateInit2: 16 asks for a gzip header and trailer

constexpr char gzip_magic_0 = '\x1f';
constexpr char gzip_magic_1 = '\x8b';

}  // namespace

byte_source::byte_source(std::string path)
    : path_(std::move(path)), file_(std::fopen(path_.c_str(), "rb")), packed_(packed_bytes) {
  if (!file_) fail(std::strerror(errno));
  struct stat facts {};
  if (fstat(fileno(file_.get()), &facts) == 0 && S_ISDIR(facts.st_mode)) fail("is a directory");
}

byte_source::~byte_source() {
  if (gzip_) inflateEnd(&stream_);
}

std::span<const char> byte_source::next() {
  if (!started_) detect();
  if (gzip_) return unpack();
  if (packed_begin_ == packed_end_ && !fill()) return {};
  const std::span<const char> bytes(packed_.data() + packed_begin_, packed_end_ - packed_begin_);
  packed_begin_ = packed_end_;
  return bytes;
}

bool byte_source::fill() {
  packed_begin_ = 0;
  packed_end_ = std::fread(packed_.data(), 1, packed_.size(), file_.get());
  if (packed_end_ == 0 && std::ferror(file_.get()) != 0) fail(std::strerror(errno));
  bytes_read_ += packed_end_;
  return packed_end_ > 0;
}

void byte_source::detect() {
  started_ = true;
  fill();  // fread gives less than asked for only at the end, so both magic bytes are here if the file has them
  if (packed_end_ < 2 || packed_[0] != gzip_magic_0 || packed_[1] != gzip_magic_1) return;
  if (inflateInit2(&stream_, gzip_window_bits) != Z_OK) fail("no memory to unpack it");
  gzip_ = true;
  in_member_ = true;
  unpacked_.resize(unpacked_bytes);
}

std::span<const char> byte_source::unpack() {
  stream_.next_out = reinterpret_cast<Bytef*>(unpacked_.data());
  stream_.avail_out = static_cast<uInt>(unpacked_.size());
  while (stream_.avail_out > 0) {
    if (!in_member_ && !next_member()) break;
    if (packed_begin_ == packed_end_ && !fill()) fail("truncated .gz file");
    stream_.next_in = reinterpret_cast<Bytef*>(packed_.data() + packed_begin_);
    stream_.avail_in = static_cast<uInt>(packed_end_ - packed_begin_);
    const int status = inflate(&stream_, Z_NO_FLUSH);
    packed_begin_ = packed_end_ - stream_.avail_in;
    if (status == Z_STREAM_END) {
      in_member_ = false;
    } else if (status != Z_OK) {
      fail(std::string("damaged .gz file (") + (stream_.msg != nullptr ? stream_.msg : "unpacking failed") + ")");
    }
  }
  return {unpacked_.data(), unpacked_.size() - stream_.avail_out};
}

bool byte_source::next_member() {
  // Zeros behind a member are padding, as gzip itself takes them.
  for (;;) {
    if (packed_begin_ == packed_end_ && !fill()) return false;
    if (packed_[packed_begin_] != '\0') break;
    ++packed_begin_;
  }
  if (packed_[packed_begin_] != gzip_magic_0) fail("damaged .gz file (bytes behind its end)");
  inflateReset(&stream_);
  in_member_ = true;
  return true;
}

void byte_source::fail(const std::string& cause) const { throw input_error(path_ + ": " + cause); }

}  // namespace kmers
