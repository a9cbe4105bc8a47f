#!/usr/bin/env bash
# stress_test.sh STRESS_TEST: references at random, from all ranks of three nodes; nothing is left on any. For 30 s with
# room for all, then over each way between nodes in a store so small that values leave it all the time.
source "$(dirname "$0")/cluster_help.sh"

fresh "references at random"
run_on ctl env ROTA_STRESS=7:30 srun -N3 --ntasks-per-node=2 --mpi=pmix "$1"
expect_status 0
expect_line out "PASSED"
expect_nodes_clean

for way in ucx rma; do
  fresh "references at random in a small store, over $way"
  run_on ctl env ROTA_STRESS=8:8:16M ROTA_FABRIC=$way srun -N3 --ntasks-per-node=2 --mpi=pmix "$1"
  expect_status 0
  expect_line out "PASSED"
  expect_nodes_clean
done
verdict
