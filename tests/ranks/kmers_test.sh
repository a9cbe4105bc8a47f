#!/usr/bin/env bash
# kmers_test.sh KMERS: runs the program alone and on 1 to 4 ranks and compares with counts made by another program.
# ROTA_LAUNCH: scripts/launch, called as `launch RANKS PROGRAM...`; ROTA_DATA: the data files of kmers.
set -euo pipefail
kmers=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
lambda=$ROTA_DATA/lambda_virus.fa.gz
ecoli=$ROTA_DATA/ecoli_NC_008253.fna.gz
bad=0
say() { echo "FAIL: $*"; bad=1; }

# on RANKS ARGUMENTS...: runs kmers; RANKS 0 is without a launcher.
on() {
  local ranks=$1
  shift
  if [[ $ranks == 0 ]]; then "$kmers" "$@"; else "$ROTA_LAUNCH" "$ranks" "$kmers" "$@"; fi
}

# expect RANKS FILE K UNIQUE DISTINCT TOTAL HIGHEST [ARGUMENTS...]
expect() {
  local ranks=$1 file=$2 k=$3 want="$4 $5 $6 $7" got
  shift 7
  got=$(on "$ranks" -k "$k" "$@" "$file" | awk '$1 ~ /^(unique|distinct|total|highest)$/ {print $2}' | paste -sd' ') ||
    say "$ranks ranks, $(basename "$file"), k $k: exit status $?"
  [[ $got == "$want" ]] || say "$ranks ranks, $(basename "$file"), k $k $*: $got, not $want"
}

for ranks in 0 1 2 3 4; do
  expect $ranks "$lambda" 11 46289 47379 48492 3 --chunk 1K
  expect $ranks "$lambda" 21 48482 48482 48482 1
  expect $ranks "$ecoli" 11 475230 1504322 4938910 166
  expect $ranks "$ecoli" 21 4789765 4836681 4938900 57 --out "$work/counts.$ranks.tsv"
done

# The table: the same on every number of ranks, in order, and with the counts of the summary.
for ranks in 1 2 3 4; do
  cmp "$work/counts.0.tsv" "$work/counts.$ranks.tsv" || say "$ranks ranks: another table"
done
LC_ALL=C sort -c "$work/counts.0.tsv" || say "the table is not in order"
got=$(awk '{n++; total += $2; if ($2 == 1) one++; if ($2 > top) {top = $2; kmer = $1}} END {print one, n, total, top, kmer}' \
  "$work/counts.0.tsv")
[[ $got == "4789765 4836681 4938900 57 AAGGCGTTCACGCCGCATCCG" ]] || say "the table adds up to $got"
rm "$work"/counts.*.tsv

# The top list: highest first.
got=$(on 2 --top 2 "$ecoli" | tail -n 2 | paste -sd' ')
[[ $got == $'AAGGCGTTCACGCCGCATCCG\t57 '* ]] || say "the top list is $got"

# refused CAUSE ARGUMENTS...: exit status 2, one line that has CAUSE, nothing printed, nothing left in $work/out.
refused() {
  local cause=$1 status=0
  shift
  mkdir -p "$work/out"
  "$kmers" "$@" >"$work/stdout" 2>"$work/stderr" || status=$?
  [[ $status == 2 ]] || say "$*: exit status $status"
  [[ $(wc -l <"$work/stderr") == 1 ]] || say "$*: not one line: $(cat "$work/stderr")"
  grep -qF -- "$cause" "$work/stderr" || say "$*: '$(cat "$work/stderr")' does not name '$cause'"
  [[ ! -s $work/stdout ]] || say "$*: printed $(cat "$work/stdout")"
  [[ -z $(ls -A "$work/out") ]] || say "$*: left $(ls -A "$work/out")"
}

out=(--out "$work/out/counts.tsv")
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
refused "$work/out/none/counts.tsv: cannot be written" --out "$work/out/none/counts.tsv" "$lambda"
refused "/dev/full: cannot be written" --out /dev/full "$lambda"
refused "is an input" --out "$work/short.fq" "$work/short.fq"

# Under a launcher too the exit status is that of kmers.
status=0
"$ROTA_LAUNCH" 3 "$kmers" "${out[@]}" "$work/truncated.fna.gz" 2>"$work/stderr" || status=$?
[[ $status == 2 ]] || say "3 ranks, truncated file: exit status $status"
grep -qF "$work/truncated.fna.gz: truncated .gz file" "$work/stderr" || say "3 ranks, truncated file: $(cat "$work/stderr")"
[[ -z $(ls -A "$work/out") ]] || say "3 ranks, truncated file: left $(ls -A "$work/out")"

"$kmers" --help | grep -q -- --chunk || say "--help does not help"

# Pipes can be read, though only once; lower case and several members count.
got=$(zcat "$lambda" | tr ACGT acgt | "$kmers" -k 11 /dev/stdin <(zcat "$lambda") | awk '$1 == "total" {print $2}')
[[ $got == 96984 ]] || say "pipes: total $got"
cat "$lambda" "$lambda" >"$work/twice.fa.gz"
got=$("$kmers" -k 11 "$work/twice.fa.gz" | awk '$1 == "total" {print $2}')
[[ $got == 96984 ]] || say "two members: total $got"

# The bar: on a terminal only.
"$kmers" --top 0 "$ecoli" 2>"$work/stderr" >/dev/null
[[ ! -s $work/stderr ]] || say "no terminal, but: $(cat "$work/stderr")"
script -qec "'$kmers' --top 0 '$ecoli'" /dev/null </dev/null >"$work/terminal"
grep -qF '%' "$work/terminal" || say "no bar on a terminal"

exit $bad
