#include "runtime/worker/stack_thread.h"

#include <rota/error.h>

#include <cstring>

namespace rota::detail {

void stack_thread::start(std::size_t stack_bytes, std::function<void()> run) {
  run_ = std::move(run);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  auto enter = [](void* self) -> void* {
    static_cast<stack_thread*>(self)->run_();
    return nullptr;
  };
  int rc = pthread_create(&thread_, &attributes, enter, this);
  pthread_attr_destroy(&attributes);
  if (rc != 0) throw error(std::string("no thread could be started (") + std::strerror(rc) + "): raise ulimit -u");
}

void stack_thread::join() { pthread_join(thread_, nullptr); }

}  // namespace rota::detail
