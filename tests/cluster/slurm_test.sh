#!/usr/bin/env bash
# slurm_test.sh SESSION_PROGRAM VALUES_TEST TASKS_TEST ACTORS_TEST: programs of rota as jobs of Slurm, on one node of 8
# CPUs as Slurm counts them.
source "$(dirname "$0")/cluster_help.sh"
program=$1 tests=("${@:2}")
cores=$(nproc)

for test in "${tests[@]}"; do
  fresh "$(basename "$test") by srun"
  run_on ctl srun -N1 -n4 --mpi=pmix "$test"
  expect_status 0
  expect_line out "PASSED"
  expect_nodes_clean
done

fresh "a program that fails"
run_on ctl srun -N1 -n3 --mpi=pmix "$program" exit
expect_status 3
expect_nodes_clean

# Slots of a rank: what --cpus-per-task says, but at most the cores that it may run on. The first rank offers none.
for cpus in 1 2; do
  fresh "$cpus CPUs a task"
  run_on ctl srun -N1 -n4 --cpus-per-task=$cpus --mpi=pmix "$program" --rota-log=info
  expect_status 0
  expect_count err 1 "rota: info: 4 ranks, .* $((3 * (cpus < cores ? cpus : cores))) slots"
  expect_nodes_clean
done

fresh "steps of a batch job, one after the other"
submit "srun --mpi=pmix '$program' return '$notes' && srun -n2 --mpi=pmix '$program' --rota-log=info && echo both" \
  --ntasks=3 --cpus-per-task=1
await_job COMPLETED
expect_line out "^both$"
expect_count err 1 "rota: info: 2 ranks, .* 1 slots"
[[ -e $notes/destroyed ]] || say "the first step did not end as it should"
expect_nodes_clean

fresh "mpirun in a batch job"
submit "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --bind-to none '$program' --rota-log=info" \
  --ntasks=3 --cpus-per-task=1
await_job COMPLETED
expect_count err 1 "rota: info: 3 ranks, .* 2 slots"
expect_nodes_clean

fresh "srun without --mpi=pmix"
run_on ctl srun -N1 -n4 "$program"
expect_failure
expect_line err "config_error: .*4 tasks.*srun --mpi=pmix"
expect_within 20
expect_nodes_clean

fresh "two jobs on one node, and one is cancelled"
submit "srun --mpi=pmix '$program' endless '$notes'" --ntasks=3
await "$notes/ready" || true
endless=()
for file in "$notes"/pid.*; do endless+=("$(<"$file")"); done
run_on ctl srun -N1 -n4 --mpi=pmix "${tests[1]}"
expect_status 0
run_on ctl srun -N1 -n3 --mpi=pmix "$program" --rota-log=info
expect_count err 1 "rota: info: 3 ranks, "
for process in "${endless[@]}"; do
  on n1 kill -0 "$process" 2>/dev/null || say "a rank of the first job is gone: $process of ${endless[*]}"
done
[[ ${#endless[@]} == 3 ]] || say "${#endless[@]} ranks of the first job"
job_is RUNNING || say "the first job runs no more"
start=$EPOCHREALTIME
on ctl scancel "$job"
await_job CANCELLED
took=$(((${EPOCHREALTIME/./} - ${start/./}) / 1000))
expect_within 20
expect_nodes_clean
verdict
