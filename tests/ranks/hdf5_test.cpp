#include <gtest/gtest.h>
#include <rota/hdf5.h>
#include <rota/rota.h>

#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "tests/ranks/session_help.h"

namespace {

using rota::tests::contains;
using rota::tests::exists;
using rota::tests::thrown_by;
namespace hdf5 = rota::hdf5;

[[maybe_unused]] const bool offered = rota::tests::offer({{"ROTA_CPUS", "2"}, {"ROTA_STORE", "256M"}});

template <class T>
std::vector<T> joined(const std::vector<rota::ref<rota::array<T>>>& blocks) {
  std::vector<T> all;
  for (const auto& block : blocks) {
    const rota::array<T> values = block.get();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

template <class T>
rota::array_builder<T> counting(std::size_t n, T first) {
  auto values = rota::make_array<T>(n);
  std::iota(values.begin(), values.end(), first);
  return values;
}

rota::array_builder<double> failing(std::size_t, double) { throw std::out_of_range("no such part"); }

// Parts of 0, 1, 2 ... values made by tasks; together 0, 1, 2 ...
std::vector<rota::ref<rota::array<double>>> growing_parts(std::size_t count) {
  std::vector<rota::ref<rota::array<double>>> parts;
  for (std::size_t n = 0; n < count; ++n) {
    parts.push_back(rota::remote<counting<double>>(n, static_cast<double>(n * (n - 1) / 2)));
  }
  return parts;
}

template <class T>
class hdf5_of : public testing::Test {};
using value_types = testing::Types<char, std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t,
                                   std::uint32_t, std::int64_t, std::uint64_t, float, double>;
TYPED_TEST_SUITE(hdf5_of, value_types);

TYPED_TEST(hdf5_of, values_come_back_as_they_went) {
  using limits = std::numeric_limits<TypeParam>;
  rota::tests::note_folder notes;
  const std::string file = notes["f.h5"];
  const std::vector<TypeParam> values{0, 1, limits::lowest(), limits::max(), 77};
  hdf5::write(std::vector{rota::put(values), rota::put(values)}, file, "/a/b/values");
  const auto blocks = hdf5::read<TypeParam>(file, "/a/b/values", {.rows = 5});
  ASSERT_EQ(blocks.size(), 2u);
  for (const auto& block : blocks) EXPECT_EQ(joined<TypeParam>({block}), values);
  hdf5::write_attribute(file, "/a", "highest", limits::max());
  EXPECT_EQ(hdf5::read_attribute<TypeParam>(file, "/a", "highest"), limits::max());
}

TEST(hdf5, many_parts_of_tasks_are_one_dataset_in_order) {
  rota::tests::note_folder notes;
  const std::string file = notes["f.h5"];
  hdf5::write(growing_parts(300), file, "x");
  EXPECT_EQ(hdf5::shape(file, "x"), std::vector<std::size_t>{300 * 299 / 2});
  std::vector<double> all(300 * 299 / 2);
  std::iota(all.begin(), all.end(), 0.0);
  for (const std::size_t rows : {0, 1000, 44850, 100000})
    EXPECT_EQ(joined(hdf5::read<double>(file, "x", {.rows = rows})), all);
  EXPECT_EQ(hdf5::read<double>(file, "x", {.rows = 1000}).size(), 45u);
}

TEST(hdf5, blocks_are_eight_megabytes_unless_told) {
  rota::tests::note_folder notes;
  const std::string file = notes["f.h5"];
  hdf5::write(std::vector{rota::remote<counting<double>>(2'500'000, 0.0)}, file, "x");
  const auto blocks = hdf5::read<double>(file, "x");
  ASSERT_EQ(blocks.size(), 3u);
  EXPECT_EQ(blocks[0].get().size(), 1u << 20);
  EXPECT_EQ(blocks[2].get().back(), 2'499'999.0);
}

TEST(hdf5, blocks_are_read_where_the_options_say) {
  rota::tests::note_folder notes;
  const std::string file = notes["f.h5"];
  hdf5::write(growing_parts(20), file, "x");
  const unsigned last = rota::tests::workers().back();
  const auto blocks = hdf5::read<double>(file, "x", {.where = rota::on_rank(last), .rows = 10});
  EXPECT_EQ(joined(blocks).size(), 190u);
  EXPECT_THROW(rota::get(hdf5::read<double>(file, "x", {.where = rota::on_rank(999)})), rota::infeasible);
}

TEST(hdf5, several_dimensions_are_flattened_row_by_row) {
  rota::tests::note_folder notes;
  const std::string file = notes["f.h5"];
  hdf5::write(std::vector{rota::remote<counting<int>>(24, 0), rota::remote<counting<int>>(36, 24)}, file, "cube",
              {.row_shape = {3, 4}, .chunk_rows = 2});
  EXPECT_EQ(hdf5::shape(file, "cube"), (std::vector<std::size_t>{5, 3, 4}));
  const auto blocks = hdf5::read<int>(file, "cube", {.rows = 2});
  ASSERT_EQ(blocks.size(), 3u);
  EXPECT_EQ(blocks[1].get().size(), 24u);
  EXPECT_EQ(blocks[1].get()[0], 24);
  EXPECT_EQ(blocks[2].get().back(), 59);
}

TEST(hdf5, a_dataset_may_be_empty) {
  rota::tests::note_folder notes;
  const std::string file = notes["f.h5"];
  hdf5::write(std::vector<rota::ref<rota::array<float>>>{}, file, "none");
  hdf5::write(std::vector{rota::put(std::vector<float>{})}, file, "empty", {.row_shape = {7}});
  EXPECT_EQ(hdf5::shape(file, "none"), std::vector<std::size_t>{0});
  EXPECT_EQ(hdf5::shape(file, "empty"), (std::vector<std::size_t>{0, 7}));
  EXPECT_TRUE(hdf5::read<float>(file, "none").empty());
  EXPECT_TRUE(hdf5::read<float>(file, "empty").empty());
}

TEST(hdf5, tasks_may_write_and_read) {
  rota::tests::note_folder notes;
  const std::string file = notes["f.h5"];
  constexpr auto job = [](std::string path, const std::vector<rota::ref<rota::array<double>>>& parts) {
    hdf5::write(parts, path, "x");
    double sum = 0;
    for (const double value : joined(hdf5::read<double>(path, "x", {.rows = 7}))) sum += value;
    return sum;
  };
  EXPECT_EQ(rota::remote<job>(file, growing_parts(20)).get(), 190.0 * 189 / 2);
}

TEST(hdf5, attributes_are_numbers_and_texts) {
  rota::tests::note_folder notes;
  const std::string file = notes["f.h5"];
  hdf5::write(growing_parts(3), file, "x");
  hdf5::write_attribute(file, "x", "unit", "µm");
  hdf5::write_attribute(file, "/", "none", std::string());
  EXPECT_EQ(hdf5::read_attribute<std::string>(file, "x", "unit"), "µm");
  EXPECT_EQ(hdf5::read_attribute<std::string>(file, "/", "none"), "");
  EXPECT_THROW(hdf5::write_attribute(file, "x", "unit", 1), rota::error);
  EXPECT_THROW(hdf5::read_attribute<int>(file, "x", "unit"), rota::error);
  EXPECT_THROW(hdf5::read_attribute<int>(file, "x", "other"), rota::error);
  EXPECT_THROW(hdf5::write_attribute(file, "y", "unit", 1), rota::error);
}

// What the message of `call` has, besides the file and the dataset.
template <class F>
void expect_error(F call, const std::string& file, const std::string& dataset, const std::string& words) {
  const std::string text = thrown_by<rota::error>(call).what();
  for (const std::string& part : {file, "'" + dataset + "'", words}) {
    EXPECT_TRUE(contains(text, part)) << text << "\nhas not: " << part;
  }
}

TEST(hdf5, errors_have_the_file_the_dataset_and_the_words_of_hdf5) {
  rota::tests::note_folder notes;
  const std::string file = notes["f.h5"];
  const std::string text = notes["text"];
  rota::tests::write_note(text);
  EXPECT_TRUE(contains(thrown_by<rota::error>([&] { hdf5::read<int>(file, "x"); }).what(),
                       "'" + file + "' cannot be opened: unable to open file: No such file or directory"));
  EXPECT_TRUE(contains(thrown_by<rota::error>([&] { hdf5::shape(text, "x"); }).what(), "file signature not found"));
  EXPECT_TRUE(contains(thrown_by<rota::error>([&] { hdf5::write(growing_parts(2), text, "x"); }).what(),
                       "file signature not found"));
  EXPECT_EQ(rota::tests::read_note(text), "here");
  EXPECT_TRUE(contains(thrown_by<rota::error>([&] { hdf5::write(growing_parts(2), file + "/none/f.h5", "x"); }).what(),
                       "No such file or directory"));
  hdf5::write(growing_parts(4), file, "x");
  expect_error([&] { hdf5::read<double>(file, "y"); }, file, "y", "object 'y' doesn't exist");
  expect_error([&] { hdf5::read<double>(file, "a/y"); }, file, "a/y", "component not found");
  expect_error([&] { hdf5::read<float>(file, "x"); }, file, "x", "holds double, and was to be read as float");
  expect_error([&] { hdf5::read<std::uint64_t>(file, "x"); }, file, "x", "read as std::uint64_t");
  expect_error([&] { hdf5::write(growing_parts(2), file, "x"); }, file, "x", "name already exists");
  EXPECT_EQ(joined(hdf5::read<double>(file, "x")).size(), 6u);
}

TEST(hdf5, wrong_use_is_a_config_error) {
  rota::tests::note_folder notes;
  const std::string file = notes["f.h5"];
  const auto part = rota::put(std::vector<int>{1, 2, 3});
  EXPECT_THROW(hdf5::write(std::vector{part}, file, ""), rota::config_error);
  EXPECT_THROW(hdf5::write(std::vector{part}, file, "x", {.row_shape = {2}}), rota::config_error);
  EXPECT_THROW(hdf5::write(std::vector{part}, file, "x", {.row_shape = {0}}), rota::config_error);
  EXPECT_THROW(hdf5::write(std::vector{rota::ref<std::vector<int>>()}, file, "x"), rota::config_error);
  EXPECT_FALSE(exists(file));
  hdf5::writer<int> done(file, "x");
  done.close();
  EXPECT_THROW(done.append(std::vector{1}), rota::config_error);
  EXPECT_THROW(done.close(), rota::config_error);
  EXPECT_THROW(hdf5::read<int>(file, ""), rota::config_error);
}

TEST(hdf5, a_part_that_fails_leaves_nothing_behind) {
  rota::tests::note_folder notes;
  const std::string file = notes["f.h5"];
  auto parts = growing_parts(200);
  parts.push_back(rota::remote<failing>(1, 0.0));
  EXPECT_THROW(hdf5::write(parts, file, "x"), rota::task_error);
  EXPECT_FALSE(exists(file));
  hdf5::write(growing_parts(4), file, "first");
  EXPECT_THROW(hdf5::write(parts, file, "x"), rota::task_error);
  expect_error([&] { hdf5::read<double>(file, "x"); }, file, "x", "doesn't exist");
  EXPECT_EQ(joined(hdf5::read<double>(file, "first")).size(), 6u);
  parts.pop_back();
  hdf5::write(parts, file, "x");
  EXPECT_EQ(joined(hdf5::read<double>(file, "x")).size(), 200u * 199 / 2);
}

TEST(hdf5, an_error_of_a_task_that_reads_is_thrown_by_get) {
  rota::tests::note_folder notes;
  const std::string file = notes["f.h5"];
  const std::string gate = notes["gate"];
  hdf5::write(growing_parts(4), file, "x");
  const auto held = rota::remote<rota::tests::hold_slot_until>.with(
      {.cpus = 2, .where = rota::on_rank(rota::tests::workers()[0])})(gate);
  const auto blocks = hdf5::read<double>(file, "x", {.where = rota::on_rank(rota::tests::workers()[0])});
  unlink(file.c_str());
  rota::tests::write_note(gate);
  held.get();
  const auto error = thrown_by<rota::task_error>([&] { rota::get(blocks); });
  EXPECT_TRUE(contains(error.what(), "hdf5::read")) << error.what();
  EXPECT_TRUE(contains(error.what(), "No such file or directory")) << error.what();
}

}  // namespace
