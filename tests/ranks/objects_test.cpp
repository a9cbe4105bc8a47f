// Objects: put, arrays, sizes from 0 bytes to more than 2 GiB, many refs.
#include <gtest/gtest.h>
#include <rota/detail/session_state.h>
#include <rota/rota.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "tests/ranks/session_help.h"

namespace {

using namespace std::chrono_literals;
using namespace rota::tests;
using rota::array;
using rota::ref;
using rota::remote;

array<int> counting(std::size_t size) {
  auto made = rota::make_array<int>(size);
  std::iota(made.begin(), made.end(), 0);
  return made;
}
rota::array_builder<int> counting_builder(std::size_t size) {
  auto made = rota::make_array<int>(size);
  std::iota(made.begin(), made.end(), 0);
  return made;
}
bool counts(const array<int>& a, std::size_t size) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != static_cast<int>(i)) return false;
  }
  return a.size() == size;
}
long sum(array<int> a) { return std::accumulate(a.begin(), a.end(), 0L); }
long sum_span(std::span<const int> s) { return std::accumulate(s.begin(), s.end(), 0L); }
int id(int x) { return x; }

TEST(put, literals_vectors_and_values) {
  ref<std::string> text = rota::put("text");
  EXPECT_EQ(text.get(), "text");
  const char* pointer = "pointed";
  EXPECT_EQ(rota::put(pointer).get(), "pointed");
  std::vector<int> numbers(100000);
  std::iota(numbers.begin(), numbers.end(), 0);
  auto kept = rota::put(numbers);
  EXPECT_EQ(kept.get(), numbers);
  EXPECT_EQ(rota::get(kept), numbers);
  EXPECT_TRUE(kept.ready());
  EXPECT_NE(kept.id(), text.id());
}

TEST(array, is_built_in_the_store_and_viewed_in_place) {
  auto made = rota::make_array<int>(1'000'000);
  std::iota(made.begin(), made.end(), 0);
  const int* built_at = made.data();
  auto kept = rota::put(std::move(made));
  EXPECT_EQ(made.size(), 0u);
  const array<int> view = kept.get();
  EXPECT_EQ(view.data(), built_at);  // never copied
  EXPECT_TRUE(counts(view, 1'000'000));
  EXPECT_EQ(sum_span(view), 499999500000L);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(view.data()) % 64, 0u);
}

