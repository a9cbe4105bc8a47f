// Tells how the ranks that were started with it find themselves placed and connected; README.md says what.

#include <rota/rota.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>

#include "apps/rota-info/facts.h"
#include "apps/rota-info/text.h"

int main(int argc, char** argv) {
  constexpr int failed = 1, bad_use = 2;
  try {
    const auto session = rota::init(argc, argv);  // takes the --rota- flags; ranks other than 0 serve in here
    bool json = false;
    CLI::App app("Shows ranks, slots, memory, links and settings of rota as it was started.", "rota-info");
    app.add_flag("--json", json, "one JSON object instead of text");
    app.footer("--rota-help lists the settings.");
    try {
      app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
      std::fputs(app.help().c_str(), stdout);
      return 0;
    } catch (const CLI::ParseError& error) {
      std::fprintf(stderr, "rota-info: %s (--help lists the options)\n", error.what());
      return bad_use;
    }
    const nlohmann::ordered_json facts = info::gather_facts();
    std::fputs((json ? facts.dump(2) + "\n" : info::to_text(facts)).c_str(), stdout);
    return 0;
  } catch (const rota::config_error& error) {
    std::fprintf(stderr, "rota-info: %s\n", error.what());
    return bad_use;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rota-info: %s\n", error.what());
    return failed;
  }
}
