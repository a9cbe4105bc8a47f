#pragma once

#include <cstddef>
#include <string>

// What tests and benchmarks ask of a running session. Not for programs.
namespace rota::detail {

// What is still held although the program holds nothing: empty if nothing leaked. Waits up to 5 s for drops on their
// way. Rank 0 only.
std::string leak_report();

// Values in this rank's part of the store.
std::size_t stored_values();

// Bytes of values that the ranks of this node have on disk.
std::size_t spilled_bytes();

// Of this rank's node: the size of its store, and the folder to which it spills.
std::size_t store_bytes();
std::string spill_folder();

// Threads of this process that the runtime made.
std::size_t runtime_threads();

}  // namespace rota::detail