TEST(array, is_argument_result_and_part_of_other_values) {
  for (const std::size_t size : {0u, 1u, 100u, 1023u, 1024u, 1025u, 100'000u, 2'000'000u}) {
    const auto expected = static_cast<long>(size) * (static_cast<long>(size) - 1) / 2;
    EXPECT_TRUE(counts(remote<counting>(size).get(), size)) << size;
    EXPECT_TRUE(counts(remote<counting_builder>(size).get(), size)) << size;
    EXPECT_EQ(remote<sum>(counting(size)).get(), expected) << size;
    EXPECT_EQ(remote<sum>(remote<counting>(size)).get(), expected) << size;
    EXPECT_TRUE(remote<counts>(rota::put(counting(size)), size).get()) << size;
    EXPECT_EQ(remote<sum>(remote<counting>(size).get()).get(), expected) << size;  // a view passed on
  }
  const auto both = rota::put(std::vector<array<int>>{counting(10), counting(100'000)}).get();
  EXPECT_TRUE(counts(both[0], 10) && counts(both[1], 100'000));
  const auto pair =
      remote<[](std::size_t size) { return std::pair<std::string, array<int>>("pair", counting(size)); }>(5000u).get();
  EXPECT_TRUE(counts(pair.second, 5000));
}

TEST(array, a_view_keeps_the_object_alive) {
  array<int> view = remote<counting>(1'000'000u).get();
  const array<int> copy = view;
  view = {};
  for (int i = 0; i < 20; ++i) sum(remote<counting>(1'000'000u + static_cast<unsigned>(i)).get());
  EXPECT_TRUE(counts(copy, 1'000'000));
}

TEST(array, a_builder_that_is_dropped_gives_its_room_back) {
  for (int i = 0; i < 2000; ++i) rota::make_array<char>(10'000'000);
  array<char> unused = rota::make_array<char>(1000);
  EXPECT_EQ(unused.size(), 1000u);
}

TEST(array, structs_with_large_alignment_are_aligned) {
  struct alignas(64) line {
    char bytes[64] = {};
  };
  for (std::size_t size : {1u, 3u, 5000u}) {
    auto made = rota::make_array<line>(size);
    std::fill(made.begin(), made.end(), line{});
    auto kept = rota::put(std::move(made));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(kept.get().data()) % 64, 0u);
    EXPECT_TRUE(remote<[](array<line> a) { return reinterpret_cast<std::uintptr_t>(a.data()) % 64 == 0; }>(kept).get());
  }
}

struct alignas(64) wide {
  int value = 0;
};
TEST(array, is_aligned_inside_other_values_too) {
  std::vector<array<wide>> many;
  for (int i = 0; i < 40; ++i) {
    auto made = rota::make_array<wide>(static_cast<std::size_t>(i % 3));
    std::fill(made.begin(), made.end(), wide{i});
    many.push_back(std::move(made));
  }
  for (const auto& got :
       {rota::put(many).get(), remote<[](std::vector<array<wide>> all) { return all; }>(many).get()}) {
    ASSERT_EQ(got.size(), many.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].size(), i % 3);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(got[i].data()) % 64, 0u);
      for (const wide& one : got[i]) EXPECT_EQ(one.value, static_cast<int>(i));
    }
  }
}

TEST(sizes, values_of_0_bytes) {
  EXPECT_TRUE(rota::put(std::vector<int>()).get().empty());
  EXPECT_TRUE(rota::put(rota::make_array<int>(0)).get().empty());
  EXPECT_TRUE(rota::put(std::string()).get().empty());
  EXPECT_EQ(remote<sum>(rota::put(rota::make_array<int>(0))).get(), 0);
  struct empty {};
  rota::put(empty{}).get();
}

TEST(sizes, an_array_of_more_than_2_gib) {
  if (workers().size() != 1 || workers().front() == 0) GTEST_SKIP() << "done on two ranks only: it takes 2 GiB";
  const std::size_t size = (std::size_t{2} << 30) + 4097;
  try {
    auto made = remote<[](std::size_t n) {
      auto bytes = rota::make_array<char>(n);
      bytes[0] = 'a';
      bytes[n - 1] = 'z';
      return bytes;
    }>(size);
    const array<char> view = made.get();
    EXPECT_EQ(view.size(), size);
    EXPECT_TRUE(view.front() == 'a' && view.back() == 'z');
    EXPECT_EQ((remote<[](const array<char>& a) { return a.size() + static_cast<std::size_t>(a.back()); }>(made).get()),
              size + 'z');
  } catch (const rota::out_of_memory& full) {
    GTEST_SKIP() << "/dev/shm is too small here: " << full.what();
  }
}

TEST(sizes, a_vector_of_more_than_2_gib) {
  if (workers().size() != 1 || workers().front() == 0) GTEST_SKIP() << "done on two ranks only: it takes 7 GiB";
  const auto free_bytes = static_cast<std::size_t>(sysconf(_SC_AVPHYS_PAGES)) * 4096;
  if (free_bytes < (std::size_t{9} << 30)) GTEST_SKIP() << "9 GiB of memory are not free here";
  const std::size_t size = (std::size_t{2} << 30) + 4097;
  try {
    std::vector<char> bytes(size, 'b');
    auto kept = rota::put(std::move(bytes));
    bytes = {};
    EXPECT_EQ(
        (remote<[](const std::vector<char>& v) { return v.size() + static_cast<std::size_t>(v.back()); }>(kept).get()),
        size + 'b');
  } catch (const rota::out_of_memory& full) {
    GTEST_SKIP() << "/dev/shm is too small here: " << full.what();
  }
}

long sum_of_refs(const std::vector<ref<int>>& refs) {
  const auto values = rota::get(refs);
  return std::accumulate(values.begin(), values.end(), 0L);
}
std::vector<ref<int>> many_refs(int count) {
  std::vector<ref<int>> refs;
  for (int i = 0; i < count; ++i) refs.push_back(rota::put(i));
  return refs;
}

TEST(many_refs, ten_thousand_in_one_value) {
  std::vector<ref<int>> refs;
  for (int i = 0; i < 10'000; ++i) refs.push_back(remote<id>(i));
  EXPECT_EQ(sum_of_refs(refs), 49995000);
  auto kept = rota::put(refs);
  refs.clear();
  EXPECT_EQ(sum_of_refs(kept.get()), 49995000);
  EXPECT_EQ(remote<sum_of_refs>(kept).get(), 49995000);
  EXPECT_EQ(sum_of_refs(remote<many_refs>(10'000).get()), 49995000);
  EXPECT_EQ(remote<sum_of_refs>(remote<many_refs>(10'000)).get(), 49995000);
  EXPECT_EQ(remote<sum_of_refs>(many_refs(10'000)).get(), 49995000);
}

TEST(many_refs, a_million_alive_at_once) {
  std::vector<ref<int>> refs = many_refs(1'000'000);
  const std::vector<int> values = rota::get(refs);
  ASSERT_EQ(values.size(), refs.size());
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], static_cast<int>(i));
  refs.clear();
  EXPECT_EQ(rota::detail::leak_report(), "");
}

struct node {
  int value = 0;
  std::vector<ref<node>> next{};
  template <class Archive>
  void serialize(Archive& archive) {
    archive(value, next);
  }
};

TEST(many_refs, a_chain_of_values_inside_values) {
  auto head = rota::put(node{0, {}});
  for (int i = 1; i < 1000; ++i) head = rota::put(node{i, {head}});
  int length = 1;
  node at = head.get();
  head = {};
  for (; !at.next.empty(); ++length) at = at.next.front().get();
  EXPECT_EQ(length, 1000);
}

}  // namespace
