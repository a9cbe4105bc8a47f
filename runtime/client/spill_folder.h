#pragma once

#include <optional>
#include <string>

namespace rota::detail {

// Where this rank spills when nobody has said: Slurm's folder for the job, $TMPDIR, /tmp, the first that is there;
// /var/tmp instead of a /tmp that lies in memory.
std::string choose_spill_folder(const std::optional<std::string>& slurm_tmpdir, const char* tmpdir);

}  // namespace rota::detail
