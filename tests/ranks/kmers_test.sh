#!/usr/bin/env bash
# kmers_test.sh KMERS: runs the program alone and on 1 to 4 ranks and compares with counts made by another program.
# ROTA_LAUNCH: scripts/launch, called as `launch RANKS PROGRAM...`; ROTA_DATA: the data files of kmers; ROTA_WITH_HDF5: 1
# or 0.
source "$(dirname "$0")/script_help.sh"
kmers=$1
lambda=$ROTA_DATA/lambda_virus.fa.gz
ecoli=$ROTA_DATA/ecoli_NC_008253.fna.gz

# expect RANKS FILE K UNIQUE DISTINCT TOTAL HIGHEST [ARGUMENTS...]
expect() {
  local ranks=$1 file=$2 k=$3 want="$4 $5 $6 $7" got
  shift 7
  fresh "$ranks ranks, $(basename "$file"), k $k $*"
  run "$ranks" "$kmers" -k "$k" "$@" "$file"
  expect_status 0
  got=$(awk '$1 ~ /^(unique|distinct|total|highest)$/ {print $2}' "$work/out" | paste -sd' ')
  [[ $got == "$want" ]] || say "$got, not $want"
  expect_nothing_left
}

for ranks in 0 1 2 3 4; do
  expect $ranks "$lambda" 11 46289 47379 48492 3 --chunk 1K
  expect $ranks "$lambda" 21 48482 48482 48482 1
  expect $ranks "$ecoli" 11 475230 1504322 4938910 166
  expect $ranks "$ecoli" 21 4789765 4836681 4938900 57 --out "$work/counts.$ranks.tsv"
done

fresh "the table: the same on every number of ranks, in order, and with the counts of the summary"
for ranks in 1 2 3 4; do
  cmp "$work/counts.0.tsv" "$work/counts.$ranks.tsv" || say "$ranks ranks: another table"
done
LC_ALL=C sort -c "$work/counts.0.tsv" || say "it is not in order"
got=$(awk '{n++; total += $2; if ($2 == 1) one++; if ($2 > top) {top = $2; kmer = $1}} END {print one, n, total, top, kmer}' \
  "$work/counts.0.tsv")
[[ $got == "4789765 4836681 4938900 57 AAGGCGTTCACGCCGCATCCG" ]] || say "it adds up to $got"
rm "$work"/counts.*.tsv

fresh "the top list: highest first"
run 2 "$kmers" --top 2 "$ecoli"
got=$(tail -n 2 "$work/out" | paste -sd' ')
[[ $got == $'AAGGCGTTCACGCCGCATCCG\t57 '* ]] || say "it is $got"

expect_no_table() { [[ -z $(ls -A "$notes") ]] || say "left $(ls -A "$notes")"; }
expect_words() { grep -qF -- "$1" "$work/err" || { say "does not name '$1'"; show; }; }

# refused CAUSE ARGUMENTS...: exit status 2, one line that has CAUSE, nothing printed, no table left in $notes.
refused() {
  fresh "refused: ${*:2}"
  run 0 "$kmers" "${@:2}"
  expect_status 2
  expect_count err 1 ""
  expect_words "$1"
  expect_empty out
  expect_no_table
}

out=(--out "$work/notes/counts.tsv")
head -c 700000 "$ecoli" >"$work/truncated.fna.gz"
printf 'name,value\n1,2\n' >"$work/table.csv"
: >"$work/empty.fa"
printf '@r\nACGT\n+\nIII\n' >"$work/short.fq"
refused "$work/none.fa: No such file" "${out[@]}" "$lambda" "$work/none.fa"
refused "$work: is a directory" "${out[@]}" "$work"
refused "$work/truncated.fna.gz: truncated .gz file" "${out[@]}" "$work/truncated.fna.gz"
refused "$work/table.csv: not FASTA or FASTQ" "${out[@]}" "$work/table.csv"
refused "$work/empty.fa: not FASTA or FASTQ" "${out[@]}" "$work/empty.fa"
refused "$work/short.fq: line 4: 3 qualities for 4 bases" "${out[@]}" "$work/short.fq"
refused "-k" "${out[@]}" -k 0 "$lambda"
refused "-k" "${out[@]}" -k 32 "$lambda"
refused "--chunk" "${out[@]}" --chunk 0 "$lambda"
refused "--nonsense" "${out[@]}" --nonsense "$lambda"
refused "--rota-nonsense" "${out[@]}" --rota-nonsense "$lambda"
refused "FILE" "${out[@]}"
refused "$work/notes/none/counts.tsv: cannot be written" --out "$work/notes/none/counts.tsv" "$lambda"
refused "/dev/full: cannot be written" --out /dev/full "$lambda"
refused "is an input" --out "$work/short.fq" "$work/short.fq"

# The table $1 of k-mers of $2 letters as "k-mer <tab> count", by h5dump.
hdf5_lines() {
  local name
  for name in kmers counts; do h5dump -d "/$name" -y -w 1 -o "$work/$name.column" "$1" >/dev/null; done
  paste "$work/kmers.column" "$work/counts.column" | tr -d ' ,' | awk -v k="$2" '
    NF == 2 {
      kmer = ""
      for (i = 0; i < k; ++i) { kmer = substr("ACGT", $1 % 4 + 1, 1) kmer; $1 = int($1 / 4) }
      print kmer "\t" $2
    }'
}

