#!/usr/bin/env bash
# info_test.sh ROTA_INFO: what rota-info tells, on one node. ROTA_LAUNCH: scripts/launch.
source "$(dirname "$0")/script_help.sh"
info=$1
cores=$(nproc)

for ranks in 0 1 2 4; do
  fresh "text, $ranks ranks"
  run $ranks "$info"
  expect_status 0
  expect_empty err
  expect_count out 1 "^rota [0-9]+\.[0-9]+\.[0-9]+ \(.*MPI.*UCX"
  expect_count out 1 "^$((ranks > 0 ? ranks : 1)) ranks, 1 nodes, [0-9]+ slots, fabric shared \\(one node\\)\$"
  expect_count out 1 "^  store +[0-9]+ MiB: "
  expect_count out 1 "^  --rota-lost-after +15s +default\$"
  expect_nothing_left
done
expect_count out 1 "^  shared +6 "
expect_count out 1 "^  rank 0 +0 slots: "
expect_count out 1 "^  ranks 1-3 +$cores slots?: "

fresh "JSON"
run 3 "$info" --json
expect_status 0
expect_count out 1 '^{$'
expect_count out 1 '^}$'
expect_count out 1 '^  "ranks": 3,$'
expect_count out 1 '"shared": 3,$'
if command -v python3 >/dev/null; then
  python3 -c 'import json, sys; f = json.load(sys.stdin); assert len(f["nodes"][0]["ranks"]) == 3' <"$work/out" ||
    say "no JSON"
fi
expect_nothing_left

fresh "settings, and who set them"
ROTA_LOST_AFTER=20s UCX_LOG_LEVEL=error run 2 "$info" --rota-store=20M
expect_status 0
expect_count out 1 "^  --rota-store +20M +flag\$"
expect_count out 1 "^  --rota-lost-after +20s +ROTA_LOST_AFTER\$"
expect_count out 1 "^  store +20 MiB: --rota-store\$"
expect_count out 1 "^  UCX_LOG_LEVEL=error\$"
expect_nothing_left
fresh "settings that differ"
# shellcheck disable=SC2016 # expanded by the ranks
run 3 sh -c 'ROTA_CPUS=$((OMPI_COMM_WORLD_RANK + 1)) exec "$0"' "$info"
expect_status 0
expect_count out 1 "^    rank 2: 3 ROTA_CPUS\$"
expect_nothing_left

fresh "bad use"
run 2 "$info" --jason
expect_status 2
expect_count err 1 "rota-info: .*--jason.*--help"
run 0 "$info" --help
expect_status 0
expect_line out "--json"
expect_nothing_left

# in_group CONTROLLER FILE VALUE...: runs rota-info alone in a control group of its own with these values. False, after a
# word, where there may be none.
in_group() {
  local controller=$1 folder path group
  shift
  path=$(awk -F: -v c="$controller" '("," $2 ",") ~ ("," c ",") { print $3 }' /proc/self/cgroup)
  folder=/sys/fs/cgroup/$controller
  if [[ -z $path ]]; then # version 2
    folder=/sys/fs/cgroup
    path=$(awk -F: '$1 == 0 { print $3 }' /proc/self/cgroup)
  fi
  [[ -d $folder$path ]] || path=""
  group=$folder$path/rota-test.$$
  if ! mkdir "$group" 2>/dev/null; then
    skip "$case" "no control group can be made here"
    return 1
  fi
  while [[ $# -gt 1 ]]; do
    if ! [[ -e $group/$1 ]] || ! echo "$2" >"$group/$1" 2>/dev/null; then
      rmdir "$group"
      skip "$case" "the control group takes no $1"
      return 1
    fi
    shift 2
  done
  # shellcheck disable=SC2016 # expanded by the inner shell
  run 0 sh -c 'echo $$ >"$0/cgroup.procs" && exec "$1"' "$group" "$info"
  rmdir "$group" || say "the group stays"
}
version1() { grep -q ":$1:" /proc/self/cgroup; }

fresh "memory of a control group"
limit=memory.max
! version1 memory || limit=memory.limit_in_bytes
if in_group memory "$limit" 268435456; then
  expect_status 0
  expect_count out 1 "^  memory +256 MiB: the control group's memory; usable [0-9]+ MiB"
  expect_count out 1 "^  store +[0-9]+ MiB: half of the memory that the control group has left"
  usable=$(sed -nE "s/.*usable ([0-9]+) MiB.*/\\1/p" "$work/out")
  store=$(sed -nE "s/^  store +([0-9]+) MiB.*/\\1/p" "$work/out")
  # What the process itself uses by now comes off; more under a sanitizer.
  [[ $usable -gt 128 && $usable -lt 256 && $store -le $((usable / 2)) && $store -gt $((usable / 2 - 8)) ]] ||
    say "a store of $store MiB where $usable MiB are usable"
fi
fresh "CPU time of a control group"
quota=(cpu.max "50000 100000")
! version1 cpu || quota=(cpu.cfs_quota_us 50000)
if in_group cpu "${quota[@]}"; then
  expect_status 0
  expect_count out 1 "^  rank 0 +1 slot: $([[ $cores -gt 1 ]] && echo "the CPU time of the control group" || echo .*)"
  expect_count out 1 "^  CPU time +of 0.5 CPUs"
fi
verdict
