#include "objectstore/hdf5_library.h"

#include <rota/error.h>

#include <algorithm>

namespace rota::objectstore {
namespace {

std::mutex& library_mutex() {
  static std::mutex mutex;
  return mutex;
}

herr_t keep_first(unsigned index, const H5E_error2_t* entry, void* text) {
  if (index == 0 && entry->desc != nullptr) *static_cast<std::string*>(text) = entry->desc;
  return 0;
}

// The innermost entry of the library's stack of errors. Where it quotes the system ("file write failed: time = ...,
// errno = 28, error message = 'No space left on device', buf = ...") that quotation and what it is about.
std::string last_words() {
  std::string text;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, &text);
  static constexpr std::string_view mark = "error message = '";
  const auto at = text.find(mark);
  if (at != std::string::npos) {
    const auto from = at + mark.size();
    text = text.substr(0, text.find(':')) + ": " + text.substr(from, text.find('\'', from) - from);
  }
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text.empty() ? "the HDF5 library does not say why" : text;
}

std::string name_of(detail::hdf5_type type) {
  const std::string bits = std::to_string(8 * type.bytes);
  if (type.floating)
    return type.bytes == 4 ? "float" : type.bytes == 8 ? "double" : "floating-point of " + bits + " bits";
  return (type.has_sign ? "std::int" : "std::uint") + bits + "_t";
}

std::string name_of(H5T_class_t kind) {
  switch (kind) {
    case H5T_STRING:
      return "strings";
    case H5T_COMPOUND:
      return "a compound type";
    case H5T_ENUM:
      return "an enumeration";
    case H5T_REFERENCE:
      return "references";
    case H5T_VLEN:
      return "rows of variable length";
    case H5T_ARRAY:
      return "an array type";
    default:
      return "a type that is not arithmetic";
  }
}

}  // namespace

hdf5_lock::hdf5_lock() : lock_(library_mutex()) {
  H5Eget_auto2(H5E_DEFAULT, &printer_, &printer_data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

// Errors that stay on the stack of a thread when it ends are lost counts to the library: it could not close at exit.
hdf5_lock::~hdf5_lock() {
  H5Eclear2(H5E_DEFAULT);
  H5Eset_auto2(H5E_DEFAULT, printer_, printer_data_);
}

std::string name_of_dataset(const std::string& file, const std::string& dataset) {
  return "dataset '" + dataset + "' of '" + file + "'";
}

void throw_hdf5(const std::string& what, std::string_view done) {
  throw error("hdf5: " + what + " cannot be " + std::string(done) + ": " + last_words());
}

hdf5_id check(hid_t id, hdf5_id::closer close, const std::string& what, std::string_view done) {
  if (id < 0) throw_hdf5(what, done);
  return {id, close};
}

void check(herr_t status, const std::string& what, std::string_view done) {
  if (status < 0) throw_hdf5(what, done);
}

hdf5_id open_file(const std::string& file, unsigned mode) {
  return check(H5Fopen(file.c_str(), mode, H5P_DEFAULT), H5Fclose, "'" + file + "'", "opened");
}

hdf5_id open_dataset(hid_t file, const std::string& name, const std::string& what) {
  if (name.empty()) throw config_error("hdf5: " + what + ": the dataset has no name");
  return check(H5Dopen2(file, name.c_str(), H5P_DEFAULT), H5Dclose, what, "opened");
}

hid_t native(detail::hdf5_type type) {
  if (type.floating) return type.bytes == 4 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
  switch (type.bytes) {
    case 1:
      return type.has_sign ? H5T_NATIVE_INT8 : H5T_NATIVE_UINT8;
    case 2:
      return type.has_sign ? H5T_NATIVE_INT16 : H5T_NATIVE_UINT16;
    case 4:
      return type.has_sign ? H5T_NATIVE_INT32 : H5T_NATIVE_UINT32;
    default:
      return type.has_sign ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64;
  }
}

void check_type(hid_t stored, detail::hdf5_type wanted, const std::string& what) {
  const H5T_class_t kind = H5Tget_class(stored);
  std::string found;
  if (kind == H5T_INTEGER || kind == H5T_FLOAT) {
    const bool floating = kind == H5T_FLOAT;
    const detail::hdf5_type have{floating, floating || H5Tget_sign(stored) != H5T_SGN_NONE,
                                 static_cast<std::uint8_t>(H5Tget_size(stored))};
    if (have.floating == wanted.floating && have.has_sign == wanted.has_sign && have.bytes == wanted.bytes) return;
    found = name_of(have);
  } else {
    found = name_of(kind);
  }
  throw error("hdf5: " + what + " holds " + found + ", and was to be read as " + name_of(wanted));
}

}  // namespace rota::objectstore
