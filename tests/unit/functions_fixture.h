#pragma once

#include <rota/detail/registry.h>

#include <vector>

namespace functions_test {

// What remote<f> does for its function: a trampoline of its own and a registration before main.
template <auto Function>
struct registered {
  static void run(rota::detail::call_frame&) { static_cast<void>(Function(1)); }
  static const char* pretty_name() { return __PRETTY_FUNCTION__; }
  static inline rota::detail::registration entry{&run, pretty_name()};
};

// Functions that functions_other.cpp (part of the test) and functions_shared.cpp (a library) register.
std::vector<const rota::detail::registration*> functions_of_other_file();
std::vector<const rota::detail::registration*> functions_of_shared_library();

}  // namespace functions_test
