#!/usr/bin/env bash
# faults_test.sh FAULTS_PROGRAM: what a running program sees of nodes and networks that fail.
source "$(dirname "$0")/cluster_help.sh"
program=$1
soon="--rota-suspect-after=0.5 --rota-lost-after=2"

# begin OPTIONS WAY SETTINGS...: a job of the program, whose head is on n1 and whose last rank on n3.
begin() {
  submit "srun --mpi=pmix '$program' $2 '$notes' ${*:3}; echo status \$?" --nodes=3 "$1"
  await "$notes/reads"
}
await_line() {
  for ((i = 0; i < 1000 * factor; ++i)); do
    grep -qE "$2" "$work/$1" && return
    sleep 0.01
  done
  expect_line "$@"
}
# expect_lost: the program on n1 gets rank_lost for the rank on n3, soon after this call.
expect_lost() {
  local start=$EPOCHREALTIME
  await "$notes/lost" || show
  took=$(((${EPOCHREALTIME/./} - ${start/./}) / 1000))
  expect_within 6
  await_line out "^and again$" # which srun brings
  expect_line out "^rank_lost: rank $1 \(n3, pid [0-9]+\) is lost to rank 0 \(n1\): "
  await_line err "rota: error: rank $1 \(n3, pid [0-9]+\) is lost"
  expect_count err 1 "rota: error: rank $1 \(n3, pid [0-9]+\) is lost"
  expect_count out 0 "wrong bytes"
  on ctl scancel "$job" || true
  await_job GONE
}
# pause NAME MISSED SETTINGS...: the last rank stops and goes on, and all tasks come back. MISSED 1: it stops until rank 0
# says that it misses it. 0: for 3 s, in which nobody must.
pause() {
  local missed="rota: warning: rank 5 has said nothing to rank 0 \(n1\)"
  local back="rota: warning: rank 5 is heard again by rank 0 \(n1\)"
  fresh "$1"
  begin --ntasks-per-node=2 tasks "${*:3}"
  last_rank -STOP
  if [[ $2 == 1 ]]; then await_line err "$missed"; else sleep 3; fi # what must not happen cannot be waited for
  last_rank -CONT
  [[ $2 == 0 ]] || await_line err "$back"
  touch "$notes/enough" # the round that waits for the rank ends all the same
  await_job COMPLETED
  expect_line out "^status 0$"
  expect_count err "$2" "$missed"
  expect_count err "$2" "$back"
  [[ $2 == 1 ]] || expect_empty err
}
last_rank() { on n3 kill "$1" "$(<"$notes/pid")"; }

# cable link|cut WAY SETTINGS..., crash WAY SETTINGS...: n3 is lost while values come from there.
cable() {
  begin --ntasks-per-node=1 "$2" "$soon" "${@:3}"
  if [[ $1 == link ]]; then "$cluster" link n3 down; else "$cluster" cut n3; fi
  expect_lost 2
  if [[ $1 == link ]]; then "$cluster" link n3 up; else "$cluster" join n3; fi
  "$cluster" wait || say "n3 did not come back"
  expect_nodes_clean
}
crash() {
  begin --ntasks-per-node=1 "$1" "$soon" "${@:2}"
  "$cluster" crash n3
  expect_lost 2
  on ctl scontrol update NodeName=n3 State=DOWN Reason=crashed
  "$cluster" start n3
  "$cluster" wait || say "n3 did not come back"
  expect_nodes_clean
}
small="--rota-store=64M --rota-spill-quota=1G"

for way in link cut; do
  fresh "a large value is on its way when the cable is pulled ($way)"
  cable $way transfer
  [[ $way == link ]] && fabric=ucx || fabric=rma
  fresh "spilled values come from a node when its cable is pulled ($way), over $fabric"
  cable $way spilled "$small" --rota-fabric=$fabric
done

fresh "a node crashes while a large value is on its way"
crash transfer
for fabric in ucx rma; do
  fresh "a node crashes while spilled values come from there, over $fabric"
  crash spilled "$small" --rota-fabric=$fabric
done

pause "a rank stops for 3 s and goes on" 0
pause "a rank stops until it is missed and goes on" 1 --rota-suspect-after=1 --rota-lost-after=20

fresh "a rank of another node is killed"
begin --ntasks-per-node=2 tasks
last_rank -KILL
start=$EPOCHREALTIME
await_job GONE
took=$(((${EPOCHREALTIME/./} - ${start/./}) / 1000))
expect_within 15
expect_count out 0 "^status 0$"
expect_nodes_clean

fresh "a session ends for longer than a rank may be silent"
run_on ctl srun -N3 --mpi=pmix "$program" late_end "$notes" --rota-suspect-after=0.5 --rota-lost-after=1
expect_status 0
expect_empty err
[[ $took -gt 3000 ]] || say "it did not wait for the actor: $took ms"
expect_nodes_clean

fresh "a slow reader"
run_on ctl srun -N3 --mpi=pmix "$program" slow_reader "$notes"
expect_status 0
used=$(sed -n 's/^right, \([0-9]*\) MiB$/\1/p' "$work/out")
[[ -n $used && $used -lt 100 ]] || say "the writer needed $used MiB for calls of 400 MB that nobody took"
expect_nodes_clean
verdict
