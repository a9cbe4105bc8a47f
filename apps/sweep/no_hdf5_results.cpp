#include "apps/sweep/results.h"
#include "apps/sweep/samples.h"

namespace sweep {
namespace {

[[noreturn]] void refuse(const std::string& path) {
  throw input_error(path + ": this sweep was built without HDF5 (ROTA_WITH_HDF5): leave out --out, the table is on " +
                    "standard output");
}

}  // namespace

void check_results_file(const std::string& path) { refuse(path); }

void write_results(const options& chosen, const std::vector<result>&) { refuse(chosen.out); }

}  // namespace sweep
