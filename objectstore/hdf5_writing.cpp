#include <rota/detail/hdf5.h>
#include <rota/error.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "objectstore/hdf5_library.h"

namespace rota::objectstore {
namespace {

constexpr std::size_t chunk_bytes = 64 * 1024;

bool flushes(hid_t file) { return H5Fflush(file, H5F_SCOPE_LOCAL) >= 0; }

// From now on the library writes this file into memory instead. After a failed write HDF5 1.10 keeps what it could not
// write, tries again when the file is closed, keeps the file's id when that fails, and crashes on it at exit. A file
// that is given up must therefore close well, and what it still wants to write is of no use. A flush that failed leaves
// marks on which the next one fails too; the one after it does not.
void give_up(hid_t file) {
  void* descriptor = nullptr;
  if (H5Fget_vfd_handle(file, H5P_DEFAULT, &descriptor) < 0 || descriptor == nullptr) return;
  const int memory = memfd_create("rota-hdf5", MFD_CLOEXEC);
  if (memory < 0) return;
  dup2(memory, *static_cast<int*>(descriptor));
  close(memory);
  for (int i = 0; i < 3 && !flushes(file); ++i) {
  }
}

}  // namespace
}  // namespace rota::objectstore

namespace rota::detail {

using namespace objectstore;

struct hdf5_writer::state {
  std::string path{};
  std::string name{};
  std::string what{};
  hid_t type = H5I_INVALID_HID;
  std::vector<hsize_t> extent{};  // rows so far, then the row's shape
  hsize_t row_values = 1;
  bool new_file = false;
  hdf5_id file{};
  hdf5_id dataset{};

  void open() {
    new_file = !std::filesystem::exists(path);
    file = new_file ? check(H5Fcreate(path.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT), H5Fclose, "'" + path + "'",
                            "made")
                    : open_file(path, H5F_ACC_RDWR);
  }

  void make_dataset(std::size_t chunk_rows, std::size_t value_bytes) {
    std::vector<hsize_t> most = extent;
    std::vector<hsize_t> chunk = extent;
    most[0] = H5S_UNLIMITED;
    chunk[0] = chunk_rows > 0 ? chunk_rows : std::max<hsize_t>(1, chunk_bytes / (row_values * value_bytes));
    const hdf5_id space =
        check(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), most.data()), H5Sclose, what, "made");
    const hdf5_id how = check(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, what, "made");
    check(H5Pset_chunk(how, static_cast<int>(chunk.size()), chunk.data()), what, "made");
    const hdf5_id link = check(H5Pcreate(H5P_LINK_CREATE), H5Pclose, what, "made");
    check(H5Pset_create_intermediate_group(link, 1), what, "made");
    dataset = check(H5Dcreate2(file, name.c_str(), type, space, link, how, H5P_DEFAULT), H5Dclose, what, "made");
  }

  void append(const void* values, hsize_t rows) {
    std::vector<hsize_t> start(extent.size(), 0);
    std::vector<hsize_t> count = extent;
    start[0] = extent[0];
    count[0] = rows;
    extent[0] += rows;
    check(H5Dset_extent(dataset, extent.data()), what, "written");
    const hdf5_id to = check(H5Dget_space(dataset), H5Sclose, what, "written");
    check(H5Sselect_hyperslab(to, H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr), what, "written");
    const hdf5_id from =
        check(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr), H5Sclose, what, "written");
    check(H5Dwrite(dataset, type, from, to, H5P_DEFAULT, values), what, "written");
  }

  void take_back() noexcept {
    if (!file) return;
    bool closes_well = false;
    if (!new_file && dataset) {
      extent[0] = 0;  // drops its chunks, also those that are not yet in the file
      closes_well = H5Dset_extent(dataset, extent.data()) >= 0 && H5Ldelete(file, name.c_str(), H5P_DEFAULT) >= 0;
    }
    if (new_file || (dataset && !closes_well) || !flushes(file)) give_up(file);
    dataset.close();
    file.close();
    if (new_file) unlink(path.c_str());
  }
};

