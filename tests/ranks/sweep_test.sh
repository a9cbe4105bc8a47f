#!/usr/bin/env bash
# sweep_test.sh SWEEP: runs the program alone and on 1 to 4 ranks, and compares with results of numpy.
# ROTA_LAUNCH: scripts/launch, called as `launch RANKS PROGRAM...`; ROTA_DATA: apps/kmers/data; ROTA_WITH_HDF5: 1 or 0.
source "$(dirname "$0")/script_help.sh"
sweep=$1
digits=$(dirname "$(dirname "$ROTA_DATA")")/sweep/data/digits.csv.gz

# By numpy 1.24 of the same file: distances of all pairs, stable argsort of those to the samples of other folds, votes by
# bincount, first maximum; mean, and std with ddof=1, over the 5 folds (sample i in fold i % 5).
cat >"$work/numpy.tsv" <<'END'
point	k	norm	weights	accuracy	deviation
0	1	1	uniform	0.985535	0.006013
1	1	1	distance	0.985535	0.006013
2	1	2	uniform	0.987758	0.007508
3	1	2	distance	0.987758	0.007508
4	3	1	uniform	0.982750	0.007957
5	3	1	distance	0.983864	0.006919
6	3	2	uniform	0.987199	0.004657
7	3	2	distance	0.987756	0.004656
8	5	1	uniform	0.982753	0.006010
9	5	1	distance	0.986089	0.004392
10	5	2	uniform	0.985531	0.001255
11	5	2	distance	0.985531	0.001255
12	7	1	uniform	0.981640	0.005748
13	7	1	distance	0.982196	0.004637
14	7	2	uniform	0.984974	0.002496
15	7	2	distance	0.986086	0.001981
16	10	1	uniform	0.976076	0.007493
17	10	1	distance	0.980528	0.006501
18	10	2	uniform	0.982193	0.004217
19	10	2	distance	0.985532	0.003620
20	15	1	uniform	0.971068	0.009537
21	15	1	distance	0.977741	0.006213
22	15	2	uniform	0.979410	0.006987
23	15	2	distance	0.982191	0.006105
END

for ranks in 0 1 2 3 4; do
  fresh "$ranks ranks: the results of numpy"
  run "$ranks" "$sweep" "$digits"
  expect_status 0
  expect_empty err
  diff "$work/numpy.tsv" "$work/out" || say "other results"
  expect_nothing_left
done

# refused CAUSE ARGUMENTS...: exit status 2, one line that has CAUSE, nothing printed, no file left in $notes.
refused() {
  fresh "refused: ${*:2}"
  run 0 "$sweep" "${@:2}"
  expect_status 2
  expect_count err 1 ""
  grep -qF -- "$1" "$work/err" || { say "does not name '$1'"; show; }
  expect_empty out
  [[ -z $(ls -A "$notes") ]] || say "left $(ls -A "$notes")"
}

small=(-k 3 --norm 2)
printf '1,2,3\n1,2\n' >"$work/uneven.csv"
printf '1,2,3\n1,x,3\n' >"$work/words.csv"
printf '1,2,256\n' >"$work/label.csv"
printf '1,2,3\n' >"$work/one.csv"
: >"$work/empty.csv"
head -c 9000 "$digits" >"$work/truncated.csv.gz"
refused "$work/none.csv: No such file" "$work/none.csv"
refused "$work/uneven.csv: line 2: 2 columns, not 3" "$work/uneven.csv"
refused "$work/words.csv: line 2: not integers" "$work/words.csv"
refused "$work/label.csv: line 1: the label" "$work/label.csv"
refused "$work/one.csv: fewer rows than folds" "$work/one.csv"
refused "$work/empty.csv: empty" "$work/empty.csv"
refused "$work/truncated.csv.gz: " "$work/truncated.csv.gz"
refused "-k" -k 0 "$digits"
refused "--folds" --folds 1 "$digits"
refused "--weights" --weights none "$digits"
refused "FILE"

if [[ $ROTA_WITH_HDF5 == 1 ]]; then
  fresh "HDF5: the table, and the results of each fold"
  run 3 "$sweep" "${small[@]}" --out "$notes/results.h5" "$digits"
  expect_status 0
  expect_empty err
  [[ $(ls "$notes") == results.h5 ]] || say "left $(ls "$notes")"
  if command -v h5dump >/dev/null; then
    dumped() { h5dump -d "/$1" -y "$notes/results.h5" | awk '/^ *DATA {/ {on = 1; next} /}/ {on = 0} on' | tr -d ' \n'; }
    for expected in k=3,3 norm=2,2 weights=0,1 accuracy=0.987199,0.987756 deviation=0.0046574,0.00465555 \
      correct=354,358,355,353,354,354,358,355,353,355; do
      got=$(dumped "${expected%=*}")
      [[ $got == "${expected#*=}" ]] || say "h5dump reads ${expected%=*}=$got"
    done
  else
    skip "what h5dump says of the results" "there is no h5dump (hdf5-tools)"
  fi
  refused "$work/notes/none/results.h5: cannot be written" "${small[@]}" --out "$work/notes/none/results.h5" "$digits"
  refused "$work: cannot be written" "${small[@]}" --out "$work" "$digits"
  if [[ $ROTA_TEST_SHM == own ]]; then
    mkdir "$work/disk"
    for room in 4 8 12; do # full in several places of HDF5
      mount -t tmpfs -o "size=${room}k" tmpfs "$work/disk"
      refused "$work/disk/results.h5: cannot be written" "${small[@]}" --out "$work/disk/results.h5" "$digits"
      [[ -z $(ls -A "$work/disk") ]] || say "left $(ls -A "$work/disk")"
      umount "$work/disk"
    done
  else
    skip "results on a full disk" "$no_shm"
  fi
else
  refused "this sweep was built without HDF5" --out "$work/notes/results.h5" "$digits"
fi

fresh "help"
run 0 "$sweep" --help
expect_status 0
expect_line out "--folds"

fresh "the bar: on a terminal only"
script -qec "'$sweep' ${small[*]} '$digits'" /dev/null </dev/null >"$work/terminal"
grep -qF '2 of 2 points' "$work/terminal" || say "no bar on a terminal"
verdict
