#include "slurm/environment.h"

#include <charconv>
#include <cstdlib>
#include <limits>
#include <string_view>

namespace rota::slurm {
namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;

// The batch, extern, interactive and pending steps that Slurm makes by itself (slurm.h: SLURM_BATCH_SCRIPT and
// neighbours) have numbers from here on; only real steps come from a user's srun.
constexpr unsigned first_special_step = 0xffff'fff0;

constexpr const char* cure =
    "srun and MPI do not speak the same PMI. Start it with `srun --mpi=pmix` (`srun --mpi=list` shows what this Slurm "
    "has), or with mpirun inside the allocation";

std::optional<std::string> text(const lookup& value_of, const char* name) {
  const char* value = value_of(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

template <class Number>
std::optional<Number> number(const lookup& value_of, const char* name) {
  const std::optional<std::string> value = text(value_of, name);
  if (!value) return std::nullopt;
  Number out = 0;
  const char* end = value->data() + value->size();
  const auto [stop, error] = std::from_chars(value->data(), end, out);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return out;
}

std::optional<std::size_t> mebibytes(const lookup& value_of, const char* name) {
  const auto count = number<std::size_t>(value_of, name);
  if (!count || *count > std::numeric_limits<std::size_t>::max() / mebibyte) return std::nullopt;
  return *count * mebibyte;
}

}  // namespace

std::optional<std::size_t> environment::memory_on_node() const {
  if (memory_per_node.value_or(0) > 0) return memory_per_node;  // 0 is all that the node has
  if (memory_per_cpu.value_or(0) == 0 || cpus_on_node.value_or(0) == 0) return std::nullopt;
  if (*memory_per_cpu > std::numeric_limits<std::size_t>::max() / *cpus_on_node) return std::nullopt;
  return *memory_per_cpu * *cpus_on_node;
}

unsigned environment::tasks_of_step() const {
  // Batch scripts have a SLURM_PROCID but no step; a salloc shell has neither, or the special interactive step.
  if (!step_id || *step_id >= first_special_step || !procid) return 0;
  return step_tasks ? *step_tasks : ntasks.value_or(1);
}

std::string advice_when_alone(const environment& e) {
  if (e.tasks_of_step() <= 1) return {};
  return "Slurm started " + std::to_string(e.tasks_of_step()) + " tasks (this is task " + std::to_string(*e.procid) +
         "), but MPI sees a world of one rank: " + cure;
}

std::string advice_with_old_pmi(const environment& e) {
  if (e.tasks_of_step() == 0 || *e.procid != 0) return {};
  return std::string("srun speaks a PMI older than PMIx to this program, which few builds of Open MPI do. ") +
         "If MPI ends it now: " + cure;
}

environment read_environment(const lookup& value_of) {
  environment out;
  out.job_id = text(value_of, "SLURM_JOB_ID");
  out.step_id = number<unsigned>(value_of, "SLURM_STEP_ID");
  if (!out.step_id) out.step_id = number<unsigned>(value_of, "SLURM_STEPID");
  out.step_tasks = number<unsigned>(value_of, "SLURM_STEP_NUM_TASKS");
  out.ntasks = number<unsigned>(value_of, "SLURM_NTASKS");
  out.procid = number<unsigned>(value_of, "SLURM_PROCID");
  out.localid = number<unsigned>(value_of, "SLURM_LOCALID");
  out.cpus_per_task = number<unsigned>(value_of, "SLURM_CPUS_PER_TASK");
  out.cpus_on_node = number<unsigned>(value_of, "SLURM_CPUS_ON_NODE");
  out.nodes = number<unsigned>(value_of, "SLURM_NNODES");
  if (!out.nodes) out.nodes = number<unsigned>(value_of, "SLURM_JOB_NUM_NODES");
  out.node_name = text(value_of, "SLURMD_NODENAME");
  out.memory_per_node = mebibytes(value_of, "SLURM_MEM_PER_NODE");
  out.memory_per_cpu = mebibytes(value_of, "SLURM_MEM_PER_CPU");
  out.tmpdir = text(value_of, "SLURM_TMPDIR");
  return out;
}

environment read_environment() {
  return read_environment([](const char* name) -> const char* { return std::getenv(name); });
}

}  // namespace rota::slurm