hdf5_writer::hdf5_writer(const std::string& file, const std::string& dataset, hdf5_type type,
                         const std::vector<std::size_t>& row_shape, std::size_t chunk_rows)
    : state_(std::make_unique<state>()) {
  state_->path = file;
  state_->name = dataset;
  state_->what = name_of_dataset(file, dataset);
  if (dataset.empty()) throw config_error("hdf5: " + state_->what + ": the dataset has no name");
  state_->extent.push_back(0);
  for (const std::size_t size : row_shape) {
    if (size == 0) throw config_error("hdf5: " + state_->what + ": a row has a dimension of size 0");
    state_->extent.push_back(size);
    state_->row_values *= size;
  }
  const hdf5_lock lock;
  state_->type = native(type);
  try {
    state_->open();
    state_->make_dataset(chunk_rows, type.bytes);
  } catch (...) {
    state_->take_back();
    throw;
  }
}

hdf5_writer::~hdf5_writer() {
  if (!state_) return;
  const hdf5_lock lock;
  state_->take_back();
  state_.reset();
}

void hdf5_writer::append(const void* values, std::size_t count) {
  if (!state_) throw config_error("hdf5: the writer is closed, or failed before");
  if (count % state_->row_values != 0) {
    throw config_error("hdf5: " + state_->what + ": " + std::to_string(count) + " values are not whole rows of " +
                       std::to_string(state_->row_values));
  }
  if (count == 0) return;
  const hdf5_lock lock;
  try {
    state_->append(values, count / state_->row_values);
  } catch (...) {
    state_->take_back();
    state_.reset();
    throw;
  }
}

void hdf5_writer::close() {
  if (!state_) throw config_error("hdf5: the writer is closed, or failed before");
  const hdf5_lock lock;
  try {
    if (!flushes(state_->file)) throw_hdf5(state_->what, "written");
  } catch (...) {
    state_->take_back();
    state_.reset();
    throw;
  }
  const std::unique_ptr<state> done = std::move(state_);
  if (!done->dataset.close() || !done->file.close()) throw_hdf5(done->what, "closed");
}

namespace {

// An attribute that could not be written in full is taken out again, and the file closes well.
void add_attribute(const std::string& file, const std::string& object, const std::string& name, hid_t type,
                   const void* value) {
  const std::string what = "attribute '" + name + "' of '" + object + "' in '" + file + "'";
  const hdf5_id opened = open_file(file, H5F_ACC_RDWR);
  const hdf5_id space = check(H5Screate(H5S_SCALAR), H5Sclose, what, "made");
  hdf5_id made =
      check(H5Acreate_by_name(opened, object.c_str(), name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
            H5Aclose, what, "made");
  if (H5Awrite(made, type, value) >= 0 && flushes(opened)) return;
  try {
    throw_hdf5(what, "written");
  } catch (...) {
    made.close();
    H5Adelete_by_name(opened, object.c_str(), name.c_str(), H5P_DEFAULT);
    if (!flushes(opened)) give_up(opened);
    throw;
  }
}

}  // namespace

void hdf5_write_attribute(const std::string& file, const std::string& object, const std::string& name, hdf5_type type,
                          const void* value) {
  const hdf5_lock lock;
  add_attribute(file, object, name, native(type), value);
}

void hdf5_write_attribute(const std::string& file, const std::string& object, const std::string& name,
                          const std::string& value) {
  const hdf5_lock lock;
  const hdf5_id text = check(H5Tcopy(H5T_C_S1), H5Tclose, "a text", "made");
  H5Tset_size(text, H5T_VARIABLE);
  H5Tset_cset(text, H5T_CSET_UTF8);
  const char* start = value.c_str();
  add_attribute(file, object, name, text, &start);
}

}  // namespace rota::detail
