#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>

namespace rota {

// What a session can be told. Each field has a flag (--rota-cpus=4) and an environment variable (ROTA_CPUS=4); flag
// beats environment beats this struct beats the default. docs/configuration.md lists them.
struct config {
  double cpus = 0;         // slots that each rank offers; 0: the cores that it may run on
  int head_slots = -1;     // slots of rank 0; -1: none under a launcher, as `cpus` when it is alone
  std::size_t memory = 0;  // bytes that each rank offers to options::memory; 0: its share of what the job may use
  std::size_t store = 0;   // bytes of each node's object store; 0: chosen, a third of the node's memory, at most
                           // half of what the job may still use of it and half of what /dev/shm has free
  // What does not fit in the store goes to files in this folder of the node, which have no name there. Empty: chosen,
  // $SLURM_TMPDIR, $TMPDIR or /tmp (/var/tmp where /tmp lies in memory).
  std::string spill_dir{};
  static constexpr std::size_t half_of_disk = static_cast<std::size_t>(-1);  // of what is free there at first
  std::size_t spill_quota = half_of_disk;  // bytes that the ranks of a node spill at most; 0: nothing is spilled
  // How long a writer waits for room in a store from which nothing leaves, until it gets out_of_memory.
  std::chrono::nanoseconds store_patience = std::chrono::seconds(10);
  std::size_t inline_bytes = 4096;  // arguments and results up to this size ride in messages
  std::chrono::nanoseconds shutdown_timeout = std::chrono::seconds(30);
  // A rank of another node that has said nothing for so long is suspected, then taken for lost.
  std::chrono::nanoseconds suspect_after = std::chrono::seconds(5);
  std::chrono::nanoseconds lost_after = std::chrono::seconds(15);
  std::map<std::string, double> resources{};  // custom resources that each rank offers
  std::string fabric = "auto";  // how ranks of other nodes are reached: auto, shared (not at all), rma, ucx
  std::string log = "warn";     // trace, debug, info, warn, error, off
};

}  // namespace rota
