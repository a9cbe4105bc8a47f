// Values of more than 2 GiB leave memory, and come back. The store is too large for the other tests of spilling.
#include <gtest/gtest.h>
#include <rota/detail/session_state.h>
#include <rota/rota.h>
#include <sys/statvfs.h>

#include <cstdint>
#include <vector>

#include "runtime/base/memory.h"
#include "tests/ranks/session_help.h"

namespace {

using namespace rota::tests;
using rota::array;
using rota::ref;
using rota::remote;

constexpr std::size_t gibi = std::size_t{1} << 30;

// Two values of three fit in the store; what is spilled is memory too, as long as the system has not written it out.
const bool memory_allows = rota::base::read_memory_bounds().usable().bytes >= 12 * gibi;
const bool offered = offer({{"ROTA_STORE", memory_allows ? "6G" : "64M"}, {"ROTA_SPILL_QUOTA", "8G"}});

constexpr std::size_t value_bytes = 2 * gibi + gibi / 8 + 8;
constexpr std::size_t words_in_page = 4096 / sizeof(std::uint64_t);

array<std::uint64_t> made(std::uint64_t seed) {
  auto words = rota::make_array<std::uint64_t>(value_bytes / sizeof(std::uint64_t));
  for (std::size_t i = 0; i < words.size(); i += words_in_page) words[i] = seed + i;
  words[words.size() - 1] = seed;
  return words;
}
bool is(const array<std::uint64_t>& words, std::uint64_t seed) {
  if (words.size() != value_bytes / sizeof(std::uint64_t) || words.back() != seed) return false;
  for (std::size_t i = 0; i + 1 < words.size(); i += words_in_page) {
    if (words[i] != seed + i) return false;
  }
  return true;
}

bool disk_allows() {
  struct statvfs about {};
  return statvfs(rota::detail::spill_folder().c_str(), &about) == 0 &&
         std::uint64_t{about.f_bavail} * about.f_frsize >= 10 * gibi;
}

TEST(spill_large, values_of_more_than_2_gib) {
  if (!memory_allows) GTEST_SKIP() << "12 GiB of memory are not free here";
  if (!disk_allows()) GTEST_SKIP() << "10 GiB are not free in " << rota::detail::spill_folder();
  std::vector<ref<array<std::uint64_t>>> kept;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    kept.push_back(remote<made>(seed));
    rota::wait(std::vector{kept.back()});
  }
  EXPECT_GE(rota::detail::spilled_bytes(), value_bytes);
  EXPECT_TRUE(remote<is>(kept[2], 3u).get());
  kept.resize(1);
  EXPECT_TRUE(is(kept[0].get(), 1));
  kept.clear();
  EXPECT_TRUE(eventually([] { return rota::detail::spilled_bytes() == 0; }));
}

}  // namespace
