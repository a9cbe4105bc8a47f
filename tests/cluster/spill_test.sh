#!/usr/bin/env bash
# spill_test.sh SPILL_PROGRAM: values of several times the store, on three nodes with two ranks each, over both ways
# between nodes. What a program sees when a node fails that has values on disk is in faults_test.
source "$(dirname "$0")/cluster_help.sh"
program=$1

for way in ucx rma; do
  fresh "a store that is too small, over $way"
  run_on ctl env ROTA_FABRIC=$way ROTA_LOG=info srun -N3 --ntasks-per-node=2 --mpi=pmix "$program"
  expect_status 0
  expect_line out "PASSED"
  expect_line err "nodes, .* fabric $way \(asked for\)"
  expect_count err 0 "(warning|error): "
  expect_nodes_clean
done
verdict
