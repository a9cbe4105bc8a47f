#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

// The seam between <rota/hdf5.h> and what calls the HDF5 library. Not for programs.
namespace rota::detail {

// An arithmetic type, as HDF5 tells them apart.
struct hdf5_type {
  bool floating = false;
  bool has_sign = false;
  std::uint8_t bytes = 0;
};

template <class T>
constexpr hdf5_type hdf5_type_of() {
  static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool> && sizeof(T) <= 8,
                "rota: HDF5 datasets hold integers, float or double; use std::uint8_t for bool");
  return {std::is_floating_point_v<T>, std::is_signed_v<T>, static_cast<std::uint8_t>(sizeof(T))};
}

// The number of rows along the first dimension, then the sizes of the other dimensions; empty for a single value.
std::vector<std::size_t> hdf5_shape(const std::string& file, const std::string& dataset);

struct hdf5_block {
  std::size_t first;   // row
  std::size_t rows;    // of the dataset
  std::size_t values;  // in these rows
};
// The dataset cut into blocks of `rows` rows; 0: of about 8 MiB, in whole chunks. Throws where it does not hold `type`.
std::vector<hdf5_block> hdf5_blocks(const std::string& file, const std::string& dataset, hdf5_type type,
                                    std::size_t rows);
// REQUIRES: `to` has room for the block.
void hdf5_read(const std::string& file, const std::string& dataset, hdf5_type type, const hdf5_block& block, void* to);

// A dataset that grows at its end. One thread at a time.
class hdf5_writer {
 public:
  hdf5_writer(const std::string& file, const std::string& dataset, hdf5_type type,
              const std::vector<std::size_t>& row_shape, std::size_t chunk_rows);
  ~hdf5_writer();  // without close(): takes back what it wrote
  hdf5_writer(const hdf5_writer&) = delete;
  hdf5_writer& operator=(const hdf5_writer&) = delete;

  void append(const void* values, std::size_t count);
  void close();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

void hdf5_write_attribute(const std::string& file, const std::string& object, const std::string& name, hdf5_type type,
                          const void* value);
void hdf5_write_attribute(const std::string& file, const std::string& object, const std::string& name,
                          const std::string& value);
void hdf5_read_attribute(const std::string& file, const std::string& object, const std::string& name, hdf5_type type,
                         void* value);
std::string hdf5_read_attribute(const std::string& file, const std::string& object, const std::string& name);

// As seen from any working folder.
std::string hdf5_absolute(const std::string& file);

}  // namespace rota::detail
