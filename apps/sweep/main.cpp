// A parameter sweep: one task for each point of a grid. README.md says how a job array becomes this.

#include <rota/rota.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numeric>

#include "apps/common/program.h"
#include "apps/sweep/options.h"
#include "apps/sweep/results.h"
#include "apps/sweep/samples.h"

namespace {

// Task: one point of the grid. The table is in the store of the node, and not copied.
std::vector<std::uint32_t> evaluate(const rota::array<std::int32_t>& table, std::size_t columns, sweep::point chosen,
                                    std::size_t folds) {
  return sweep::count_correct({table.data(), table.size()}, columns, chosen, folds);
}

// On a terminal only.
void show_progress(std::size_t done, std::size_t all) {
  if (isatty(STDERR_FILENO) != 1) return;
  std::fprintf(stderr, "\r\x1b[K%zu of %zu points", done, all);
  if (done == all) std::fputs("\r\x1b[K", stderr);
}

sweep::result sum_up(std::vector<std::uint32_t> correct, std::size_t rows) {
  const std::size_t folds = correct.size();
  sweep::result one;
  std::vector<double> parts;
  for (std::size_t fold = 0; fold < folds; ++fold) {
    const std::size_t members = (rows + folds - 1 - fold) / folds;
    parts.push_back(static_cast<double>(correct[fold]) / static_cast<double>(members));
  }
  const auto count = static_cast<double>(folds);
  one.accuracy = std::accumulate(parts.begin(), parts.end(), 0.0) / count;
  for (const double part : parts) one.deviation += (part - one.accuracy) * (part - one.accuracy);
  one.deviation = std::sqrt(one.deviation / (count - 1));
  one.correct = std::move(correct);
  return one;
}

void print_table(const std::vector<sweep::point>& grid, const std::vector<sweep::result>& results) {
  std::puts("point\tk\tnorm\tweights\taccuracy\tdeviation");
  for (std::size_t i = 0; i < grid.size(); ++i) {
    const char* weights = grid[i].weights == sweep::weighting::uniform ? "uniform" : "distance";
    std::printf("%zu\t%d\t%d\t%s\t%.6f\t%.6f\n", i, grid[i].neighbours, grid[i].norm, weights, results[i].accuracy,
                results[i].deviation);
  }
  if (std::fflush(stdout) != 0) throw sweep::input_error(std::string("standard output: ") + std::strerror(errno));
}

void run_program(const sweep::options& chosen) {
  if (!chosen.out.empty()) sweep::check_results_file(chosen.out);
  const sweep::samples samples = sweep::read_samples(chosen.file);
  const std::size_t rows = samples.values.size() / samples.columns;
  if (rows < chosen.folds) throw sweep::input_error(chosen.file + ": fewer rows than folds");
  auto table = rota::make_array<std::int32_t>(samples.values.size());
  std::copy(samples.values.begin(), samples.values.end(), table.begin());
  const rota::ref<rota::array<std::int32_t>> stored = rota::put(std::move(table));

  std::vector<rota::ref<std::vector<std::uint32_t>>> points;
  for (const sweep::point& one : chosen.grid) {
    points.push_back(rota::remote<evaluate>.with({.name = "point"})(stored, samples.columns, one, chosen.folds));
  }
  std::size_t done = 0;
  for (const auto& point : rota::as_completed(points)) {
    point.get();  // a point that failed ends the sweep here
    show_progress(++done, points.size());
  }
  std::vector<sweep::result> results;
  for (const auto& point : points) results.push_back(sum_up(point.get(), rows));
  if (!chosen.out.empty()) sweep::write_results(chosen, results);
  print_table(chosen.grid, results);
}

}  // namespace

int main(int argc, char** argv) {
  return common::run("sweep", [&] {
    const auto session = rota::init(argc, argv);  // takes the --rota- flags; ranks other than 0 serve in here
    if (const auto chosen = sweep::parse_options(argc, argv)) run_program(*chosen);
  });
}
