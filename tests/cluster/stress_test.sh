#!/usr/bin/env bash
# stress_test.sh STRESS_TEST: references at random for 30 s, from all ranks of three nodes; nothing is left on any.
source "$(dirname "$0")/cluster_help.sh"

fresh "references at random"
run_on ctl env ROTA_STRESS=7:30 srun -N3 --ntasks-per-node=2 --mpi=pmix "$1"
expect_status 0
expect_line out "PASSED"
expect_nodes_clean
verdict
