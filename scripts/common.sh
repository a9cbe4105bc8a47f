# Sourced by the scripts: the working folder, and an environment in which Open MPI runs as root and in containers.
set -euo pipefail
script=$(realpath "$0")
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Containers forbid process_vm_readv; without this Open MPI complains on stderr at each large message of its own.
export OMPI_MCA_btl_vader_single_copy_mechanism=none

# The comment block at the head of the script, as its help text.
usage() { awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$script"; }

die() {
  echo "${0##*/}: $*" >&2
  exit 1
}
