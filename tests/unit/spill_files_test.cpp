#include "objectstore/spill_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

namespace fs = std::filesystem;
using rota::bytes_view;
using rota::objectstore::disk_place;
using rota::objectstore::spill_files;
using testing::HasSubstr;

constexpr std::size_t kib = 1024, mib = 1024 * kib;

using value = std::vector<std::byte>;

value made(std::size_t size, unsigned seed) {
  value bytes(size);
  std::minstd_rand random(seed + 1);
  for (std::byte& each : bytes) each = static_cast<std::byte>(random() >> 8);
  return bytes;
}

// Expects success; what went wrong is in the message of the failed test.
std::vector<disk_place> put(spill_files& files, const std::vector<value>& values) {
  const std::vector<bytes_view> pieces(values.begin(), values.end());
  const spill_files::written done = files.write(pieces);
  EXPECT_EQ(done.why, "");
  EXPECT_EQ(done.places.size(), done.why.empty() ? values.size() : 0);
  return done.places;
}
disk_place put(spill_files& files, const value& bytes) { return put(files, std::vector<value>{bytes}).at(0); }

std::string why_not(spill_files& files, const std::vector<value>& values) {
  const std::vector<bytes_view> pieces(values.begin(), values.end());
  const spill_files::written done = files.write(pieces);
  EXPECT_TRUE(done.places.empty());
  return done.why;
}

void expect_there(spill_files& files, const disk_place& at, const value& bytes) {
  value found(at.size);
  ASSERT_EQ(files.read(at, found), "");
  ASSERT_TRUE(found == bytes) << bytes.size() << " bytes at " << at.offset << " of file " << at.file;
}

