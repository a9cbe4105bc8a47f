#pragma once

#include <functional>
#include <stdexcept>

namespace CLI {
class App;
}

namespace common {

// What the user gave cannot be used: a file, a flag. what() is one line that names it and the cause.
class input_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Reads a command line into the variables of the options of `app`. False: it asked for --help, which was printed.
// Throws input_error.
bool parse(CLI::App& app, int argc, char** argv);

// Returns the exit status of a program whose main() is `work`: 0, 2 for an input_error or rota::config_error, 1 for any
// other exception. What was thrown is one line on stderr, after the program's name.
int run(const char* name, const std::function<void()>& work);

}  // namespace common
