#!/usr/bin/env bash
# launch_test.sh ROTA_INFO SESSION_PROGRAM QUICKSTART: how programs are started on four nodes of 4 CPUs as Slurm counts
# them: the job scripts, as they are; slots and memory from Slurm; jobs beside each other; more ranks than cores. Then a
# second cluster, of three nodes, whose tasks Slurm binds, with a useless network and little /dev/shm.
source "$(dirname "$0")/cluster_help.sh"
info=$1 program=$2 quickstart=$3
scripts=$(realpath "$(dirname "$0")/../../jobscripts")
cores=$(nproc)
least() { echo $(($1 < $2 ? $1 : $2)); }

# submit_file SCRIPT PROGRAM...: the job script, unchanged, with what $options holds; awaits its end.
submit_file() {
  : >"$work/out"
  : >"$work/err"
  job=$(env "$mark" "$cluster" exec ctl sbatch --parsable --output="$work/out" --error="$work/err" "${options[@]}" "$@")
  await_job COMPLETED
  job_is COMPLETED || show
}
expect_start() { expect_count err 1 "^rota: info: $1, store [0-9]+( to [0-9]+)? MiB a node\$"; }

options=()
fresh "static.sbatch"
submit_file "$scripts/static.sbatch" "$info" --rota-log=info
expect_start "4 ranks, 2 nodes, $((3 * $(least 2 "$cores"))) slots, fabric ucx \(by default\), 2 pairs shared, 4 pairs ucx"
expect_count out 2 "Slurm's --cpus-per-task|rank may run on"
expect_count out 1 "ucx tcp/eth0 +4 "
expect_nodes_clean

fresh "one-rank-per-core.sbatch"
submit_file "$scripts/one-rank-per-core.sbatch" "$info" --rota-log=info
expect_start "8 ranks, 2 nodes, 7 slots, fabric ucx \(by default\), 12 pairs shared, 16 pairs ucx"
expect_nodes_clean

fresh "one-rank-per-node.sbatch"
submit_file "$scripts/one-rank-per-node.sbatch" "$info" --rota-log=info
expect_start "2 ranks, 2 nodes, $((3 + $(least 4 "$cores"))) slots, fabric ucx \(by default\), 1 pairs ucx"
expect_nodes_clean

# Nodes as sbatch is told, above what the script says; the program does something.
fresh "static.sbatch on 4 nodes"
options=(--nodes=4)
submit_file "$scripts/static.sbatch" "$quickstart" --rota-log=info
expect_start "8 ranks, 4 nodes, .* fabric ucx \(by default\), 4 pairs shared, 24 pairs ucx"
expect_count out 1 "^counter: 10, sum: 1000000"
expect_nodes_clean

fresh "memory of a job by node"
options=(--mem=600M)
submit_file "$scripts/static.sbatch" "$info" --rota-log=info
expect_count err 1 "rota: info: .* store 300 MiB a node"
expect_count out 2 "store +300 MiB: half of the memory that Slurm gave the job"
expect_nodes_clean

fresh "memory of a job by CPU"
options=(--mem-per-cpu=100M)
submit_file "$scripts/static.sbatch" "$info" --rota-log=info
expect_count err 1 "rota: info: .* store 200 MiB a node"
expect_nodes_clean

fresh "mpirun on two nodes of a job"
submit "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --bind-to none '$info' --rota-log=info" \
  --nodes=2 --ntasks-per-node=2
await_job COMPLETED
expect_start "4 ranks, 2 nodes, .* slots, fabric ucx \(by default\), 2 pairs shared, 4 pairs ucx"
expect_nodes_clean

fresh "rota-info as JSON"
run_on ctl srun -N2 -n3 --mpi=pmix "$info" --json --rota-lost-after=9s
expect_status 0
expect_empty err
expect_count out 2 '"host": "n[12]"'
expect_count out 1 '^  "fabric": "ucx",$'
expect_count out 1 '"by": "tcp/eth0",$'
expect_line out '"value": "9s"'
expect_nodes_clean

fresh "a PMI that MPI does not speak"
run_on ctl srun -N2 -n4 --mpi=pmi2 "$info"
expect_failure
expect_count err 1 "^rota: .*srun --mpi=pmix"
expect_within 20
run_on ctl srun -N2 -n4 "$info"
expect_failure
expect_count err 4 "config_error|rota-info: Slurm started 4 tasks.*srun --mpi=pmix"
expect_within 20
expect_nodes_clean

