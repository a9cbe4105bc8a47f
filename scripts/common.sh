# shellcheck shell=bash
# Sourced by the scripts: their help, messages and builds, and an environment in which Open MPI runs as root and in
# containers. Changes neither the working folder nor the options of the shell.
script=$(realpath "$0")

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Containers forbid process_vm_readv; without this Open MPI complains on stderr at each large message of its own.
export OMPI_MCA_btl_vader_single_copy_mechanism=none

# The comment block at the head of the script, as its help text.
usage() { awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$script"; }

die() {
  echo "${0##*/}: $*" >&2
  exit 1
}

# Errors end the script from here on, and the working folder is the root of the tree.
enter_tree() {
  set -euo pipefail
  cd "$(dirname "${BASH_SOURCE[0]}")/.."
}

# build PRESET TARGET...
build() { cmake --preset "$1" && cmake --build --preset "$1" --parallel "$(nproc)" --target "${@:2}"; }

# build_quietly PRESET TARGET...: shows the output only if the build fails, which ends the script.
build_quietly() {
  local log
  log=build/logs/$(basename "$script")-build.log
  mkdir -p build/logs
  echo "building (a few minutes the first time; output in $log)" >&2
  build "$@" >"$log" 2>&1 </dev/null && return
  tail -n 100 "$log" >&2
  die "the build failed"
}
