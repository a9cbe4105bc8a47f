#include "apps/kmers/byte_source.h"
#include "apps/kmers/hdf5_table.h"

namespace kmers {
namespace {

[[noreturn]] void refuse(const std::string& path) {
  throw input_error(path + ": this kmers was built without HDF5 (ROTA_WITH_HDF5): give the table another name, as " +
                    "counts.tsv");
}

}  // namespace

void check_hdf5_table(const std::string& path) { refuse(path); }

void write_hdf5_table(const options& chosen, const std::vector<rota::ref<run>>&, progress&) { refuse(chosen.out); }

}  // namespace kmers
