#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/guarded.h"
#include "runtime/base/types.h"

namespace rota::objectstore {

// Where the bytes of one value lie on disk.
struct disk_place {
  std::uint32_t file = 0;
  std::uint64_t offset = 0, size = 0;
  std::uint64_t checksum = 0;  // XXH3, 64 bits

  friend bool operator==(const disk_place&, const disk_place&) = default;
};

// Values that do not fit in memory, in files of one folder. The files have no name: nothing stays behind, whatever ends
// the process. write() and read() are called by one thread at a time and block on the disk. The others may be called
// by any thread meanwhile; no lock is held while the disk works, but forget() may wait for it too.
// What the disk refuses is told in words. A place that was never written, or whose file is closed, is misuse:
// std::logic_error, and nothing changes.
// REQUIRES: a place is forgotten once, and not while it is read.
class spill_files {
 public:
  // `folder` must exist when something is written; nothing is opened before. A file has `file_bytes` or more when the
  // next one begins.
  explicit spill_files(std::string folder, std::uint64_t file_bytes = std::uint64_t{64} << 20);

  struct written {
    std::vector<disk_place> places;  // one a piece, in order; empty when `why` is not
    std::string why;                 // "cannot write 67108864 bytes to /scratch: No space left on device"
  };
  // Writes all pieces, one behind the other in one file, or none.
  written write(std::span<const bytes_view> pieces);

  // Fills `to`. Empty when it is what was written; else what is wrong, and `to` holds anything.
  // REQUIRES: to.size() == at.size.
  std::string read(const disk_place& at, std::span<std::byte> to);

  // The values are not needed any more. The disk has its room back where the file system can make holes, at once or
  // when the call that writes to its file or reads from it ends; else when the file closes with its last value.
  void forget(std::span<const disk_place> gone);
  void forget(const disk_place& at) { forget(std::span(&at, 1)); }

  std::uint64_t bytes() const;  // that the values on disk take there, in whole blocks
  std::size_t files() const;    // open

 private:
  // Open as long as a call uses it or it has a value: a write counts its values before they are on disk, so that no
  // forget() of others in the file closes it meanwhile.
  struct file {
    file(int opened, std::uint32_t its_number) : descriptor(opened), number(its_number) {}
    file(const file&) = delete;
    file& operator=(const file&) = delete;
    ~file();

    const int descriptor;
    const std::uint32_t number;
    // These belong to the books.
    std::uint64_t end = 0;          // of its last value
    std::size_t values = 0;         // written or being written, and not forgotten
    bool busy = false;              // being written to, or read from
    std::vector<disk_place> holes;  // to be made after that: before, they would wait for it (the lock of the inode)
  };
  using file_pointer = std::shared_ptr<file>;

  struct books {
    std::map<std::uint32_t, file_pointer> files;  // by number
    std::uint32_t last = 0;                       // number of the file made last; it may be closed
    std::uint64_t bytes = 0;

    const file_pointer& holding(const disk_place& at, const char* call) const;
    // The file has `count` values less. Who drops the pointer outside of the lock may close the file.
    file_pointer less(std::uint32_t number, std::size_t count);
  };

  int open_unnamed() const;
  file_pointer file_for(std::size_t values, std::string& why);
  void forget_in_file(std::span<const disk_place> sorted);
  void make_holes(file& in);

  const std::string folder_;
  const std::uint64_t file_bytes_;
  mutable base::guarded<books> books_;
};

}  // namespace rota::objectstore
