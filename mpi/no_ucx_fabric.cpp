#include <rota/error.h>

#include "mpi/fabric.h"

namespace rota::mpi {

std::unique_ptr<fabric> open_ucx(const fabric_options&) {
  throw config_error("this build of rota has no UCX (ROTA_WITH_UCX=OFF)");
}
bool has_ucx() { return false; }
std::string ucx_version() { return {}; }

}  // namespace rota::mpi
