#include <rota/hdf5.h>
#include <rota/rota.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "apps/sweep/results.h"
#include "apps/sweep/samples.h"

namespace sweep {
namespace {

namespace fs = std::filesystem;
namespace hdf5 = rota::hdf5;

// Where it is written until it is complete.
std::string unfinished(const std::string& path) { return path + ".unfinished-" + std::to_string(getpid()); }

// One column of the table, which has so few rows that one chunk holds them.
template <class T, class F>
void write_column(const std::string& file, const std::string& name, std::size_t points, F&& value) {
  std::vector<T> values;
  for (std::size_t i = 0; i < points; ++i) values.push_back(value(i));
  hdf5::writer<T> column(file, name, {.chunk_rows = points});
  column.append(values);
  column.close();
}

void write_all(const std::string& file, const options& chosen, const std::vector<result>& results) {
  const std::size_t points = results.size();
  auto column = [&]<class T>(const char* name, T (*value)(const point&, const result&)) {
    write_column<T>(file, name, points, [&](std::size_t i) { return value(chosen.grid[i], results[i]); });
  };
  column(
      "/k", +[](const point& p, const result&) { return p.neighbours; });
  column(
      "/norm", +[](const point& p, const result&) { return p.norm; });
  column(
      "/weights", +[](const point& p, const result&) { return static_cast<std::uint8_t>(p.weights); });
  column(
      "/accuracy", +[](const point&, const result& r) { return r.accuracy; });
  column(
      "/deviation", +[](const point&, const result& r) { return r.deviation; });
  hdf5::writer<std::uint32_t> correct(file, "/correct", {.row_shape = {chosen.folds}, .chunk_rows = points});
  for (const result& one : results) correct.append(one.correct);
  correct.close();
  hdf5::write_attribute(file, "/", "data", chosen.file);
  hdf5::write_attribute(file, "/", "folds", static_cast<std::uint32_t>(chosen.folds));
}

}  // namespace

void check_results_file(const std::string& path) {
  std::error_code ignored;
  if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored)) {
    throw input_error(path + ": cannot be written: HDF5 needs a regular file");
  }
  const fs::path parent = fs::absolute(path).parent_path();
  if (access(parent.c_str(), W_OK) != 0) throw input_error(path + ": cannot be written: " + std::strerror(errno));
}

void write_results(const options& chosen, const std::vector<result>& results) {
  const std::string file = unfinished(chosen.out);
  try {
    write_all(file, chosen, results);
    fs::rename(file, chosen.out);
  } catch (const std::exception& error) {
    unlink(file.c_str());
    throw input_error(chosen.out + ": cannot be written: " + error.what());
  }
}

}  // namespace sweep
