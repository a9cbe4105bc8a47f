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
  std::optional<unsigned> step_id;             // SLURM_STEP_ID, or SLURM_STEPID
  std::optional<unsigned> step_tasks;          // SLURM_STEP_NUM_TASKS
  std::optional<unsigned> ntasks;              // SLURM_NTASKS: of the step under srun, else of the job
  std::optional<unsigned> procid;              // SLURM_PROCID
  std::optional<unsigned> localid;             // SLURM_LOCALID
  std::optional<unsigned> cpus_per_task;       // SLURM_CPUS_PER_TASK
  std::optional<unsigned> cpus_on_node;        // SLURM_CPUS_ON_NODE
  std::optional<unsigned> nodes;               // SLURM_NNODES, or SLURM_JOB_NUM_NODES
  std::optional<std::string> node_name;        // SLURMD_NODENAME
  std::optional<std::size_t> memory_per_node;  // bytes; from SLURM_MEM_PER_NODE, in MiB there
  std::optional<std::size_t> memory_per_cpu;   // bytes; from SLURM_MEM_PER_CPU, in MiB there
  std::optional<std::string> tmpdir;           // SLURM_TMPDIR, which sites set in a prolog

  // Bytes that the job may use on this node, where Slurm says so.
  std::optional<std::size_t> memory_on_node() const;

  // Tasks of the step whose srun started this process; 0 when none did. A program started from the shell of an sbatch
  // script or of salloc is not in such a step, whatever ntasks says. What mpirun starts inside a step inherits its
  // variables: whoever asks knows whether there is an mpirun.
  unsigned tasks_of_step() const;
};

// What to tell a user whose step of several tasks MPI takes for as many worlds of one; empty where this process is the
// only task, or in no step.
std::string advice_when_alone(const environment& e);

// What to tell, before MPI starts, a user whose srun speaks an older PMI than MPI may; empty but for the first task of
// a step, for one word is enough.
std::string advice_with_old_pmi(const environment& e);

// Value of an environment variable; nullptr where it is not set.
using lookup = std::function<const char*(const char*)>;

environment read_environment(const lookup& value_of);

// The same from the environment of this process.
environment read_environment();

}  // namespace rota::slurm
