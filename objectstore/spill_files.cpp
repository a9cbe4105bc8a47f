#include "objectstore/spill_files.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace rota::objectstore {

namespace {

// Values start at multiples of this, so that a hole gives back all blocks of a value and none of its neighbours'.
constexpr std::uint64_t block_of_disk = 4096;

constexpr std::uint64_t next_block(std::uint64_t offset) {
  return (offset + block_of_disk - 1) / block_of_disk * block_of_disk;
}

// Read bytes are summed up while they are in a cache.
constexpr std::size_t summed_at_once = std::size_t{256} << 10;

std::string bytes_text(std::uint64_t bytes) { return std::to_string(bytes) + " bytes"; }

constexpr std::array<std::byte, block_of_disk> zeros{};

// Writes all parts one behind the other: 0, or the errno of what failed. They are used up.
int write_all(int descriptor, std::uint64_t offset, std::span<iovec> parts) {
  while (!parts.empty()) {
    const ssize_t moved =
        pwritev(descriptor, parts.data(), static_cast<int>(std::min<std::size_t>(parts.size(), IOV_MAX)),
                static_cast<off_t>(offset));
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return moved < 0 ? errno : EIO;
    offset += static_cast<std::uint64_t>(moved);
    auto left = static_cast<std::size_t>(moved);
    for (; !parts.empty() && left >= parts.front().iov_len; parts = parts.subspan(1)) left -= parts.front().iov_len;
    if (left == 0) continue;
    parts.front().iov_base = static_cast<std::byte*>(parts.front().iov_base) + left;
    parts.front().iov_len -= left;
  }
  return 0;
}

// The pieces, with zeros between them up to their places: holes would cost a call each. iovec is for reading too, so
// its pointers are not const.
std::vector<iovec> parts_of(std::span<const bytes_view> pieces, std::span<const disk_place> places) {
  std::vector<iovec> parts;
  parts.reserve(2 * pieces.size());
  std::uint64_t end = places.front().offset;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (places[i].offset > end) parts.push_back({const_cast<std::byte*>(zeros.data()), places[i].offset - end});
    if (!pieces[i].empty()) parts.push_back({const_cast<std::byte*>(pieces[i].data()), pieces[i].size()});
    end = places[i].offset + pieces[i].size();
  }
  return parts;
}

// 0, or the errno of what failed. `there` is less than all of it where the file ends.
int read_all(int descriptor, std::uint64_t offset, std::span<std::byte> to, XXH3_state_t& sum, std::size_t& there) {
  while (there < to.size()) {
    std::byte* next = to.data() + there;
    const std::size_t most = std::min(summed_at_once, to.size() - there);
    const ssize_t moved = pread(descriptor, next, most, static_cast<off_t>(offset + there));
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return moved < 0 ? errno : 0;
    XXH3_64bits_update(&sum, next, static_cast<std::size_t>(moved));
    there += static_cast<std::size_t>(moved);
  }
  return 0;
}

// Up to the next value, also past the end of the file. Not every file system can, and nothing depends on it.
void make_hole(int descriptor, const disk_place& at) {
  const auto start = static_cast<off_t>(at.offset), length = static_cast<off_t>(next_block(at.size));
  while (fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, start, length) != 0 && errno == EINTR) {
  }
}

}  // namespace

spill_files::spill_files(std::string folder, std::uint64_t file_bytes)
    : folder_(std::move(folder)), file_bytes_(file_bytes) {}

spill_files::file::~file() { close(descriptor); }

const spill_files::file_pointer& spill_files::books::holding(const disk_place& at, const char* call) const {
  const auto found = files.find(at.file);
  if (found != files.end() && at.offset <= found->second->end && at.size <= found->second->end - at.offset) {
    return found->second;
  }
  throw std::logic_error("spill_files::" + std::string(call) + ": " + bytes_text(at.size) + " at " +
                         std::to_string(at.offset) + " of file " + std::to_string(at.file) + " are not on disk");
}

spill_files::file_pointer spill_files::books::less(std::uint32_t number, std::size_t count) {
  const auto found = files.find(number);
  file_pointer fewer = found->second;
  fewer->values -= count;
  if (fewer->values == 0) files.erase(found);
  return fewer;
}

