# shellcheck shell=bash
# Sourced by the test scripts here, which `cluster run` starts beside a cluster: tests/ranks/script_help.sh, with words
# for the nodes. $work and TMPDIR are folders that all nodes see.
source "$(dirname "$0")/../ranks/script_help.sh"
cluster=$(dirname "$(realpath "$0")")/cluster

# on NODE COMMAND...
on() { "$cluster" exec "$@"; }
# run_on NODE COMMAND...: as `run`, which sets $status and $took, in a node.
run_on() { run 0 "$cluster" exec "$@"; }

# submit SCRIPT OPTIONS...: a batch job of the text SCRIPT; sets $job. What it prints goes to $work/out and err.
submit() {
  : >"$work/out"
  : >"$work/err"
  printf '#!/bin/bash\n%s\n' "$1" >"$work/job"
  job=$(env "$mark" "$cluster" exec ctl sbatch --parsable --output="$work/out" --error="$work/err" "${@:2}" "$work/job")
}
# job_is STATE: the name that squeue gives to the state of $job; GONE where it is past all of them.
job_is() {
  local state
  state=$(on ctl squeue --noheader --states=all --jobs="$job" --format=%T)
  case $state in
    COMPLETED | CANCELLED | FAILED | TIMEOUT | NODE_FAIL) [[ $1 == "$state" || $1 == GONE ]] ;;
    *) [[ $1 == "$state" ]] ;;
  esac
}
# await_job STATE: at most 30 s.
await_job() {
  for ((i = 0; i < 300 * factor; ++i)); do
    job_is "$1" && return
    sleep 0.1
  done
  say "job $job is not $1: $(on ctl scontrol --oneliner show job "$job")"
}

expect_nodes_clean() {
  local node left
  expect_nothing_left
  for node in "$ROTA_CLUSTER"/n[0-9]*; do
    left=$(on "${node##*/}" ls -A /dev/shm)
    [[ -z $left ]] || say "left in /dev/shm of ${node##*/}: $left"
  done
}
