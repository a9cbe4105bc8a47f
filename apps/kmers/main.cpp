// Counts the k-mers of sequence files; README.md says how.

#include <rota/rota.h>

#include "apps/common/program.h"
#include "apps/kmers/count.h"
#include "apps/kmers/hdf5_table.h"
#include "apps/kmers/options.h"
#include "apps/kmers/report.h"

namespace {

void run_program(const kmers::options& chosen) {
  if (kmers::names_hdf5(chosen.out)) kmers::check_hdf5_table(chosen.out);
  kmers::progress bar;
  const auto parts = kmers::count_files(chosen.files, chosen.chunk, chosen.k, kmers::shape_for_cluster(), bar);
  const kmers::part_summary summary = kmers::summarize(parts, chosen.top, bar);
  if (kmers::names_hdf5(chosen.out)) {
    kmers::write_hdf5_table(chosen, parts, bar);
  } else if (!chosen.out.empty()) {
    kmers::write_table(chosen.out, parts, chosen.k, bar);
  }
  bar.wipe();
  kmers::print_summary(summary, chosen.k);
}

}  // namespace

int main(int argc, char** argv) {
  return common::run("kmers", [&] {
    const auto session = rota::init(argc, argv);  // takes the --rota- flags; ranks other than 0 serve in here
    if (const auto chosen = kmers::parse_options(argc, argv)) run_program(*chosen);
  });
}