class spilling : public testing::Test {
 protected:
  spilling() {
    std::string name = (fs::canonical(fs::temp_directory_path()) / "spill_files_test_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    folder = name;
  }
  ~spilling() override {
    if (mounted) umount2(folder.c_str(), MNT_DETACH);
    fs::remove_all(folder);
  }

  // A file system of its own, which ends with the process. False, with errno, where that is not allowed.
  bool mount_tmpfs(const char* options) {
    mounted = unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
              mount("tmpfs", folder.c_str(), "tmpfs", 0, options) == 0;
    return mounted;
  }

  std::vector<int> descriptors() const {  // of files in the folder
    std::vector<int> found;
    for (const fs::directory_entry& each : fs::directory_iterator("/proc/self/fd")) {
      std::error_code gone;  // the descriptor of this iterator
      const std::string target = fs::read_symlink(each.path(), gone).string();
      if (target.starts_with(folder + "/")) found.push_back(std::stoi(each.path().filename().string()));
    }
    return found;
  }
  int descriptor() const {
    const auto all = descriptors();
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? -1 : all[0];
  }

  std::uint64_t room_in_use() const {  // bytes
    struct stat status {};
    EXPECT_EQ(fstat(descriptor(), &status), 0);
    return static_cast<std::uint64_t>(status.st_blocks) * 512;
  }

  bool makes_holes() const {
    return fallocate(descriptor(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 1l << 40, 4096) == 0;
  }

  std::string folder;
  bool mounted = false;
};

TEST_F(spilling, what_is_written_comes_back) {
  spill_files files(folder);
  std::vector<value> values;
  for (const std::size_t size : {1ul, 4095ul, 4096ul, 4097ul, 3 * mib + 5, 8192ul, 12288ul, 17ul}) {
    values.push_back(made(size, static_cast<unsigned>(values.size())));
  }
  const auto places = put(files, values);
  ASSERT_EQ(places.size(), values.size());
  for (std::size_t each = 0; each < places.size(); ++each) {
    EXPECT_EQ(places[each].size, values[each].size());
    EXPECT_EQ(places[each].offset % 4096, 0u);
  }
  EXPECT_EQ(files.bytes(), 3 * mib + 48 * kib) << "in whole blocks";
  EXPECT_EQ(files.files(), 1u);
  for (std::size_t each = places.size(); each-- > 0;) expect_there(files, places[each], values[each]);
}

TEST_F(spilling, files_have_no_name_and_end_with_the_store) {
  {
    spill_files files(folder);
    const disk_place at = put(files, made(100 * kib, 1));
    EXPECT_TRUE(fs::is_empty(folder));
    EXPECT_EQ(fcntl(descriptor(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    expect_there(files, at, made(100 * kib, 1));
  }
  EXPECT_TRUE(descriptors().empty());
}

TEST_F(spilling, values_share_a_file_until_it_is_long_enough) {
  spill_files files(folder, 16 * kib);
  std::vector<disk_place> places;
  for (unsigned each = 0; each < 7; ++each) places.push_back(put(files, made(5000, each)));
  for (std::size_t each = 0; each < 7; ++each) {  // the second ends at 13192, the third at 21384
    EXPECT_EQ(places[each].file, places[each / 3 * 3].file);
    EXPECT_EQ(places[each].offset, each % 3 * 8192);
    expect_there(files, places[each], made(5000, static_cast<unsigned>(each)));
  }
  EXPECT_NE(places[0].file, places[3].file);
  EXPECT_NE(places[3].file, places[6].file);
  EXPECT_EQ(files.files(), 3u);
  EXPECT_EQ(descriptors().size(), 3u);
}

// As files of 64 MiB for 16 GiB, by 1/1024: 32 for the first 2 MiB, then 22 for each of three doublings.
TEST_F(spilling, few_files_are_open_however_much_is_written) {
  spill_files files(folder, 64 * kib);
  const value bytes = made(4 * kib, 1);
  std::vector<disk_place> places;
  for (std::size_t each = 0; each < 2 * mib / bytes.size(); ++each) places.push_back(put(files, bytes));
  EXPECT_EQ(files.files(), 32u);
  while (files.bytes() < 16 * mib) places.push_back(put(files, bytes));
  EXPECT_GT(files.files(), 85u);
  EXPECT_LT(files.files(), 105u);
  for (const disk_place& each : places) files.forget(each);
  EXPECT_EQ(files.files(), 0u);
}

TEST_F(spilling, the_last_forget_closes_a_file) {
  spill_files files(folder);
  const auto places = put(files, {made(5000, 1), made(3, 2), made(20 * kib, 3)});
  files.forget(places[1]);
  files.forget(places[2]);
  EXPECT_EQ(files.files(), 1u);
  EXPECT_EQ(files.bytes(), 8 * kib);
  expect_there(files, places[0], made(5000, 1));
  files.forget(places[0]);
  EXPECT_EQ(files.files(), 0u);
  EXPECT_EQ(files.bytes(), 0u);
  EXPECT_TRUE(descriptors().empty());
  const disk_place again = put(files, made(10, 4));
  EXPECT_NE(again.file, places[0].file);
  expect_there(files, again, made(10, 4));
}

TEST_F(spilling, a_forgotten_value_leaves_a_hole) {
  spill_files files(folder);
  const auto places = put(files, {made(4097, 1), made(mib - 1, 2), made(4097, 3), made(mib - 1, 4)});
  if (!makes_holes()) GTEST_SKIP() << "the file system of " << folder << " makes no holes: " << std::strerror(errno);
  ASSERT_EQ(fsync(descriptor()), 0);  // some file systems count blocks only when they are written
  const std::uint64_t before = room_in_use();
  files.forget(places[1]);
  EXPECT_LE(room_in_use(), before - mib + 32 * kib);  // the file system's own books may grow
  files.forget(places[3]);                            // the last one of the file
  EXPECT_LE(room_in_use(), before - 2 * mib + 32 * kib);
  expect_there(files, places[0], made(4097, 1));
  expect_there(files, places[2], made(4097, 3));
}

TEST_F(spilling, values_of_no_bytes) {
  spill_files files(folder);
  const auto places = put(files, {value{}, value{}, made(7, 1), value{}});
  const disk_place alone = put(files, value{});
  EXPECT_EQ(files.bytes(), 4 * kib);
  for (const std::size_t each : {0ul, 1ul, 3ul}) expect_there(files, places[each], {});
  files.forget(places[0]);
  files.forget(places[3]);
  files.forget(places[1]);
  expect_there(files, places[2], made(7, 1));
  files.forget(places[2]);
  EXPECT_EQ(files.files(), 1u);
  expect_there(files, alone, {});
  files.forget(alone);
  EXPECT_EQ(files.files(), 0u);
}

TEST_F(spilling, more_pieces_than_one_call_takes) {
  spill_files files(folder);
  for (const std::size_t size : {4096ul, 300ul}) {  // without gaps, and with gaps
    std::vector<value> values;
    for (unsigned each = 0; each < 3 * IOV_MAX + 5; ++each) values.push_back(made(each % 7 == 3 ? 0 : size, each));
    const auto places = put(files, values);
    ASSERT_EQ(places.size(), values.size());
    for (std::size_t each = 0; each < places.size(); ++each) expect_there(files, places[each], values[each]);
  }
  EXPECT_EQ(files.files(), 1u);
}

TEST_F(spilling, a_truncated_file_is_told) {
  spill_files files(folder);
  const auto places = put(files, {made(8192, 1), made(8192, 2)});
  ASSERT_EQ(ftruncate(descriptor(), 8192 + 100), 0);
  value to(8192);
  EXPECT_EQ(files.read(places[1], to), "a file in " + folder + " ends too early: 100 of 8192 bytes are there");
  expect_there(files, places[0], made(8192, 1));
}

TEST_F(spilling, a_flipped_byte_is_told) {
  spill_files files(folder);
  const auto places = put(files, {made(8192, 1), made(8192, 2)});
  const std::byte flipped = made(8192, 2)[4000] ^ std::byte{1};
  ASSERT_EQ(pwrite(descriptor(), &flipped, 1, 8192 + 4000), 1);
  value to(8192);
  EXPECT_THAT(files.read(places[1], to), AllOf(HasSubstr("checksum"), HasSubstr(folder)));
  expect_there(files, places[0], made(8192, 1));
}

TEST_F(spilling, a_disk_that_cannot_be_read_is_told) {
  spill_files files(folder);
  const disk_place at = put(files, made(8192, 1));
  const int other = open(folder.c_str(), O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(dup3(other, descriptor(), O_CLOEXEC), descriptor());  // EISDIR stands for EIO
  close(other);
  value to(8192);
  EXPECT_EQ(files.read(at, to), "cannot read 8192 bytes from " + folder + ": Is a directory");
}

TEST_F(spilling, a_folder_that_does_not_exist_is_told) {
  spill_files files(folder + "/none");  // nothing is opened yet
  EXPECT_TRUE(put(files, std::vector<value>{}).empty());
  EXPECT_EQ(why_not(files, {made(10, 1)}), "cannot make a file in " + folder + "/none: No such file or directory");
  EXPECT_EQ(files.files(), 0u);
  fs::create_directory(folder + "/none");
  expect_there(files, put(files, made(10, 1)), made(10, 1));
}

TEST_F(spilling, a_full_file_grows_where_no_other_can_be_made) {
  fs::create_directory(folder + "/later");
  spill_files files(folder + "/later", 1);
  const disk_place first = put(files, made(10, 1));
  fs::remove(folder + "/later");
  const disk_place second = put(files, made(10, 2));
  EXPECT_EQ(second.file, first.file);
  expect_there(files, first, made(10, 1));
  expect_there(files, second, made(10, 2));
}

TEST_F(spilling, misuse_throws_and_changes_nothing) {
  spill_files files(folder);
  const disk_place at = put(files, made(10, 1));
  disk_place wrong = at;
  wrong.size = 11;
  EXPECT_THROW(files.forget(wrong), std::logic_error);
  wrong = at;
  ++wrong.file;
  EXPECT_THROW(files.forget(wrong), std::logic_error);
  value to(9);
  EXPECT_THROW(files.read(at, to), std::logic_error);
  EXPECT_EQ(files.bytes(), 4 * kib);
  expect_there(files, at, made(10, 1));
  files.forget(at);
  EXPECT_THROW(files.forget(at), std::logic_error);
  EXPECT_EQ(files.bytes(), 0u);
}

TEST_F(spilling, a_full_disk_keeps_what_it_has) {
  if (!mount_tmpfs("size=1m")) GTEST_SKIP() << "no file system can be mounted here: " << std::strerror(errno);
  spill_files files(folder);
  EXPECT_EQ(why_not(files, {made(2 * mib, 1)}),
            "cannot write 2097152 bytes to " + folder + ": No space left on device");
  EXPECT_EQ(files.files(), 0u);

  const auto places = put(files, {made(100 * kib + 1, 1), made(700 * kib, 2)});
  ASSERT_EQ(places.size(), 2u);
  const std::uint64_t before = room_in_use();
  EXPECT_THAT(why_not(files, {made(50 * kib, 3), made(700 * kib, 4)}), HasSubstr("No space left on device"));
  EXPECT_EQ(room_in_use(), before);
  EXPECT_EQ(files.bytes(), 804 * kib);
  EXPECT_EQ(files.files(), 1u);
  expect_there(files, places[0], made(100 * kib + 1, 1));
  expect_there(files, places[1], made(700 * kib, 2));

  files.forget(places[1]);
  const disk_place later = put(files, made(700 * kib, 5));
  EXPECT_EQ(later.file, places[0].file);
  expect_there(files, later, made(700 * kib, 5));
  expect_there(files, places[0], made(100 * kib + 1, 1));
}

// Writes and reads for a while as two other threads forget, in the end all that was written.
void use_while_others_forget(spill_files& files) {
  const value source = made(mib, 1);
  const bytes_view all(source);
  std::mt19937 random(7);
  const auto below = [&](std::size_t end) { return random() % end; };
  std::vector<std::pair<disk_place, bytes_view>> alive;
  std::size_t written = 0;

  std::mutex mutex;
  std::condition_variable_any changed;
  std::vector<disk_place> handed;
  const auto hand_over = [&](const disk_place& at) {
    std::lock_guard lock(mutex);
    handed.push_back(at);
    changed.notify_one();
  };
  const auto forgets = [&](const std::stop_token& ends) {
    for (std::unique_lock lock(mutex);;) {
      if (!changed.wait(lock, ends, [&] { return !handed.empty(); })) return;
      const disk_place at = handed.back();
      handed.pop_back();
      lock.unlock();
      files.forget(at);
      EXPECT_LE(files.files(), 1000u);
      EXPECT_LE(files.bytes(), 64 * mib);
      lock.lock();
    }
  };
  {
    const std::array<std::jthread, 2> others{std::jthread(forgets), std::jthread(forgets)};
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(600);
    while (std::chrono::steady_clock::now() < end) {
      std::vector<bytes_view> pieces(below(4));
      for (bytes_view& each : pieces) each = all.subspan(below(mib / 2), below(20 * kib));
      const spill_files::written done = files.write(pieces);
      ASSERT_EQ(done.why, "");
      written += pieces.size();
      for (std::size_t each = 0; each < pieces.size(); ++each) alive.emplace_back(done.places[each], pieces[each]);
      // Often all go, so that the file that is written to next is about to be closed.
      const std::size_t stay = below(3) == 0 ? 0 : 40;
      for (; alive.size() > stay; alive.pop_back()) {
        std::swap(alive[below(alive.size())], alive.back());
        hand_over(alive.back().first);
      }
      if (alive.empty()) continue;
      const auto& [at, bytes] = alive[below(alive.size())];
      value found(at.size);
      ASSERT_EQ(files.read(at, found), "");
      ASSERT_TRUE(std::equal(found.begin(), found.end(), bytes.begin(), bytes.end()));
    }
    for (const auto& [at, bytes] : alive) hand_over(at);
  }
  EXPECT_GT(written, 100u);
}

TEST_F(spilling, others_forget_while_one_thread_uses_many_files) {
  spill_files files(folder, 64 * kib);
  use_while_others_forget(files);
  EXPECT_EQ(files.bytes(), 0u);
  EXPECT_EQ(files.files(), 0u);
  EXPECT_TRUE(descriptors().empty());
}

TEST_F(spilling, others_forget_while_one_thread_uses_the_same_file) {
  spill_files files(folder, 1ul << 40);
  const disk_place first = put(files, made(10, 1));
  use_while_others_forget(files);
  EXPECT_EQ(files.bytes(), 4 * kib);
  expect_there(files, first, made(10, 1));
  if (!makes_holes()) GTEST_SKIP() << "the file system of " << folder << " makes no holes: " << std::strerror(errno);
  EXPECT_LE(room_in_use(), 64 * kib);
}

}  // namespace