fresh "two jobs on the same nodes"
submit "srun --mpi=pmix '$program' endless '$notes' --rota-log=info" --ntasks=4 --nodes=2 --nodelist=n1,n2
await "$notes/ready" || true
endless=()
for file in "$notes"/pid.*; do endless+=("$(<"$file")"); done
run_on ctl srun --nodelist=n1,n2 -N2 -n4 --mpi=pmix "$quickstart" --rota-log=info
expect_status 0
expect_start "4 ranks, 2 nodes, .* fabric ucx .*"
[[ ${#endless[@]} -ge 3 ]] || say "${#endless[@]} ranks of the first job"
job_is RUNNING || say "the first job runs no more"
on ctl scancel "$job"
await_job CANCELLED
expect_nodes_clean

# MPI_Init alone takes 5 to 30 s here on two cores.
fresh "64 ranks on $cores cores"
longest=120
run_on ctl srun --overcommit -N4 -n64 --cpus-per-task=1 --mpi=pmix "$program" --rota-log=info
expect_status 0
expect_start "64 ranks, 4 nodes, 63 slots, fabric ucx \(by default\), 480 pairs shared, 1536 pairs ucx"
expect_within 110
longest=60
expect_nodes_clean

# The second cluster. Everything below is told to it.
echo "TaskPlugin=task/affinity" >"$work/conf"
export ROTA_CLUSTER=/run/rota-bound
ROTA_CLUSTER_SHARED=$work ROTA_CLUSTER_CPUS=2 ROTA_CLUSTER_DECOY=1 ROTA_CLUSTER_SHM=64M ROTA_CLUSTER_CONF=$work/conf \
  "$cluster" up 3
trap '"$cluster" down; kill_ours; rm -rf "$work"' EXIT

# A low limit makes Open MPI spread its messages over all networks that it believes in, as large jobs do.
fresh "a useless network on each node"
run_on ctl env OMPI_MCA_btl_tcp_eager_limit=512 srun -N3 -n6 --mpi=pmix "$info" --rota-log=info
expect_status 0
expect_start "6 ranks, 3 nodes, .* fabric ucx \(by default\), 3 pairs shared, 12 pairs ucx"
expect_count out 3 "in use +eth0\$"
expect_count out 1 "ucx tcp/eth0 +12 "
expect_count out 3 "docker0 .*inner bridge"
expect_within 30
run_on ctl srun -N3 -n6 --mpi=pmix "$quickstart"
expect_status 0
expect_count out 1 "^counter: 10, sum: 1000000"
expect_nodes_clean

fresh "a user's own settings of MPI and UCX"
run_on ctl env UCX_TLS=tcp srun -N3 -n3 --mpi=pmix "$quickstart" --rota-log=info
expect_status 0
expect_start "3 ranks, 3 nodes, .* fabric ucx \(by default\), 3 pairs ucx"
expect_count out 1 "^counter: 10, sum: 1000000"
run_on ctl env UCX_NET_DEVICES=eth0 UCX_TLS=tcp OMPI_MCA_btl_tcp_if_include=eth0 srun -N3 -n3 --mpi=pmix "$info"
expect_status 0
expect_count out 0 "in use" # rota gives no devices then
expect_count out 1 "UCX_NET_DEVICES=eth0\$"
expect_count out 1 "UCX_TLS=tcp\$"
expect_count out 1 "btl_tcp_if_include=eth0\$"
expect_count out 0 "btl_tcp_if_exclude"
run_on ctl env UCX_NET_DEVICES=docker0 srun -N2 -n2 --mpi=pmix "$program"
expect_failure # it was told so
expect_line err "config_error: .*nreachable"
expect_within 30
expect_nodes_clean

fresh "/dev/shm of 64 MiB"
run_on ctl srun -N3 -n6 --mpi=pmix "$info"
expect_status 0
expect_count out 3 "/dev/shm +64 MiB"
expect_count out 3 "store +(2[0-9]|3[0-2]) MiB: half of what /dev/shm has free"
run_on ctl srun -N3 -n6 --mpi=pmix "$info" --rota-store=1G
expect_failure
expect_line err "/dev/shm.*--rota-store"
expect_within 30
expect_nodes_clean

if [[ $cores -gt 1 ]]; then
  fresh "slots by --cpu-bind"
  for bind in "cores 1" "none $cores" "map_cpu:0,1 1"; do
    run_on ctl srun -N2 -n4 --cpu-bind="${bind% *}" --mpi=pmix "$info" --rota-log=info
    expect_status 0
    expect_start "4 ranks, 2 nodes, $((3 * ${bind#* })) slots, fabric ucx .*"
  done
  expect_nodes_clean
else
  skip "slots by --cpu-bind" "needs two cores"
fi
verdict
