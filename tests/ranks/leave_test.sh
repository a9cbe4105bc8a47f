#!/usr/bin/env bash
# leave_test.sh SESSION_PROGRAM LATE_PROGRAM: the last steps of a session, when ranks leave each other, and what a
# program may do afterwards. ROTA_LAUNCH: scripts/launch, called as `launch RANKS PROGRAM...`.
source "$(dirname "$0")/script_help.sh"
program=$1 late=$2

for ranks in 0 1 2 3; do
  fresh "calls after the end, $ranks ranks"
  run $ranks "$program" after
  expect_status 0
  expect_line out "all refused"
  expect_empty err
  expect_nothing_left

  for round in 1 2 3 4 5; do
    fresh "threads that wait at the end, $ranks ranks, $round"
    run $ranks "$program" threads_at_end
    expect_status 0
    expect_empty err
    expect_nothing_left
  done

  fresh "no time for running tasks, $ranks ranks" # there are none: that is no failure
  run $ranks "$program" --rota-shutdown-timeout=0 idle
  expect_status 0
  expect_empty err
  expect_nothing_left
done

fresh "rank 0 comes too late to the end"
run 2 "$program" --rota-shutdown-timeout=1s --rota-head-slots=1 late_actor
expect_failure
expect_count err 1 "rota: error: shutdown_timeout.*calls or destructors of actors on rank 0"
[[ $took -lt 20000 ]] || say "took $took ms"
expect_nothing_left

for round in 1 2 3; do
  fresh "rank 1 comes too late to the end, $round" # rank 0 says so, and nobody else
  run 3 "$program" --rota-shutdown-timeout=1s late_actor_elsewhere
  expect_failure
  expect_count err 1 "rota: error: the session did not end cleanly: rank 0 waited in vain.* rank 1 "
  expect_count err 1 "rota: error"
  [[ $took -lt 20000 ]] || say "took $took ms"
  expect_nothing_left
done

fresh "rank 1 stays away when the window is closed"
run 2 "$late" --rota-shutdown-timeout=1s
expect_line out "rank 0 is still there"
expect_count err 1 "rota: error: the session did not end cleanly.*rank 1 "
[[ $took -lt 20000 ]] || say "took $took ms"
expect_nothing_left
verdict
