#include "apps/common/program.h"

#include <rota/error.h>

#include <CLI/CLI.hpp>
#include <cstdio>

namespace common {

bool parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return true;
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return false;
  } catch (const CLI::ParseError& error) {
    throw input_error(std::string(error.what()) + " (--help lists the options)");
  }
}

int run(const char* name, const std::function<void()>& work) {
  constexpr int failed = 1, bad_input = 2;
  try {
    work();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    const bool input = dynamic_cast<const input_error*>(&error) || dynamic_cast<const rota::config_error*>(&error);
    return input ? bad_input : failed;
  }
}

}  // namespace common
