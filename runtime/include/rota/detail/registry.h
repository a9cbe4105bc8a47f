#pragma once

#include <cstdint>

namespace rota::detail {

// The arguments of one call and the place for its result, as the executor hands them to a trampoline.
class call_frame;

// Reads the arguments from the frame, calls the user's function, writes the result.
using trampoline = void (*)(call_frame&);

inline constexpr std::uint32_t unregistered_function = 0xffff'ffff;

// One function that can be called remotely: a static object for each remote<f>, constructed before main, which enters
// itself in a list of the process. It must live as long as the process does. Construction is safe on any thread and in
// any order among static initialisers.
struct registration {
  registration(trampoline code, const char* pretty_name) noexcept;
  registration(const registration&) = delete;
  registration& operator=(const registration&) = delete;

  trampoline run;
  const char* name;                             // for messages only: two functions may have the same
  std::uint32_t index = unregistered_function;  // the function's id, equal on all ranks; set by rota::init
  registration* next = nullptr;
};

[[noreturn]] void throw_unregistered(const registration& function);

// The id to send. Throws config_error before rota::init, and for a function of a library that was loaded after it.
inline std::uint32_t index_of(const registration& function) {
  if (function.index == unregistered_function) throw_unregistered(function);
  return function.index;
}

}  // namespace rota::detail
