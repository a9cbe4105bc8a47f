#include "slurm/environment.h"

#include <charconv>
#include <cstdlib>
#include <limits>
#include <string_view>

namespace rota::slurm {
namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;

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

environment read_environment(const lookup& value_of) {
  environment out;
  out.job_id = text(value_of, "SLURM_JOB_ID");
  out.step_id = text(value_of, "SLURM_STEP_ID");
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
  return out;
}

environment read_environment() {
  return read_environment([](const char* name) -> const char* { return std::getenv(name); });
}

}  // namespace rota::slurm
