#include "runtime/base/pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

namespace rota::base {
namespace {

const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

// `mapped` pages of shared memory of which the file behind has only `present`: a store into the rest is SIGBUS, as in
// a full /dev/shm.
class shared_pages {
 public:
  shared_pages(std::size_t present, std::size_t mapped) : size_(mapped * page), file_(memfd_create("pages_test", 0)) {
    EXPECT_EQ(ftruncate(file_, static_cast<off_t>(present * page)), 0);
    start_ = static_cast<std::byte*>(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0));
    EXPECT_NE(static_cast<void*>(start_), MAP_FAILED);
  }
  ~shared_pages() {
    munmap(start_, size_);
    close(file_);
  }
  shared_pages(const shared_pages&) = delete;
  shared_pages& operator=(const shared_pages&) = delete;

  std::byte* at(std::size_t number) const { return start_ + number * page; }

  // Pages that the system holds for the file.
  std::size_t backed() const {
    struct stat facts {};
    EXPECT_EQ(fstat(file_, &facts), 0);
    return static_cast<std::size_t>(facts.st_blocks) * 512 / page;
  }

 private:
  std::size_t size_;
  int file_;
  std::byte* start_ = nullptr;
};

struct way {
  const char* name;
  bool (*populate)(std::byte*, std::size_t) noexcept;
};

class pages : public testing::TestWithParam<way> {};

TEST_P(pages, populate_makes_them_present_and_keeps_content) {
  const shared_pages memory(2000, 2000);
  *memory.at(700) = std::byte{7};
  EXPECT_EQ(memory.backed(), 1u);
  EXPECT_TRUE(GetParam().populate(memory.at(0), 2000 * page));
  EXPECT_EQ(memory.backed(), 2000u);
  EXPECT_EQ(*memory.at(700), std::byte{7});
  EXPECT_EQ(*memory.at(701), std::byte{0});
}

TEST_P(pages, populate_covers_partly_touched_pages) {
  const shared_pages memory(8, 8);
  EXPECT_TRUE(GetParam().populate(memory.at(2) + 100, 2 * page));
  EXPECT_EQ(memory.backed(), 3u);
  EXPECT_TRUE(GetParam().populate(memory.at(0) + 5, 0));
  EXPECT_EQ(memory.backed(), 3u);
}

TEST_P(pages, populate_is_false_where_a_store_would_be_sigbus) {
  const shared_pages memory(4, 16);
  EXPECT_FALSE(GetParam().populate(memory.at(0), 16 * page));
  EXPECT_FALSE(GetParam().populate(memory.at(4), page));
  EXPECT_TRUE(GetParam().populate(memory.at(0), 4 * page));
}

TEST_P(pages, populate_is_false_outside_of_any_mapping) {
  const shared_pages memory(4, 4);
  munmap(memory.at(2), page);
  EXPECT_FALSE(GetParam().populate(memory.at(0), 4 * page));
}

TEST_P(pages, populate_and_release_work_on_private_memory) {
  std::vector<std::byte> memory(64 * page, std::byte{9});
  EXPECT_TRUE(GetParam().populate(memory.data(), memory.size()));
  EXPECT_EQ(memory[5 * page], std::byte{9});
  release(memory.data(), memory.size());
  EXPECT_EQ(memory[5 * page], std::byte{0});
  EXPECT_TRUE(GetParam().populate(memory.data(), memory.size()));
}

INSTANTIATE_TEST_SUITE_P(by, pages,
                         testing::Values(way{"populate", populate}, way{"populate_by_touching", populate_by_touching}),
                         [](const auto& each) { return each.param.name; });

TEST(pages_release, gives_shared_memory_back) {
  const shared_pages memory(100, 100);
  std::memset(memory.at(0), 1, 100 * page);
  release(memory.at(10), 50 * page);
  EXPECT_EQ(memory.backed(), 50u);
  EXPECT_EQ(*memory.at(10), std::byte{0});
  EXPECT_EQ(*memory.at(9), std::byte{1});
  EXPECT_EQ(*memory.at(60), std::byte{1});
}

TEST(pages_release, keeps_partial_pages_at_the_ends) {
  const shared_pages memory(6, 6);
  std::memset(memory.at(0), 1, 6 * page);
  release(memory.at(1) + 1, 3 * page);
  EXPECT_EQ(*(memory.at(1) + 1), std::byte{1});
  EXPECT_EQ(*memory.at(2), std::byte{0});
  EXPECT_EQ(*memory.at(3), std::byte{0});
  EXPECT_EQ(*memory.at(4), std::byte{1});
  release(memory.at(4) + 1, page - 2);
  EXPECT_EQ(*(memory.at(4) + 1), std::byte{1});
  release(memory.at(4), 0);
  EXPECT_EQ(*memory.at(4), std::byte{1});
}

TEST(pages_release, gives_malloced_memory_back) {
  const std::unique_ptr<void, decltype(&std::free)> memory(std::malloc(8 << 20), &std::free);
  auto* const start = static_cast<std::byte*>(memory.get());
  std::memset(start, 1, 8 << 20);
  release(start, 8 << 20);
  EXPECT_EQ(start[4 << 20], std::byte{0});
}

}  // namespace
}  // namespace rota::base
