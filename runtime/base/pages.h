#pragma once

#include <cstddef>

namespace rota::base {

// Makes every page that [start, start + size) touches present and writable, keeping what is in them, so that no later
// store into it can die with SIGBUS. False where the system has no room for them (a full /dev/shm, the end of the
// file, a broken page): some pages may then be present; release() them before the range is given away.
// Pages land on the NUMA node of the calling thread. Nobody else may write to the range during the call.
bool populate(std::byte* start, std::size_t size) noexcept;

// What populate() does on kernels without MADV_POPULATE_WRITE (Linux before 5.14). Same contract; needs two file
// descriptors for the time of the call, and is false without them.
bool populate_by_touching(std::byte* start, std::size_t size) noexcept;

// Gives the memory of all pages wholly inside [start, start + size) back to the system: they read as zero afterwards,
// for every process that maps them. The partial pages at the ends stay. For shared windows and for private memory.
void release(std::byte* start, std::size_t size) noexcept;

}  // namespace rota::base
