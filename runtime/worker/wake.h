#pragma once

#include <cstdint>

#include "runtime/base/types.h"

namespace rota::detail {

// Which receivers are woken for what they are sent, if they sleep: those of messages that somebody acts on; also those
// that hear of a result that nobody has got yet; or all, also for what is only kept in books.
enum class wake : std::uint8_t { all, wanted, urgent };
wake need_of(bytes_view record);

}  // namespace rota::detail
