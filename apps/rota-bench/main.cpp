// Measures rota beside the bare means that it is made of; README.md says how.

#include <rota/detail/session_state.h>
#include <rota/rota.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <optional>
#include <vector>

#include "apps/rota-bench/bench.h"
#include "apps/rota-bench/peers.h"

namespace {

int first_task() { return 1; }

// Nothing is chosen when --help was printed; a status other than 0 is to be returned at once.
struct command_line {
  int status = 0;
  int repeats = 5;
  std::vector<bench::benchmark> chosen{};
};

command_line parse(int argc, char** argv, int ranks) {
  command_line parsed;
  CLI::App app("Measures rota; each benchmark prints one line of JSON or more.", "rota-bench");
  app.add_option("--repeats", parsed.repeats, "blocks of measurements, of which the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.require_subcommand(1);
  app.fallthrough();  // options of the program after the subcommand
  CLI::App* all = app.add_subcommand("all", "all that this number of ranks allows");
  for (const bench::benchmark& one : bench::benchmarks()) app.add_subcommand(one.name, one.what);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool help = error.get_exit_code() == 0;
    if (help) std::fputs(app.help().c_str(), stdout);
    if (!help) std::fprintf(stderr, "rota-bench: %s (--help lists the benchmarks)\n", error.what());
    parsed.status = help ? 0 : 2;
    return parsed;
  }
  for (const bench::benchmark& one : bench::benchmarks()) {
    const bool named = app.got_subcommand(one.name);
    if (!named && !all->parsed()) continue;
    const bool nodes_fit = (one.nodes > 1) == (bench::node_count() > 1);
    if (!nodes_fit && named) {
      std::fprintf(stderr, "rota-bench: %s runs on %s\n", one.name, one.nodes > 1 ? "several nodes" : "one node");
      parsed.status = 2;
    }
    if (!nodes_fit) continue;
    if (one.most_store > 0 && rota::detail::store_bytes() > one.most_store) {
      std::fprintf(stderr, "rota-bench: %s needs a store of %zu MiB at most: rota-bench %s --rota-store=256M\n",
                   one.name, one.most_store >> 20, one.name);
      if (named) parsed.status = 2;
      continue;
    }
    if (ranks >= one.ranks) {
      parsed.chosen.push_back(one);
    } else {
      std::fprintf(stderr, "rota-bench: %s needs %d ranks: mpirun -n %d rota-bench %s\n", one.name, one.ranks,
                   one.ranks, one.name);
      if (named) parsed.status = 2;
    }
  }
  return parsed;
}

int run(int argc, char** argv) {
  bench::context context;
  context.mpi_init_seconds = bench::open_peers(argc, argv);
  context.ranks = bench::rank_count();
  std::optional<rota::session> session;
  context.startup_seconds = bench::seconds_of([&] {
    session.emplace(rota::init(argc, argv));  // ranks other than 0 serve in here
    rota::remote<first_task>().get();
  });
  const command_line parsed = parse(argc, argv, context.ranks);
  if (parsed.status != 0) return parsed.status;
  context.repeats = parsed.repeats;
  for (const bench::benchmark& one : parsed.chosen) one.run(context);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const rota::config_error& error) {
    std::fprintf(stderr, "rota-bench: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    bench::show_progress("");
    std::fprintf(stderr, "rota-bench: %s\n", error.what());
    return 1;
  }
}
