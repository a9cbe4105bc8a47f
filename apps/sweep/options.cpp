#include "apps/sweep/options.h"

#include <CLI/CLI.hpp>

#include "apps/common/program.h"

namespace sweep {

std::optional<options> parse_options(int argc, char** argv) {
  options chosen;
  std::vector<std::int32_t> neighbours{1, 3, 5, 7, 10, 15};
  std::vector<std::int32_t> norms{1, 2};
  std::vector<std::string> weights{"uniform", "distance"};
  CLI::App app("Cross-validates k nearest neighbours for each point of a grid of parameters, one rota task a point.",
               "sweep");
  app.add_option("-k", neighbours, "neighbours that vote")
      ->delimiter(',')
      ->check(CLI::Range(1, 1'000'000))
      ->default_str("1,3,5,7,10,15");
  app.add_option("--norm", norms, "distance: 1 sum of differences, 2 Euclidean")
      ->delimiter(',')
      ->check(CLI::IsMember({1, 2}))
      ->default_str("1,2");
  app.add_option("--weights", weights, "of votes: uniform, or distance for 1 / distance")
      ->delimiter(',')
      ->check(CLI::IsMember({"uniform", "distance"}))
      ->default_str("uniform,distance");
  app.add_option("--folds", chosen.folds, "of the cross-validation")->check(CLI::Range(2, 1000))->capture_default_str();
  app.add_option("--out", chosen.out, "write the results here too, as HDF5");
  app.add_option("FILE", chosen.file, "rows of integers, the last one the label: .csv or .csv.gz")->required();
  if (!common::parse(app, argc, argv)) return std::nullopt;
  for (const std::int32_t k : neighbours) {
    for (const std::int32_t norm : norms) {
      for (const std::string& name : weights) {
        chosen.grid.push_back({k, norm, name == "uniform" ? weighting::uniform : weighting::distance});
      }
    }
  }
  return chosen;
}

}  // namespace sweep
