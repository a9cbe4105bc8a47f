#include "mpi/rma_settings.h"

#include <array>
#include <cstdlib>
#include <string_view>

namespace rota::mpi {
namespace {

struct variable {
  const char* name;
  const char* value;
};
// sm is for the windows of a node: osc/ucx has none that are shared memory.
constexpr std::array variables = {variable{"OMPI_MCA_osc", "sm,ucx"}, variable{"OMPI_MCA_pml", "ucx"},
                                  variable{"OMPI_MCA_opal_common_ucx_tls", "any"},
                                  variable{"OMPI_MCA_opal_common_ucx_devices", "any"}};

// As Open MPI reads a list of components: those that are named, or all but those.
bool selects(std::string_view list, std::string_view component) {
  const bool all_but = list.starts_with('^');
  if (all_but) list.remove_prefix(1);
  while (!list.empty()) {
    const auto comma = list.find(',');
    if (list.substr(0, comma) == component) return !all_but;
    list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
  }
  return all_but;
}

long number(const char* text) { return text == nullptr ? 0 : std::strtol(text, nullptr, 10); }

}  // namespace

void prepare_rma() {
  for (const variable& v : variables) setenv(v.name, v.value, 0);
}

std::string rma_obstacle(const variable_lookup& lookup) {
  const char* osc = lookup("OMPI_MCA_osc");
  if (osc == nullptr || *osc == '\0') return {};
  if (!selects(osc, "sm")) {
    return std::string("OMPI_MCA_osc=") + osc + " leaves out `sm`, without which Open MPI gives the ranks of a node " +
           "no shared window: add it (OMPI_MCA_osc=sm,ucx), or leave the variable to rota";
  }
  if (osc == std::string_view("sm")) {
    return "OMPI_MCA_osc=sm leaves nothing that reaches other nodes: say OMPI_MCA_osc=sm,ucx, or leave the variable to "
           "rota";
  }
  return {};
}

std::string rma_settings(const variable_lookup& lookup) {
  std::string text;
  for (const variable& v : variables) {
    const char* value = lookup(v.name);
    text += (text.empty() ? "" : ", ") +
            (value == nullptr ? "no " + std::string(v.name) : v.name + ("=" + std::string(value)));
  }
  return text;
}

bool launched_on_nodes(const variable_lookup& lookup, unsigned nodes_of_step) {
  if (const char* all = lookup("OMPI_COMM_WORLD_SIZE")) {
    return number(lookup("OMPI_COMM_WORLD_LOCAL_SIZE")) < number(all);  // mpirun
  }
  return nodes_of_step > 1;
}

}  // namespace rota::mpi
