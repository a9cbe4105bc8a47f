#!/usr/bin/env bash
# start_test.sh SESSION_PROGRAM OTHER_PROGRAM GUEST_PROGRAM: starts that must fail, and with which words; warnings and
# help. ROTA_LAUNCH: scripts/launch, called as `launch RANKS PROGRAM...`.
source "$(dirname "$0")/script_help.sh"
program=$1 other=$2 guest=$3

for ranks in 0 1 3; do
  fresh "unknown flag, $ranks ranks"
  run $ranks "$program" --rota-cpu=3
  expect_status 2
  expect_empty out
  expect_count err 1 "config_error: .*--rota-cpu;.*did you mean --rota-cpus.*--rota-store"
  expect_nothing_left

  fresh "bad value, $ranks ranks"
  ROTA_STORE=much run $ranks "$program"
  expect_status 2
  expect_count err 1 "config_error: ROTA_STORE.*much"
  expect_nothing_left

  fresh "help, $ranks ranks"
  run $ranks "$program" --rota-help
  expect_status 0
  expect_count out 1 "--rota-store,"
  expect_empty err
  expect_nothing_left

  fresh "before init, $ranks ranks"
  run $ranks "$program" early
  expect_status 0
  expect_nothing_left

  fresh "start line, $ranks ranks"
  run $ranks "$program" --rota-log=info
  expect_status 0
  expect_empty out
  expect_count err 1 "rota: info: .*rank"
  expect_nothing_left
done

fresh "a refused rank 0 that goes on does not keep the others"
env "$mark" "$ROTA_LAUNCH" 3 "$program" refused_stays "$notes" --rota-cpu=3 >"$work/out" 2>"$work/err" &
await "$notes/refused" || true
left=3
for ((i = 0; i < 1000 * factor && left > 1; ++i)); do
  left=0
  for pid in $(ours); do [[ $(readlink "/proc/$pid/exe" || true) == "$program" ]] && ((++left)); done
  sleep 0.01
done
[[ $left == 1 ]] || say "$left ranks are there"
touch "$notes/go"
status=0
wait $! || status=$?
expect_status 2
expect_nothing_left

fresh "different executables"
# shellcheck disable=SC2016 # expanded by the ranks
run 2 sh -c 'if [ "$OMPI_COMM_WORLD_RANK" = 0 ]; then exec "$0"; else exec "$1"; fi' "$program" "$other"
expect_failure
expect_line err "join_refused: .*rank 1 .*executable"
expect_within 20
expect_nothing_left
# shellcheck disable=SC2016 # expanded by the ranks
run 3 sh -c 'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then exec "$0"; else exec "$1"; fi' "$program" "$other"
expect_failure
expect_line err "join_refused: .*rank 1 .*executable"
expect_nothing_left

fresh "Slurm starts 4 tasks and MPI sees one"
SLURM_NTASKS=4 SLURM_PROCID=0 SLURM_STEP_ID=0 SLURM_JOB_ID=1 run 0 "$program"
expect_status 2
expect_count err 1 "config_error: .*Slurm.*4 tasks.*srun --mpi=pmix"
expect_nothing_left
fresh "Slurm starts 1 task"
SLURM_NTASKS=1 SLURM_PROCID=0 SLURM_STEP_ID=0 SLURM_JOB_ID=1 run 0 "$program"
expect_status 0
expect_nothing_left
fresh "mpirun -n 1 inside a step of 4 tasks"
run 1 env SLURM_NTASKS=4 SLURM_PROCID=0 SLURM_STEP_ID=0 SLURM_JOB_ID=1 "$program"
expect_status 0
expect_nothing_left
fresh "in a batch script of 4 tasks"
SLURM_NTASKS=4 SLURM_PROCID=0 SLURM_JOB_ID=1 run 0 "$program"
expect_status 0
expect_nothing_left

fresh "ranks on the same core"
if [[ $(nproc) -gt 1 ]]; then
  run 3 taskset -c "$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')" "$program"
  expect_status 0
  expect_line err "warning: .*rank.* [012] .*[012].*same cores"
  expect_nothing_left
  run 3 "$program"
  expect_empty err # --oversubscribe means it
else
  skip "$case" "needs two cores"
fi

for ranks in 1 2 3 4; do
  fresh "guest of an MPI program, $ranks ranks"
  run $ranks "$guest"
  expect_status 0
  expect_empty err
  expect_nothing_left
done

# fresh_shm SIZE NAME: a new case with a /dev/shm of that size. False, after a word, where there is none to change.
fresh_shm() {
  if [[ $ROTA_TEST_SHM != own ]]; then
    skip "$2" "$no_shm"
    return 1
  fi
  fresh "$2"
  mount -t tmpfs -o "remount,size=$1" tmpfs /dev/shm || say "no /dev/shm of $1"
}

if fresh_shm 16m "/dev/shm smaller than the store"; then
  run 2 "$program" --rota-store=1G
  expect_status 2
  expect_count err 1 "out_of_memory: .*/dev/shm.*--rota-store"
  expect_nothing_left
fi
if fresh_shm 16m "small /dev/shm, store chosen"; then
  run 2 "$program" # works, or says why not
  [[ $status == 0 ]] || expect_count err 1 "out_of_memory: .*/dev/shm"
  expect_nothing_left
fi
if fresh_shm 64k "no /dev/shm to speak of"; then
  run 2 "$program"
  expect_failure
  expect_line err "/dev/shm"
  [[ $status -lt 130 ]] || say "status $status"
  expect_within 30
  find /dev/shm -mindepth 1 -delete
  expect_nothing_left
fi
if fresh_shm 256m "someone else fills /dev/shm later"; then
  env "$mark" "$ROTA_LAUNCH" 2 "$program" --rota-store=150M --rota-spill-quota=0 --rota-store-patience=1 fill "$notes" >"$work/out" 2>"$work/err" &
  await "$notes/ready0" || true
  dd if=/dev/zero of=/dev/shm/someone bs=1M count=60 2>/dev/null
  head -c 1G /dev/zero >/dev/shm/more 2>/dev/null || true
  touch "$notes/go0"
  await "$notes/ready1" || true
  rm -f /dev/shm/someone /dev/shm/more
  touch "$notes/go1"
  status=0
  wait $! || status=$?
  expect_status 0
  expect_count out 1 "round 0: full with [0-9]+: .*store"
  expect_count out 1 "round 1: full with ([6-9]|1[0-9])[0-9]: .*store" # the room that is free again serves
  expect_nothing_left
fi
verdict
