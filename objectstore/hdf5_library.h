#pragma once

#include <hdf5.h>
#include <rota/detail/hdf5.h>

#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace rota::objectstore {

// Held for as long as a thread calls the HDF5 library, which may be built for one thread only; meanwhile it prints
// nothing.
class hdf5_lock {
 public:
  hdf5_lock();
  ~hdf5_lock();
  hdf5_lock(const hdf5_lock&) = delete;
  hdf5_lock& operator=(const hdf5_lock&) = delete;

 private:
  std::unique_lock<std::mutex> lock_;
  H5E_auto2_t printer_ = nullptr;
  void* printer_data_ = nullptr;
};

// An open thing of the library, closed at the end. REQUIRES: an hdf5_lock, at the end too.
class hdf5_id {
 public:
  using closer = herr_t (*)(hid_t);

  hdf5_id() = default;
  hdf5_id(hid_t id, closer closes) noexcept : id_(id), close_(closes) {}
  hdf5_id(hdf5_id&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
  hdf5_id& operator=(hdf5_id&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~hdf5_id() { close(); }

  operator hid_t() const noexcept { return id_; }
  explicit operator bool() const noexcept { return id_ >= 0; }
  // False where the library could not.
  bool close() noexcept { return id_ < 0 || close_(std::exchange(id_, H5I_INVALID_HID)) >= 0; }

 private:
  hid_t id_ = H5I_INVALID_HID;
  closer close_ = nullptr;
};

// What is worked on, for messages: "dataset '/x' of '/tmp/f.h5'".
std::string name_of_dataset(const std::string& file, const std::string& dataset);

// Throws rota::error: "hdf5: WHAT cannot be DONE: " and the words that the library had for its last error.
[[noreturn]] void throw_hdf5(const std::string& what, std::string_view done);

// The id, or what was opened with it; the error of throw_hdf5 where the library gave none.
hdf5_id check(hid_t id, hdf5_id::closer close, const std::string& what, std::string_view done);
void check(herr_t status, const std::string& what, std::string_view done);

hdf5_id open_file(const std::string& file, unsigned mode);
hdf5_id open_dataset(hid_t file, const std::string& name, const std::string& what);

// The type in memory.
hid_t native(detail::hdf5_type type);
// Throws where `stored`, the type of `what` in the file, is another; says both. Byte order does not count.
void check_type(hid_t stored, detail::hdf5_type wanted, const std::string& what);

}  // namespace rota::objectstore
