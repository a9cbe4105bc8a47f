#pragma once

#include <rota/config.h>

#include <utility>

namespace rota {

// The life of the runtime in rank 0's program. Move-only. The destructor lets running tasks finish (at most
// config::shutdown_timeout, then it names what it waited for), drops queued ones, ends every rank and leaves MPI. Calls
// that need the runtime throw config_error afterwards; refs may live on, views of arrays end with the session.
class session {
 public:
  session(session&& other) noexcept : open_(std::exchange(other.open_, false)) {}
  session& operator=(session&& other) noexcept {
    std::swap(open_, other.open_);
    return *this;
  }
  ~session();

  // For the library.
  struct opened {};
  explicit session(opened) noexcept : open_(true) {}

 private:
  bool open_;
};

// Starts the runtime. Takes its own --rota-* flags out of argv. On ranks other than 0 it serves until rank 0's session
// ends and then ends the process. Throws config_error (bad flags, a second init), join_refused (ranks whose
// executables differ), out_of_memory (no room in /dev/shm).
[[nodiscard("the session ends with this object: auto session = rota::init(argc, argv)")]] session init(int& argc,
                                                                                                       char**& argv,
                                                                                                       config c = {});

}  // namespace rota
