// The disk is full before --rota-spill-quota is used up: what writers get, and that nothing else is harmed.
#include <gtest/gtest.h>
#include <rota/detail/session_state.h>
#include <rota/rota.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "tests/ranks/spill_help.h"

namespace {

using namespace std::chrono_literals;
using namespace rota::tests;
using rota::remote;

// Read by init, which comes after it. The folder is an argument.
const bool small_store = offer({{"ROTA_STORE", "32M"}, {"ROTA_SPILL_QUOTA", "4G"}, {"ROTA_STORE_PATIENCE", "2"}});

struct full {
  refs kept;
  std::string what;
  std::int64_t took_ms = 0;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(kept, what, took_ms);
  }
};

// Puts values until there is no room.
full fill(std::uint32_t first_seed) {
  full all;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    try {
      all.kept.push_back(rota::put(made(2 * mebi, first_seed + i)));
    } catch (const rota::out_of_memory& e) {
      all.what = e.what();
      all.took_ms = (std::chrono::steady_clock::now() - begin) / 1ms;
      break;
    }
  }
  return all;
}

void expect_right(const refs& some, std::uint32_t first_seed) {
  for (std::uint32_t i = 0; i < some.size(); ++i) ASSERT_TRUE(is(some[i].get(), first_seed + i)) << i;
}
// Fills store and disk; what is left once a little was let go.
refs filled(std::uint32_t first_seed, bool by_task) {
  full all = by_task ? remote<fill>(first_seed).get() : fill(first_seed);
  EXPECT_TRUE(contains(all.what, "No space left on device")) << all.what;
  EXPECT_LT(all.took_ms, 10'000);
  EXPECT_GT(all.kept.size(), 20) << "some went to disk";
  EXPECT_LE(all.kept.size(), 40) << "store and disk have 80 MiB";
  all.kept.resize(all.kept.size() - std::min<std::size_t>(4, all.kept.size()));
  return std::move(all.kept);
}

TEST(full_disk, writers_get_out_of_memory_and_what_was_put_stays) {
  for (const bool by_task : {false, true}) {
    {
      const refs kept = filled(100, by_task);
      expect_right(kept, 100);
      expect_right(kept, 100);
    }
    EXPECT_TRUE(eventually([] { return rota::detail::spilled_bytes() == 0; }));
    expect_right(put_many(12, 2 * mebi), 0);
  }
}

// Values come and go while the disk is nearly full.
TEST(full_disk, what_fits_is_made_for_as_long_as_one_likes) {
  const refs kept = filled(0, false);
  for (std::uint32_t round = 0; round < 200; ++round) {
    ASSERT_TRUE(is(rota::put(made(2 * mebi, 100'000 + round)).get(), 100'000 + round)) << round;
    const auto i = static_cast<std::uint32_t>(round % kept.size());
    ASSERT_TRUE(is(kept[i].get(), i)) << i;
  }
}

}  // namespace
