// Tells how the ranks that were started with it find themselves placed and connected; README.md says what.

#include <rota/rota.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "apps/common/program.h"
#include "apps/rota-info/facts.h"
#include "apps/rota-info/text.h"

int main(int argc, char** argv) {
  return common::run("rota-info", [&] {
    const auto session = rota::init(argc, argv);  // takes the --rota- flags; ranks other than 0 serve in here
    bool json = false;
    CLI::App app("Shows ranks, slots, memory, links and settings of rota as it was started.", "rota-info");
    app.add_flag("--json", json, "one JSON object instead of text");
    app.footer("--rota-help lists the settings.");
    if (!common::parse(app, argc, argv)) return;
    const nlohmann::ordered_json facts = info::gather_facts();
    std::fputs((json ? facts.dump(2) + "\n" : info::to_text(facts)).c_str(), stdout);
  });
}
