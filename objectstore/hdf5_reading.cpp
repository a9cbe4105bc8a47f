#include <rota/detail/hdf5.h>
#include <rota/error.h>

#include <algorithm>
#include <filesystem>

#include "objectstore/hdf5_library.h"

namespace rota::objectstore {
namespace {

constexpr std::size_t block_bytes = std::size_t{8} << 20;

// The sizes of the dimensions; a dataset that has no dataspace at all has no rows.
std::vector<std::size_t> shape_of(hid_t dataset, const std::string& what) {
  const hdf5_id space = check(H5Dget_space(dataset), H5Sclose, what, "read");
  if (H5Sget_simple_extent_type(space) == H5S_NULL) return {0};
  const int rank = H5Sget_simple_extent_ndims(space);
  if (rank < 0) throw_hdf5(what, "read");
  std::vector<hsize_t> sizes(static_cast<std::size_t>(rank));
  if (rank > 0) check(H5Sget_simple_extent_dims(space, sizes.data(), nullptr), what, "read");
  return {sizes.begin(), sizes.end()};
}

// 1 where the dataset is not chunked.
std::size_t chunk_rows_of(hid_t dataset, std::size_t rank, const std::string& what) {
  const hdf5_id made = check(H5Dget_create_plist(dataset), H5Pclose, what, "read");
  if (rank == 0 || H5Pget_layout(made) != H5D_CHUNKED) return 1;
  std::vector<hsize_t> sizes(rank);
  check(H5Pget_chunk(made, static_cast<int>(rank), sizes.data()), what, "read");
  return std::max<std::size_t>(1, sizes[0]);
}

// REQUIRES: the dataset has dimensions.
hdf5_id select_rows(hid_t dataset, const detail::hdf5_block& block, const std::string& what) {
  const std::vector<std::size_t> shape = shape_of(dataset, what);
  if (shape.empty() || block.first + block.rows > shape[0]) {
    throw error("hdf5: " + what + " has become shorter: rows " + std::to_string(block.first) + " to " +
                std::to_string(block.first + block.rows) + " were to be read");
  }
  std::vector<hsize_t> start(shape.size(), 0);
  std::vector<hsize_t> count(shape.begin(), shape.end());
  start[0] = block.first;
  count[0] = block.rows;
  hdf5_id space = check(H5Dget_space(dataset), H5Sclose, what, "read");
  check(H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr), what, "read");
  return space;
}

}  // namespace
}  // namespace rota::objectstore

namespace rota::detail {

using namespace objectstore;

std::string hdf5_absolute(const std::string& file) { return std::filesystem::absolute(file).string(); }

std::vector<std::size_t> hdf5_shape(const std::string& file, const std::string& dataset) {
  const std::string what = name_of_dataset(file, dataset);
  const hdf5_lock lock;
  const hdf5_id opened = open_file(file, H5F_ACC_RDONLY);
  return shape_of(open_dataset(opened, dataset, what), what);
}

std::vector<hdf5_block> hdf5_blocks(const std::string& file, const std::string& dataset, hdf5_type type,
                                    std::size_t rows) {
  const std::string what = name_of_dataset(file, dataset);
  const hdf5_lock lock;
  const hdf5_id opened = open_file(file, H5F_ACC_RDONLY);
  const hdf5_id found = open_dataset(opened, dataset, what);
  check_type(check(H5Dget_type(found), H5Tclose, what, "read"), type, what);
  const std::vector<std::size_t> shape = shape_of(found, what);
  if (shape.empty()) return {{0, 1, 1}};
  std::size_t row_values = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) row_values *= shape[i];
  if (rows == 0) {
    const std::size_t chunk_rows = chunk_rows_of(found, shape.size(), what);
    const std::size_t fitting = block_bytes / std::max<std::size_t>(1, row_values * type.bytes);
    rows = std::max<std::size_t>(1, fitting / chunk_rows) * chunk_rows;
  }
  std::vector<hdf5_block> blocks;
  for (std::size_t first = 0; first < shape[0];) {
    const std::size_t taken = std::min(rows, shape[0] - first);
    blocks.push_back({first, taken, taken * row_values});
    first += taken;
  }
  return blocks;
}

void hdf5_read(const std::string& file, const std::string& dataset, hdf5_type type, const hdf5_block& block, void* to) {
  if (block.values == 0) return;
  const std::string what = name_of_dataset(file, dataset);
  const hdf5_lock lock;
  const hdf5_id opened = open_file(file, H5F_ACC_RDONLY);
  const hdf5_id found = open_dataset(opened, dataset, what);
  check_type(check(H5Dget_type(found), H5Tclose, what, "read"), type, what);
  if (shape_of(found, what).empty()) {
    check(H5Dread(found, native(type), H5S_ALL, H5S_ALL, H5P_DEFAULT, to), what, "read");
    return;
  }
  const hdf5_id from = select_rows(found, block, what);
  const hsize_t values = block.values;
  if (H5Sget_select_npoints(from) != static_cast<hssize_t>(values)) {
    throw error("hdf5: " + what + " has changed its shape while it was read");
  }
  const hdf5_id flat = check(H5Screate_simple(1, &values, nullptr), H5Sclose, what, "read");
  check(H5Dread(found, native(type), flat, from, H5P_DEFAULT, to), what, "read");
}

void hdf5_read_attribute(const std::string& file, const std::string& object, const std::string& name, hdf5_type type,
                         void* value) {
  const std::string what = "attribute '" + name + "' of '" + object + "' in '" + file + "'";
  const hdf5_lock lock;
  const hdf5_id opened = open_file(file, H5F_ACC_RDONLY);
  const hdf5_id found =
      check(H5Aopen_by_name(opened, object.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose, what, "opened");
  check_type(check(H5Aget_type(found), H5Tclose, what, "read"), type, what);
  const hdf5_id space = check(H5Aget_space(found), H5Sclose, what, "read");
  if (H5Sget_simple_extent_npoints(space) != 1) throw error("hdf5: " + what + " holds not one value");
  check(H5Aread(found, native(type), value), what, "read");
}

std::string hdf5_read_attribute(const std::string& file, const std::string& object, const std::string& name) {
  const std::string what = "attribute '" + name + "' of '" + object + "' in '" + file + "'";
  const hdf5_lock lock;
  const hdf5_id opened = open_file(file, H5F_ACC_RDONLY);
  const hdf5_id found =
      check(H5Aopen_by_name(opened, object.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose, what, "opened");
  const hdf5_id type = check(H5Aget_type(found), H5Tclose, what, "read");
  const hdf5_id space = check(H5Aget_space(found), H5Sclose, what, "read");
  if (H5Tget_class(type) != H5T_STRING || H5Sget_simple_extent_npoints(space) != 1) {
    throw error("hdf5: " + what + " holds not one text, and was to be read as std::string");
  }
  if (H5Tis_variable_str(type) > 0) {
    char* text = nullptr;
    check(H5Aread(found, type, &text), what, "read");
    std::string copy = text == nullptr ? "" : text;
    H5Dvlen_reclaim(type, space, H5P_DEFAULT, &text);
    return copy;
  }
  std::string text(H5Tget_size(type), '\0');
  check(H5Aread(found, type, text.data()), what, "read");
  text.resize(std::min(text.size(), text.find('\0')));  // padded with zeros
  return text;
}

}  // namespace rota::detail