if [[ $ROTA_WITH_HDF5 == 1 ]]; then
  fresh "HDF5: the table is that of the .tsv"
  run 0 "$kmers" -k 11 --out "$notes/counts.tsv" "$lambda" # 11 letters: h5dump's numbers are exact in awk up to 26
  for ranks in 0 1 2 4; do
    run "$ranks" "$kmers" -k 11 --chunk 1K --out "$notes/counts.h5" "$lambda"
    expect_status 0
    expect_empty err
    if command -v h5dump >/dev/null; then
      hdf5_lines "$notes/counts.h5" 11 | cmp - "$notes/counts.tsv" || say "$ranks ranks: another table"
      got=$(h5dump -a /k -a /source "$notes/counts.h5" | awk '/\(0\)/ {print $2}' | paste -sd' ')
      [[ $got == "11 \"$lambda\"" ]] || say "$ranks ranks: attributes $got"
      got=$(h5dump -H "$notes/counts.h5" | grep -oE 'H5T_STD_U[0-9]+' | paste -sd' ')
      [[ $got == "H5T_STD_U32 H5T_STD_U64" ]] || say "$ranks ranks: types $got"
    fi
  done
  command -v h5dump >/dev/null || skip "what h5dump says of HDF5 tables" "there is no h5dump (hdf5-tools)"
  [[ $(ls "$notes") == $'counts.h5\ncounts.tsv' ]] || say "left $(ls "$notes")"
  expect_nothing_left

  fresh "HDF5: h5py reads it"
  if /usr/bin/python3 -c 'import h5py' 2>/dev/null; then
    run 2 "$kmers" -k 21 --out "$notes/counts.h5" "$ecoli" "$lambda"
    expect_status 0
    got=$(/usr/bin/python3 - "$notes/counts.h5" <<'END'
import sys, h5py
with h5py.File(sys.argv[1]) as f:
    codes, counts = f["kmers"][:], f["counts"][:]
    print(codes.dtype, counts.dtype, bool((codes[1:] > codes[:-1]).all()), counts.sum(), counts.max(), f.attrs["k"],
          [name.split("/")[-1] for name in f.attrs["source"].splitlines()])
END
    ) || say "h5py failed"
    [[ $got == "uint64 uint32 True 4987382 57 21 ['ecoli_NC_008253.fna.gz', 'lambda_virus.fa.gz']" ]] || say "h5py reads: $got"
  else
    skip "what h5py reads" "there is no python3-h5py"
  fi

  hdf5=(--out "$work/notes/counts.h5")
  refused "$work/none.fa: No such file" "${hdf5[@]}" "$lambda" "$work/none.fa"
  refused "$work/truncated.fna.gz: truncated .gz file" "${hdf5[@]}" "$work/truncated.fna.gz"
  refused "$work/notes/none/counts.h5: cannot be written" --out "$work/notes/none/counts.h5" "$lambda"
  ln -s /dev/full "$work/full.h5"
  refused "$work/full.h5: cannot be written: HDF5 needs a regular file" --out "$work/full.h5" "$lambda"

  # A disk of its own that becomes full: in the first dataset, in the second, with the last flush.
  if [[ $ROTA_TEST_SHM == own ]]; then
    mkdir "$work/disk"
    for room in 8 64 300 444 496; do
      mount -t tmpfs -o "size=${room}k" tmpfs "$work/disk"
      printf 'old' >"$work/disk/counts.h5"
      refused "$work/disk/counts.h5: cannot be written: hdf5: " -k 11 --out "$work/disk/counts.h5" "$lambda"
      expect_words "No space left on device"
      [[ $(ls -A "$work/disk") == counts.h5 && $(cat "$work/disk/counts.h5") == old ]] || say "left $(ls -lA "$work/disk")"
      umount "$work/disk"
    done
  else
    skip "HDF5 on a full disk" "$no_shm"
  fi
else
  refused "counts.h5: this kmers was built without HDF5" --out "$work/notes/counts.h5" "$lambda"
fi

fresh "3 ranks, truncated file" # under a launcher too the exit status is that of kmers
run 3 "$kmers" "${out[@]}" "$work/truncated.fna.gz"
expect_status 2
expect_words "$work/truncated.fna.gz: truncated .gz file"
expect_no_table
expect_nothing_left

fresh "help"
run 0 "$kmers" --help
expect_status 0
expect_line out "--chunk"

fresh "pipes can be read, though only once; lower case and several members count"
got=$(zcat "$lambda" | tr ACGT acgt | "$kmers" -k 11 /dev/stdin <(zcat "$lambda") | awk '$1 == "total" {print $2}')
[[ $got == 96984 ]] || say "pipes: total $got"
cat "$lambda" "$lambda" >"$work/twice.fa.gz"
got=$("$kmers" -k 11 "$work/twice.fa.gz" | awk '$1 == "total" {print $2}')
[[ $got == 96984 ]] || say "two members: total $got"

fresh "the bar: on a terminal only"
run 0 "$kmers" --top 0 "$ecoli"
expect_status 0
expect_empty err
script -qec "'$kmers' --top 0 '$ecoli'" /dev/null </dev/null >"$work/terminal"
grep -qF '%' "$work/terminal" || say "no bar on a terminal"
verdict
