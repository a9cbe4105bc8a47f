#!/usr/bin/env bash
# fabrics_test.sh FABRIC_PROGRAM SESSION_PROGRAM TESTS...: the rank tests over every way between nodes, on 3 nodes with 2
# ranks each (pairs) and on 4 nodes with one rank of 2 slots each (singles); and how that way is chosen. To save time each
# test runs over each way in one of the shapes, the other for the other way, and without its slowest cases;
# ROTA_TEST_ALL=1 runs all of them in both.
source "$(dirname "$0")/cluster_help.sh"
fabric=$1 program=$2 tests=("${@:3}")
all=${ROTA_TEST_ALL-}
export ROTA_LOG=info
unset ROTA_FABRIC "${!OMPI_MCA_@}" "${!UCX_@}"
pairs=(-N3 --ntasks-per-node=2 --mpi=pmix)
singles=(-N4 --ntasks-per-node=1 --cpus-per-task=2 --mpi=pmix)
slow=full_store.put_throws*:full_store.a_result*:full_store.room_that*:refs.results_are_freed*:refs.arguments_keep*
slow+=:many.fan_out*:many.a_hundred*:nested.ten*:map.inside*:refs.threads_share*
[[ -z $all ]] && cases_run=-$slow || cases_run=*

expect_passed() {
  expect_status 0
  expect_line out "PASSED"
}

# over FABRIC SHAPE TEST
over() {
  declare -n options=$2
  fresh "$(basename "$3") over $1, $2"
  run_on ctl env TMPDIR="$TMPDIR" ROTA_FABRIC="$1" srun "${options[@]}" "$3" "--gtest_filter=$cases_run"
  expect_passed
  expect_line err "nodes, .* fabric $1 \(asked for\)"
}
for i in "${!tests[@]}"; do
  shapes=(pairs singles)
  over rma "${shapes[i % 2]}" "${tests[i]}"
  over ucx "${shapes[1 - i % 2]}" "${tests[i]}"
  [[ -n $all ]] || continue
  over ucx "${shapes[i % 2]}" "${tests[i]}"
  over rma "${shapes[1 - i % 2]}" "${tests[i]}"
done
expect_nodes_clean

fresh "$(basename "${tests[0]}") on one node"
run_on ctl env TMPDIR="$TMPDIR" srun -N1 -n3 --mpi=pmix "${tests[0]}"
expect_passed
expect_line err "1 nodes, .* fabric shared \(one node\)"
expect_nodes_clean

for rings in 64 1; do # with one, nearly every batch waits for a ring that another rank has
  fresh "all ranks to all, $rings rings"
  run_on ctl srun "${pairs[@]}" "$fabric" $rings 150
  expect_status 0
done

fresh "by default"
run_on ctl srun "${pairs[@]}" "$program"
expect_status 0
expect_line err "fabric ucx \(by default\)"

# MPI's own UCX reads variables of its own too.
ready_mpi=(OMPI_MCA_osc=sm,ucx OMPI_MCA_opal_common_ucx_tls=any OMPI_MCA_opal_common_ucx_devices=any)
fresh "UCX does not reach the other nodes"
run_on ctl env "${ready_mpi[@]}" UCX_TLS=self,sm MPI_UCX_TLS=self,sm,tcp srun "${pairs[@]}" "$program"
expect_status 0
expect_line err "fabric rma \(by UCX: "
run_on ctl env UCX_TLS=self,sm srun "${pairs[@]}" "$program" --rota-fabric=ucx
expect_status 2
expect_count err 1 "config_error: "

fresh "neither UCX nor MPI reaches the other nodes"
run_on ctl env UCX_TLS=self,sm OMPI_MCA_pml=ob1 srun "${pairs[@]}" "$program"
expect_status 2
expect_line err "config_error: .*By UCX: .*By MPI: .*MPI_Win_allocate.*--rota-fabric=rma"
expect_nodes_clean

fresh "what the user set for MPI holds"
run_on ctl env OMPI_MCA_pml=ob1 srun "${pairs[@]}" "$program" --rota-fabric=rma --rota-log=debug
expect_status 0
expect_line err "OMPI_MCA_osc=sm,ucx, OMPI_MCA_pml=ob1, .*devices=any"
run_on ctl env OMPI_MCA_osc=ucx srun "${pairs[@]}" "$program" --rota-fabric=rma
expect_status 2
expect_line err "config_error: .*OMPI_MCA_osc=ucx leaves out .sm."
run_on ctl srun "${pairs[@]}" "$program" --rota-fabric=shared
expect_status 2
expect_line err "config_error: .*fabric=shared holds for one node, but the ranks are on 3"
expect_nodes_clean
verdict
