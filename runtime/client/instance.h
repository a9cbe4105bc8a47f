#pragma once

#include "runtime/worker/process.h"

namespace rota::detail {

// The rank that this process is, or nullptr before rota::init. Once set it stays until the process ends.
process* instance() noexcept;
// The same; throws config_error before init.
process& running_instance();
void set_instance(process* p) noexcept;

}  // namespace rota::detail