// -1 and errno when there is none. Where the file system has no O_TMPFILE the file has a name for an instant: a process
// that is killed just then leaves an empty file.
int spill_files::open_unnamed() const {
  const int unnamed = open(folder_.c_str(), O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (unnamed >= 0) return unnamed;
  std::string path = folder_ + "/rota-spill-XXXXXX";
  const int named = mkostemp(path.data(), O_CLOEXEC);
  if (named >= 0) unlink(path.c_str());
  return named;
}

// The file that `values` more are to be written to, counted there and busy; null and why.
// The last file grows until it has file_bytes or, if that is more, a 32nd of all that is on disk. So few descriptors
// stay open: with 64 MiB it is 32 of them for the first 2 GiB. After that each file makes the whole 32/31 as large,
// which is 22 files for each doubling: 230 for 1 TiB, where 1024 are usual as a limit. More stay open only where values
// are forgotten so that each of many files keeps a few.
spill_files::file_pointer spill_files::file_for(std::size_t values, std::string& why) {
  const auto last = [&](bool even_if_full) {
    return books_.with([&](books& held) -> file_pointer {
      const auto found = held.files.find(held.last);
      if (found == held.files.end()) return nullptr;
      const bool full = found->second->end >= std::max(file_bytes_, held.bytes / 32);
      if (full && !even_if_full) return nullptr;
      found->second->values += values;
      found->second->busy = true;
      return found->second;
    });
  };
  if (file_pointer growing = last(false)) return growing;
  const int descriptor = open_unnamed();
  if (descriptor < 0) {
    why = "cannot make a file in " + folder_ + ": " + std::strerror(errno);
    file_pointer growing = last(true);  // better than none, when descriptors run out
    if (growing) why.clear();
    return growing;
  }
  return books_.with([&](books& held) {
    const auto made = std::make_shared<file>(descriptor, ++held.last);
    made->values = values;
    made->busy = true;
    return held.files.emplace(made->number, made).first->second;
  });
}

spill_files::written spill_files::write(std::span<const bytes_view> pieces) {
  written result;
  if (pieces.empty()) return result;
  std::vector<disk_place> places;
  places.reserve(pieces.size());
  for (const bytes_view& each : pieces) {
    places.push_back({.size = each.size(), .checksum = XXH3_64bits(each.data(), each.size())});
  }
  const file_pointer to = file_for(pieces.size(), result.why);
  if (!to) return result;

  const std::uint64_t before = books_.with([&](books&) { return to->end; });
  std::uint64_t end = before, bytes = 0, blocks = 0;
  for (disk_place& each : places) {
    each.file = to->number;
    each.offset = next_block(end);
    end = each.offset + each.size;
    bytes += each.size;
    blocks += next_block(each.size);
  }
  std::vector<iovec> parts = parts_of(pieces, places);
  if (const int error = write_all(to->descriptor, places.front().offset, parts); error != 0) {
    // Where this fails too, the next write goes over what is there.
    [[maybe_unused]] const int cut = ftruncate(to->descriptor, static_cast<off_t>(before));
    make_holes(*to);
    books_.with([&](books& held) { return held.less(to->number, pieces.size()); });
    result.why = "cannot write " + bytes_text(bytes) + " to " + folder_ + ": " + std::strerror(error);
    return result;
  }
  books_.with([&](books& held) {
    to->end = end;
    held.bytes += blocks;
  });
  make_holes(*to);
  result.places = std::move(places);
  return result;
}

std::string spill_files::read(const disk_place& at, std::span<std::byte> to) {
  if (to.size() != at.size) throw std::logic_error("spill_files::read: room for another size");
  const file_pointer from = books_.with([&](books& held) {
    const file_pointer& holding = held.holding(at, "read");
    holding->busy = true;
    return holding;
  });
  std::size_t there = 0;
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> sum(XXH3_createState(), XXH3_freeState);
  if (!sum) throw std::bad_alloc();
  XXH3_64bits_reset(sum.get());
  const int error = read_all(from->descriptor, at.offset, to, *sum, there);
  const bool right = there == to.size() && XXH3_64bits_digest(sum.get()) == at.checksum;
  make_holes(*from);
  if (right) return {};
  const std::string size = bytes_text(at.size);
  if (error != 0) return "cannot read " + size + " from " + folder_ + ": " + std::strerror(error);
  if (there == to.size()) return "the checksum of " + size + " from " + folder_ + " is wrong: something changed them";
  return "a file in " + folder_ + " ends too early: " + std::to_string(there) + " of " + size + " are there";
}

void spill_files::forget(std::span<const disk_place> gone) {
  std::vector<disk_place> sorted(gone.begin(), gone.end());
  std::sort(sorted.begin(), sorted.end(), [](const disk_place& a, const disk_place& b) {
    return std::tie(a.file, a.offset, a.size) < std::tie(b.file, b.offset, b.size);
  });
  for (auto first = sorted.begin(); first != sorted.end();) {
    const auto end = std::find_if(first, sorted.end(), [&](const disk_place& at) { return at.file != first->file; });
    forget_in_file({first, end});
    first = end;
  }
}

// Neighbours leave one hole.
void spill_files::forget_in_file(std::span<const disk_place> sorted) {
  std::vector<disk_place> holes;
  const file_pointer of = books_.with([&](books& held) {
    for (const disk_place& each : sorted) held.holding(each, "forget");
    for (const disk_place& each : sorted) {
      held.bytes -= next_block(each.size);
      if (each.size == 0) continue;
      if (!holes.empty() && next_block(holes.back().offset + holes.back().size) == each.offset) {
        holes.back().size = each.offset + each.size - holes.back().offset;
      } else {
        holes.push_back(each);
      }
    }
    const file_pointer& in = held.holding(sorted.front(), "forget");
    if (in->values == sorted.size()) {
      holes.clear();  // it closes
    } else if (in->busy) {
      in->holes.insert(in->holes.end(), holes.begin(), holes.end());
      holes.clear();
    }
    return held.less(sorted.front().file, sorted.size());
  });
  for (const disk_place& each : holes) make_hole(of->descriptor, each);
}

// Ends what made the file busy.
void spill_files::make_holes(file& in) {
  const std::vector<disk_place> holes = books_.with([&](books&) {
    in.busy = false;
    return std::exchange(in.holes, {});
  });
  for (const disk_place& each : holes) make_hole(in.descriptor, each);
}

std::uint64_t spill_files::bytes() const {
  return books_.with([](const books& held) { return held.bytes; });
}

std::size_t spill_files::files() const {
  return books_.with([](const books& held) { return held.files.size(); });
}

}  // namespace rota::objectstore
