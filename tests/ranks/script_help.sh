# shellcheck shell=bash
# Sourced by test scripts. Starts the script again with a /dev/shm of its own where the machine allows it, to root or in
# a user namespace; gives $work, a folder that goes at the end and holds the temporary files of all programs.
# ROTA_TIME_FACTOR multiplies all time limits, which are meant for a build without sanitizers.
set -euo pipefail
if [[ -z ${ROTA_TEST_SHM-} ]]; then
  # shellcheck disable=SC2016 # expanded by the inner shell
  inside='mount -t tmpfs tmpfs /dev/shm && ROTA_TEST_SHM=own exec bash "$@"'
  for way in "--mount" "--user --map-root-user --mount"; do
    # shellcheck disable=SC2086 # several options
    if unshare $way mount -t tmpfs tmpfs /dev/shm 2>/dev/null; then
      exec unshare $way bash -c "$inside" - "$0" "$@"
    fi
  done
  ROTA_TEST_SHM=shared
fi
no_shm="needs a /dev/shm of its own, which is allowed here neither to this user nor in a user namespace"
factor=${ROTA_TIME_FACTOR:-1}
unset ROTA_LOG ROTA_STORE ROTA_CPUS ROTA_RESOURCES ROTA_SHUTDOWN_TIMEOUT
export TMPDIR
mark=ROTA_TEST_MARK=$$.$RANDOM # in the environment of what a test starts
work=$(mktemp -d)
TMPDIR=$work/tmp
mkdir "$TMPDIR"
bad=0
case=start
cases=0
longest=60

# Every process that a test here started.
ours() { { grep -lzsx "$mark" /proc/[0-9]*/environ || true; } | tr -dc '0-9\n'; }
kill_ours() { ours | xargs -r kill -9 2>/dev/null || true; }
trap 'kill_ours; rm -rf "$work"' EXIT

say() {
  echo "FAIL: $case: $*"
  bad=1
}
# skip CASE WHY: says what is not tested here; scripts/test shows these lines.
skip() { echo "skipped: $1: $2"; }
show() { for name in out err; do sed "s/^/    $name: /" "$work/$name" | tail -n 30; done; }

# run RANKS PROGRAM ARGUMENTS...: RANKS 0 is without a launcher. Sets $status and $took (ms); fails what takes longer than
# $longest seconds.
run() {
  local start=$EPOCHREALTIME limit=$((longest * factor)) command=("$@")
  [[ $1 == 0 ]] && command=("${@:2}") || command=("$ROTA_LAUNCH" "$@")
  status=0
  timeout -k 5 "$limit" env "$mark" "${command[@]}" >"$work/out" 2>"$work/err" </dev/null || status=$?
  took=$(((${EPOCHREALTIME/./} - ${start/./}) / 1000))
  [[ $took -lt $((limit * 1000)) ]] || say "hangs: was ended after $took ms"
}

# fresh NAME: the name of the case and an empty $notes folder for its files.
fresh() {
  case=$1
  ((++cases))
  notes=$work/notes
  rm -rf "$notes"
  mkdir "$notes"
}

# await FILE...: until all are there, at most 30 s.
await() {
  local file
  for file; do
    for ((i = 0; i < 3000 * factor; ++i)); do
      [[ -e $file ]] && continue 2
      sleep 0.01
    done
    say "$file never came"
    return 1
  done
}

expect_status() { [[ $status == "$1" ]] || { say "exit status $status, not $1"; show; }; }
expect_failure() { [[ $status != 0 ]] || { say "exit status 0"; show; }; }
expect_line() { grep -qE -- "$2" "$work/$1" || { say "no line of $1 has '$2'"; show; }; }
expect_count() {
  local count
  count=$(grep -cE -- "$3" "$work/$1" || true)
  [[ $count == "$2" ]] || { say "$count lines of $1 have '$3', not $2"; show; }
}
expect_within() { [[ $took -lt $(($1 * 1000 * factor)) ]] || say "took $took ms, at most $(($1 * factor)) s"; } # SECONDS
expect_empty() { [[ ! -s $work/$1 ]] || { say "something was printed on $1"; show; }; }

# Nothing may be left of what ran: no process after 5 s, no file of theirs in /dev/shm and in the temporary folder.
expect_nothing_left() {
  local left
  for ((i = 0; i < 500 * factor; ++i)); do
    left=$(ours)
    [[ -z $left ]] && break
    sleep 0.01
  done
  if [[ -n $left ]]; then
    # shellcheck disable=SC2086 # several numbers
    say "processes are left: $(ps -o pid=,stat=,args= -p ${left//$'\n'/ } 2>/dev/null || echo "$left")"
    kill_ours
  fi
  if [[ $ROTA_TEST_SHM == own && -n $(ls -A /dev/shm) ]]; then
    say "left in /dev/shm: $(ls -A /dev/shm)"
    find /dev/shm -mindepth 1 -delete
  fi
  left=$(find "$TMPDIR" -mindepth 1 -not -type d)
  [[ -z $left ]] || say "left in the temporary folder: $left"
  rm -rf "${TMPDIR:?}"/*
}

# verdict: ends the script.
verdict() {
  [[ $ROTA_TEST_SHM == own ]] || skip "what programs leave in /dev/shm" "$no_shm"
  echo "$cases cases"
  exit "$bad"
}
