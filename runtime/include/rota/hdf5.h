#pragma once

#include <rota/array.h>
#include <rota/detail/hdf5.h>
#include <rota/task.h>

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

// Datasets of HDF5 files as arrays. Installed where rota was built with HDF5 (ROTA_WITH_HDF5). Values are integers of 1
// to 8 bytes, float and double; their byte order in the file may be any.
//
// Paths are taken as in the calling process. What is wrong with a file or dataset is a rota::error with the words of
// the HDF5 library; wrong use is a config_error. HDF5 is called by one thread of a process at a time, under a lock of
// rota's own: a program that calls it too must not do so at the same time.
namespace rota::hdf5 {

// The sizes of the dataset's dimensions, rows first; empty for a single value.
inline std::vector<std::size_t> shape(const std::string& file, const std::string& dataset) {
  return detail::hdf5_shape(file, dataset);
}

// Of the tasks that read, and what each of them reads.
struct read_options {
  double cpus = 1, gpus = 0;
  std::size_t memory = 0;
  std::map<std::string, double> resources{};
  int priority = 0;
  placement where = anywhere;
  std::string name = "hdf5::read";
  std::size_t rows = 0;  // of a task's block; 0: so many that it has about 8 MiB, in whole chunks of the file
};

}  // namespace rota::hdf5

namespace rota::detail {

template <class T>
array_builder<T> hdf5_read_block(const std::string& file, const std::string& dataset, std::size_t first,
                                 std::size_t rows, std::size_t values) {
  array_builder<T> block(values);
  hdf5_read(file, dataset, hdf5_type_of<T>(), {first, rows, values}, block.data());
  return block;
}

}  // namespace rota::detail

namespace rota::hdf5 {

// One task for each block of `rows` rows, in order: it opens the file on its own rank and reads these rows only. So
// every rank that runs tasks must see the file, under the same absolute path. Datasets of several dimensions come row
// by row, flattened; shape() has the sizes. Throws at once where the dataset cannot be opened or holds another type
// than T; what goes wrong later is thrown by get. A dataset without rows gives no refs.
template <class T>
std::vector<ref<array<T>>> read(const std::string& file, const std::string& dataset, const read_options& how = {}) {
  const std::string path = detail::hdf5_absolute(file);
  const auto task = remote<&detail::hdf5_read_block<T>>.with(
      {how.cpus, how.gpus, how.memory, how.resources, how.priority, how.where, how.name});
  std::vector<ref<array<T>>> refs;
  for (const auto& block : detail::hdf5_blocks(path, dataset, detail::hdf5_type_of<T>(), how.rows)) {
    refs.push_back(task(path, dataset, block.first, block.rows, block.values));
  }
  return refs;
}

struct write_options {
  std::vector<std::size_t> row_shape{};  // the dimensions behind the first; none: a row is one value
  std::size_t chunk_rows = 0;            // rows of a chunk in the file; 0: so many that it has about 64 KiB
};

// A new dataset, chunked and extendible, that grows at its end; in a file that exists, or in a new one. Groups on the
// way are made. The dataset is there whole or not at all: without close(), also after an error, the dataset is taken
// out again, and the file is removed if the writer made it. (A file that was there before is at risk where the disk is
// full.) One thread at a time, one writer of a file at a time; only this process must see the file.
template <class T>
class writer {
 public:
  // Throws where the file cannot be opened or made, or has such a dataset.
  writer(const std::string& file, const std::string& dataset, const write_options& how = {})
      : core_(file, dataset, detail::hdf5_type_of<T>(), how.row_shape, how.chunk_rows) {}

  // Whole rows; config_error otherwise.
  void append(std::span<const T> values) { core_.append(values.data(), values.size()); }
  // Throws where not all is in the file.
  void close() { core_.close(); }

 private:
  detail::hdf5_writer core_;
};

// Writes the parts, one behind the other, as a new dataset, here in the calling process: it waits for each in turn and
// holds no more than one at a time besides what the store holds. Parts that are moved in are let go as they are
// written. Values: array<T> or std::vector<T>. Throws as writer<T> and get do; then nothing is left behind.
template <class Values>
void write(std::vector<ref<Values>> parts, const std::string& file, const std::string& dataset,
           const write_options& how = {}) {
  writer<typename Values::value_type> to(file, dataset, how);
  for (ref<Values>& part : parts) {
    const Values values = std::exchange(part, {}).get();
    to.append({values.data(), values.size()});
  }
  to.close();
}

// Attributes of `object`, a dataset or group ("/" is the file): one number, or a text in UTF-8. The file and object
// must be there. Writing one that exists is an error, as is reading another type than it has.
template <class T>
void write_attribute(const std::string& file, const std::string& object, const std::string& name, const T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    detail::hdf5_write_attribute(file, object, name, detail::hdf5_type_of<T>(), &value);
  } else {
    detail::hdf5_write_attribute(file, object, name, std::string(value));
  }
}

template <class T>
T read_attribute(const std::string& file, const std::string& object, const std::string& name) {
  if constexpr (std::is_arithmetic_v<T>) {
    T value{};
    detail::hdf5_read_attribute(file, object, name, detail::hdf5_type_of<T>(), &value);
    return value;
  } else {
    static_assert(std::is_same_v<T, std::string>, "rota: attributes are numbers or std::string");
    return detail::hdf5_read_attribute(file, object, name);
  }
}

}  // namespace rota::hdf5
