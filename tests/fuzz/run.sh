#!/usr/bin/env bash
# All fuzz targets side by side, a process each: run.sh [SECONDS [FOLDER]]
# The program `fuzz` and the folder `seeds` lie beside this file. Into FOLDER (left out: fuzz-out here)
# go a corpus, a log and what failed of each target, and summary.txt with a line a target.
set -u
seconds=${1:-600}
here=$(cd "$(dirname "$0")" && pwd)
out=${2:-$here/fuzz-out}
mkdir -p "$out"
export RUST_BACKTRACE=1
# Libraries of C++ may lie beside, for machines without them.
[ -d "$here/lib" ] && export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
targets=$(FUZZ_TARGET=list "$here/fuzz" 2>/dev/null)
[ -n "$targets" ] || { echo "no target: does $here/fuzz run here?" >&2; exit 2; }
for target in $targets; do
  (
    mkdir -p "$out/$target/corpus" "$out/$target/failed"
    cd "$out/$target" || exit 1
    # After a failure the target starts again with what time is left, at most 20 times.
    end=$((SECONDS + seconds))
    round=0
    while [ $((end - SECONDS)) -gt 1 ] && [ $round -lt 20 ]; do
      round=$((round + 1))
      FUZZ_TARGET=$target timeout -k 10 $((seconds + 60)) "$here/fuzz" corpus "$here/seeds" \
        -max_total_time=$((end - SECONDS)) -max_len=65536 -rss_limit_mb=1024 -timeout=10 \
        -artifact_prefix=failed/ -print_final_stats=1 >"log.$round" 2>&1 && break
    done
  ) &
done
wait
printf '%-22s %12s %9s %7s  %s\n' target executions 'peak MiB' failed 'first failure' >"$out/summary.txt"
for target in $targets; do
  cd "$out/$target" || exit 1
  runs=$(cat log.* | awk '/stat::number_of_executed_units/ {n += $2} END {print n + 0}')
  # A round that failed prints no statistics: its last report counts.
  for log in log.*; do
    grep -q number_of_executed_units "$log" && continue
    last=$(grep -o '^#[0-9]*' "$log" | tail -1 | tr -d '#')
    runs=$((runs + ${last:-0}))
  done
  peak=$(cat log.* | grep -oE 'rss: [0-9]+|peak_rss_mb: *[0-9]+' | grep -oE '[0-9]+' | sort -n | tail -1)
  failed=$(find failed -type f | wc -l)
  first=$(cat log.* | grep -m1 -A1 -E 'panicked at|ERROR: libFuzzer' | tr '\n' ' ' | cut -c1-160)
  printf '%-22s %12s %9s %7s  %s\n' "$target" "$runs" "${peak:-?}" "$failed" "$first"
done >>"$out/summary.txt"
cat "$out/summary.txt"
