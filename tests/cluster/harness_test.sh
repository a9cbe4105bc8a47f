#!/usr/bin/env bash
# harness_test.sh NODES_PROGRAM: the cluster of three nodes in which this runs, and others that it brings up and ends in
# many ways. It runs in a process namespace of its own, so no other process of this machine is in the comparisons.
source "$(dirname "$0")/cluster_help.sh"
program=$1

# snapshot FILE: what is there of processes, namespaces, mounts, links and temporary files, one a line.
snapshot() {
  local processes=(/proc/[0-9]*) # before there are any that this starts
  {
    printf '%s\n' "${processes[@]}"
    readlink /proc/[0-9]*/ns/* 2>/dev/null || true # of processes that are gone already
    sed 's/^/mount /' /proc/self/mountinfo
    ip -oneline link | awk '{ print "link", $2 }'
    find "$TMPDIR" -mindepth 1
  } | sort >"$1"
}
# remember, expect_as_before: nothing may have come in between, after 10 s for the kernel to tidy up.
remember() { snapshot "$work/before"; }
expect_as_before() {
  local new
  for ((i = 0; i < 200; ++i)); do
    snapshot "$work/after"
    new=$(comm -13 "$work/before" "$work/after")
    [[ -z $new ]] && return
    sleep 0.05
  done
  say "left: $new"
}
expect_reaches() { # a busy machine may take longer to start the look than it waits
  for _ in {1..20}; do "$cluster" reaches "$1" "$2" && return; done
  say "$1 does not reach $2"
}
expect_cut_off() { ! "$cluster" reaches "$1" "$2" || say "$1 reaches $2"; }
expect_hosts() { # NAMES: of the nodes on which a job with a task each ran
  expect_status 0
  [[ $(sort "$work/out" | tr '\n' ' ') == "$1 " ]] || say "ran on: $(tr '\n' ' ' <"$work/out")"
}

fresh "a job on three nodes"
run_on ctl srun -N3 hostname
expect_hosts "n1 n2 n3"
run_on n2 srun -N3 hostname
expect_hosts "n1 n2 n3"
expect_nodes_clean

fresh "MPI on three nodes"
run_on ctl srun -N3 --ntasks-per-node=2 --mpi=pmix "$program" 3
expect_status 0
expect_count out 1 "6 ranks on 3 hosts"
expect_nodes_clean
run_on ctl srun -N1 -n2 --mpi=pmix "$program" 1
expect_status 0
expect_nodes_clean

fresh "a node has its own network, /tmp and /dev/shm"
run_on n1 sh -c 'echo one >/tmp/mine; echo one >/dev/shm/mine; ls /sys/class/net'
expect_count out 2 "^(eth0|lo)$"
run_on n2 sh -c 'ls /tmp/mine /dev/shm/mine'
expect_failure
run_on n1 rm /dev/shm/mine

fresh "a node crashes and comes back"
"$cluster" crash n2
run_on n2 true
expect_failure
expect_cut_off n1 n2
on ctl scontrol update NodeName=n2 State=DOWN Reason=crashed
run_on ctl srun -N2 hostname
expect_hosts "n1 n3"
"$cluster" start n2
"$cluster" wait n2 || say "n2 did not come back"
run_on ctl srun -N3 hostname
expect_hosts "n1 n2 n3"
[[ -z $(on n2 ls -A /dev/shm) ]] || say "/dev/shm outlived the crash"

fresh "a cable is pulled"
"$cluster" link n1 down
[[ $(on n1 cat /sys/class/net/eth0/carrier) == 0 ]] || say "n1 sees a carrier"
expect_cut_off n3 n1
expect_reaches n3 n2
"$cluster" link n1 up
expect_reaches n1 n3
expect_reaches n3 n1

fresh "a node is cut off"
"$cluster" cut n3
[[ $(on n3 cat /sys/class/net/eth0/carrier) == 1 ]] || say "n3 sees no carrier"
expect_cut_off n3 n1
expect_cut_off ctl n3
expect_reaches n1 n2
"$cluster" join n3
expect_reaches n3 n1
run_on ctl srun -N3 hostname
expect_hosts "n1 n2 n3"

fresh "slurmd is started anew under a job"
submit "touch $notes/started; until [[ -e $notes/go ]]; do sleep 0.02; done; echo done" --nodelist=n1
await "$notes/started" || true
"$cluster" slurmd n1
touch "$notes/go"
await_job COMPLETED
expect_line out "^done$"
run_on ctl srun -N3 hostname
expect_hosts "n1 n2 n3"
expect_nodes_clean

fresh "another cluster" # of one node, and one that Slurm boots when it is wanted
remember
echo "KillWait=17" >"$work/conf"
env ROTA_CLUSTER_CPUS=8 ROTA_CLUSTER_MEMORY=1000 ROTA_CLUSTER_GPUS=2 ROTA_CLUSTER_SHM=16M ROTA_CLUSTER_RETRIES=3 \
  ROTA_CLUSTER_DECOY=1 ROTA_CLUSTER_CLOUD=1 ROTA_CLUSTER_CONF="$work/conf" "$cluster" -s "$work/other" up 1
run 0 "$cluster" -s "$work/other" exec ctl srun -N2 hostname
expect_hosts "n1 n2"
[[ $(on ctl sinfo --noheader --Node --partition main | wc -l) == 3 ]] || say "the first cluster has other nodes now"
jobs_before=$(on ctl scontrol --oneliner show jobs | wc -l)
run 0 "$cluster" -s "$work/other" exec n1 srun -n8 hostname
expect_count out 8 "n1"
[[ $(on ctl scontrol --oneliner show jobs | wc -l) == "$jobs_before" ]] || say "the first saw a job of the other"
# shellcheck disable=SC2016 # expanded by the task
run 0 "$cluster" -s "$work/other" exec n1 srun --gres=gpu:1 sh -c 'echo "gpu $CUDA_VISIBLE_DEVICES"
  df -k --output=size /dev/shm; cat /proc/sys/net/ipv4/tcp_retries2
  ip -oneline address show docker0; scontrol show config | grep KillWait'
expect_line out "^gpu [01]$"
expect_line out "^ *16384$"
expect_line out "^3$"
expect_line out "docker0.*172.17.0.1/16"
expect_line out "KillWait *= 17 sec"
run 0 "$cluster" -s "$work/other" up 1
expect_failure
"$cluster" -s "$work/other" crash n1
run_on ctl srun -N3 hostname
expect_hosts "n1 n2 n3"
"$cluster" -s "$work/other" down
[[ ! -e $work/other ]] || say "the state is still there"
expect_as_before

fresh "run ends with the status of its command, and takes away what that left"
remember
# shellcheck disable=SC2016 # expanded by the command
run 0 "$cluster" run 1 -- sh -c 'touch "$TMPDIR/left"; setsid sleep 1000 & '"$cluster"' exec n1 hostname; exit 5'
expect_status 5
expect_count out 1 "^n1$"
expect_as_before

for signal in TERM KILL; do
  fresh "run is ended by SIG$signal"
  remember
  : >"$work/out"
  "$cluster" run 2 -- sh -c 'echo up; setsid sleep 1000 & sleep 1000' >"$work/out" 2>"$work/err" </dev/null &
  victim=$!
  for ((i = 0; i < 3000; ++i)); do
    grep -q up "$work/out" && break
    sleep 0.01
  done
  expect_line out up
  kill "-$signal" "$victim"
  wait "$victim" 2>/dev/null || true
  expect_as_before
done

for moment in 0.01 0.05 0.1 0.2 0.3 0.4 0.5; do
  fresh "run is killed after $moment s"
  "$cluster" run 2 -- true >"$work/out" 2>"$work/err" </dev/null &
  victim=$!
  sleep "$moment"
  kill -KILL "$victim" 2>/dev/null || true
  wait "$victim" 2>/dev/null || true
  expect_as_before
done

fresh "up fails half-way"
remember
mkdir "$work/empty"
ROTA_CLUSTER_RETRIES=nonsense run 0 "$cluster" -s "$work/half" up 2
expect_failure
expect_line err "ctl did not start"
[[ ! -e $work/half ]] || say "the state is still there"
run 0 "$cluster" -s "$work/empty" exec n1 true
expect_failure
expect_as_before

fresh "a machine that cannot do it"
run 0 setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin "$cluster" run 1 -- true
expect_status 77
expect_count out 1 "^skipped: "
expect_empty err
verdict
