#include "runtime/client/spill_folder.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

namespace rota::detail {
namespace {

bool is_folder(const char* path) {
  struct stat about {};
  return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

bool in_memory(const char* path) {
  struct statfs about {};
  return statfs(path, &about) == 0 && about.f_type == TMPFS_MAGIC;
}

}  // namespace

std::string choose_spill_folder(const std::optional<std::string>& slurm_tmpdir, const char* tmpdir) {
  if (slurm_tmpdir && is_folder(slurm_tmpdir->c_str())) return *slurm_tmpdir;
  if (tmpdir && is_folder(tmpdir)) return tmpdir;
  return in_memory("/tmp") && is_folder("/var/tmp") ? "/var/tmp" : "/tmp";
}

}  // namespace rota::detail
