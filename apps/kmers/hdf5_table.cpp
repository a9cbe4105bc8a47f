#include "apps/kmers/hdf5_table.h"

#include <rota/hdf5.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>

#include "apps/kmers/byte_source.h"
#include "apps/kmers/output_file.h"

namespace kmers {
namespace {

constexpr std::size_t batch = 64 * 1024;

// Runs what can fail for the sake of the file only.
template <class F>
void on_file(const std::string& path, F&& work) {
  try {
    work();
  } catch (const rota::error& error) {
    throw input_error(path + ": cannot be written: " + error.what());
  }
}

// One field of all counts as a dataset of its own; `show` is told the part that is written.
template <class T, class F>
void write_column(const unfinished_file& out, const std::string& dataset, const std::vector<rota::ref<run>>& parts,
                  F&& field, const std::function<void(std::size_t)>& show) {
  std::optional<rota::hdf5::writer<T>> to;
  on_file(out.path(), [&] { to.emplace(out.written_path(), dataset); });
  std::vector<T> values;
  values.reserve(batch);
  auto hand_over = [&] {
    on_file(out.path(), [&] { to->append(values); });
    values.clear();
  };
  for (std::size_t i = 0; i < parts.size(); ++i) {
    show(i);
    const run part = rota::get(parts[i]);
    for (const kmer_count& entry : part) {
      values.push_back(field(entry));
      if (values.size() == batch) hand_over();
    }
  }
  hand_over();
  on_file(out.path(), [&] { to->close(); });
}

// The names of the files, one a line.
std::string lines(const std::vector<std::string>& files) {
  std::string text;
  for (const std::string& file : files) text += (text.empty() ? "" : "\n") + file;
  return text;
}

}  // namespace

void check_hdf5_table(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored)) {
    throw input_error(path + ": cannot be written: HDF5 needs a regular file");
  }
}

void write_hdf5_table(const options& chosen, const std::vector<rota::ref<run>>& parts, progress& bar) {
  unfinished_file out(chosen.out);
  auto code_of = [](const kmer_count& entry) { return entry.code; };
  auto count_of = [&](const kmer_count& entry) {
    if (entry.count <= std::numeric_limits<std::uint32_t>::max()) return static_cast<std::uint32_t>(entry.count);
    throw std::runtime_error(out.path() + ": " + letters(entry.code, chosen.k) + " occurs " +
                             std::to_string(entry.count) + " times, which 32 bits do not hold; write a .tsv");
  };
  write_column<std::uint64_t>(out, "/kmers", parts, code_of,
                              [&](std::size_t i) { bar.show("writing", i, 2 * parts.size()); });
  write_column<std::uint32_t>(out, "/counts", parts, count_of,
                              [&](std::size_t i) { bar.show("writing", parts.size() + i, 2 * parts.size()); });
  on_file(out.path(), [&] {
    rota::hdf5::write_attribute(out.written_path(), "/", "k", chosen.k);
    rota::hdf5::write_attribute(out.written_path(), "/", "source", lines(chosen.files));
  });
  out.commit();
}

}  // namespace kmers
