#!/usr/bin/env bash
# end_test.sh SESSION_PROGRAM: whichever way a program ends, every rank of it ends soon and nothing is left.
# ROTA_LAUNCH: scripts/launch, called as `launch RANKS PROGRAM...`.
source "$(dirname "$0")/script_help.sh"
program=$1

# Of all ranks one speaks, once.
expect_one_message() { expect_count err 1 '^rota: '; }

for ranks in 0 1 2 4; do
  fresh "quiet, $ranks ranks"
  run $ranks "$program" quiet
  expect_status 0
  expect_empty out
  expect_empty err
  expect_nothing_left

  fresh "return, $ranks ranks"
  run $ranks "$program" return "$notes"
  expect_status 0
  expect_empty err
  [[ -e $notes/destroyed ]] || say "the actor's destructor did not run"
  expect_nothing_left

  fresh "exception out of main, $ranks ranks"
  run $ranks "$program" throw
  expect_failure
  expect_line err "left main by an exception"
  expect_nothing_left

  fresh "exit(3), $ranks ranks"
  run $ranks "$program" exit
  expect_status 3
  expect_nothing_left

  fresh "_exit(4), $ranks ranks"
  run $ranks "$program" quick_exit
  expect_status 4
  expect_within 10
  expect_nothing_left

  fresh "actor that lives to the end, $ranks ranks"
  run $ranks "$program" actor_at_end "$notes"
  expect_status 0
  [[ -e $notes/destroyed ]] || say "the actor's destructor did not run"
  expect_nothing_left

  fresh "queued tasks, $ranks ranks"
  ROTA_RESOURCES=key:1 ROTA_CPUS=2 run $ranks "$program" drop_queued "$notes"
  expect_status 0
  [[ $ranks -le 2 && $(cat "$notes/got" 2>&1) != task_cancelled ]] && say "the waiting task got $(cat "$notes/got" 2>&1)"
  expect_within 15
  expect_nothing_left

  fresh "tasks that were handed out ahead, $ranks ranks"
  ROTA_CPUS=1 run $ranks "$program" many_queued "$notes"
  expect_status 0
  expect_empty err
  begun=$(find "$notes" -name 'started.*' | wc -l)
  [[ $begun -le $((ranks > 2 ? 2 * (ranks - 1) : 2)) ]] || say "$begun tasks started"
  expect_nothing_left

  fresh "shutdown_timeout, $ranks ranks"
  run $ranks "$program" --rota-shutdown-timeout=1s slow "$notes"
  expect_status $((ranks > 1)) # rank 0 ends with the status of main, the others with 1
  expect_within 9
  expect_one_message
  expect_count err 1 "shutdown_timeout.*the slow one.*rank [0-9]"
  expect_nothing_left

  fresh "a task closes stdout, $ranks ranks"
  run $ranks "$program" close_stdout
  expect_status 0
  expect_nothing_left

  fresh "a task crashes, $ranks ranks"
  run $ranks "$program" crash "$notes"
  expect_failure
  if [[ $ranks -ge 2 ]]; then
    expect_one_message
    expect_line err "rank [1-9] .*(lost|killed|crashed)"
  fi
  expect_nothing_left
done

# start RANKS ARGUMENTS...: in the background, in a process group of its own as from a terminal, until it is ready.
start() {
  local command=("${@:2}")
  [[ $1 == 0 ]] || command=("$ROTA_LAUNCH" "$@")
  setsid env --default-signal=INT,QUIT "$mark" "${command[@]}" >"$work/out" 2>"$work/err" </dev/null &
  started=$!
  await "$notes/ready"
}
# finish SECONDS: what was started must end by then.
finish() {
  local begin=$EPOCHREALTIME
  for ((i = 0; i < $1 * 100 * factor; ++i)); do
    [[ -z $(ours) ]] && break
    sleep 0.01
  done
  took=$(((${EPOCHREALTIME/./} - ${begin/./}) / 1000))
  [[ -z $(ours) ]] || { say "still runs after $took ms: $(ps -o pid=,stat=,args= -p "$(ours | paste -sd,)")"; show; }
  kill_ours
  status=0
  wait "$started" || status=$?
}

for ranks in 0 1 3; do
  fresh "Ctrl-C, $ranks ranks"
  start $ranks "$program" endless "$notes" || continue
  kill -INT -- "-$started"
  finish 10
  expect_failure
  expect_nothing_left

  fresh "SIGTERM, $ranks ranks"
  start $ranks "$program" endless "$notes" || continue
  kill -TERM "$(cat "$notes/pid.0")"
  finish 10
  expect_failure
  expect_nothing_left
done

for ranks in 2 4; do
  for ((killed = 0; killed < ranks; ++killed)); do
    fresh "rank $killed of $ranks is killed"
    start $ranks "$program" endless "$notes" || continue
    kill -KILL "$(cat "$notes/pid.$killed")"
    finish 5
    expect_failure
    expect_one_message
    expect_count err 1 "rank $killed .*$(hostname).*(lost|killed)"
    expect_nothing_left
  done
done
verdict
