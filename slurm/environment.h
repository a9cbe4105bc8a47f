#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

namespace rota::slurm {

// What Slurm wrote into this process's environment. A field is empty where the variable is missing, empty or not a
// number of its kind: Slurm's releases differ in what they set.
struct environment {
  std::optional<std::string> job_id;           // SLURM_JOB_ID
  std::optional<std::string> step_id;          // SLURM_STEP_ID: set in what srun started, not in a batch script
  std::optional<unsigned> ntasks;              // SLURM_NTASKS: of the step under srun, else of the job
  std::optional<unsigned> procid;              // SLURM_PROCID
  std::optional<unsigned> localid;             // SLURM_LOCALID
  std::optional<unsigned> cpus_per_task;       // SLURM_CPUS_PER_TASK
  std::optional<unsigned> cpus_on_node;        // SLURM_CPUS_ON_NODE
  std::optional<unsigned> nodes;               // SLURM_NNODES, or SLURM_JOB_NUM_NODES
  std::optional<std::string> node_name;        // SLURMD_NODENAME
  std::optional<std::size_t> memory_per_node;  // bytes; from SLURM_MEM_PER_NODE, in MiB there
  std::optional<std::size_t> memory_per_cpu;   // bytes; from SLURM_MEM_PER_CPU, in MiB there

  // Bytes that the job may use on this node, where Slurm says so.
  std::optional<std::size_t> memory_on_node() const;

  // True in a task of a step that srun started, where the rank's number must be procid. A process that mpirun started
  // inside a batch script is none, though ntasks and procid are those of the script.
  bool started_by_srun() const { return job_id && step_id && procid && ntasks; }
};

// Value of an environment variable; nullptr where it is not set.
using lookup = std::function<const char*(const char*)>;

environment read_environment(const lookup& value_of);

// The same from the environment of this process.
environment read_environment();

}  // namespace rota::slurm
