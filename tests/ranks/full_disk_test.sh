#!/usr/bin/env bash
# full_disk_test.sh FULL_DISK_PROGRAM: values do not fit in the store, and the disk for them is full: 48 MiB of memory.
source "$(dirname "$0")/script_help.sh"
program=$1
mkdir "$work/disk"
if ! mount -t tmpfs -o size=48m tmpfs "$work/disk" 2>/dev/null; then
  skip "a disk that is full" "needs to mount a file system, which is allowed here neither to this user nor in a user namespace"
  verdict
fi

for ranks in 0 1 3; do
  fresh "a full disk, $ranks ranks"
  run $ranks "$program" --rota-spill-dir="$work/disk"
  expect_status 0
  expect_line out "PASSED"
  # One a rank that writes, and not one a try.
  told=$(grep -c "rota: warning: spilling: cannot write [0-9]* bytes to $work/disk: No space left on device" "$work/err" || true)
  [[ $told -ge 1 && $told -le $((ranks > 1 ? ranks : 1)) ]] || { say "$told warnings"; show; }
  expect_count err "$told" "warning|error"
  [[ -z $(ls -A "$work/disk") ]] || say "left on the disk: $(ls -A "$work/disk")"
  [[ $(df --output=used "$work/disk" | tail -n 1) -eq 0 ]] || say "the disk is not empty"
  expect_nothing_left
done
umount "$work/disk"
verdict
