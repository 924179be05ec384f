#!/usr/bin/env bash
# Runs fuzz programs for some seconds from their seed corpora: scripts/fuzz.sh [SECONDS] [PROGRAM...]; all without a name.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds="${1:-60}"
shift || true
fuzzers=("$@")
[[ ${#fuzzers[@]} -gt 0 ]] || mapfile -t fuzzers < <(git ls-files 'src/*_fuzz.cpp' | xargs -n1 basename -s .cpp)
scripts/build.sh fuzz "${fuzzers[@]}"
# Each is one thread: as many at a time as there are processors. A failure of any fails this script.
fuzz() {
  local fuzzer="$1" seeds found
  seeds="tests/fuzz/${fuzzer%_fuzz}"
  found="$(mktemp -d)"
  local args=("$found")
  [[ -d "$seeds" ]] && args+=("$seeds")
  "build/fuzz/$fuzzer" -max_total_time="$seconds" -rss_limit_mb=1024 -timeout=10 -print_final_stats=1 \
    -artifact_prefix="$found/" "${args[@]}" 2>&1 | tail -n 8 | sed "s/^/$fuzzer: /"
  rm -rf "$found"
}
running=0
for fuzzer in "${fuzzers[@]}"; do
  if [[ $running -eq $(nproc) ]]; then
    wait -n
    running=$((running - 1))
  fi
  echo "fuzz: $fuzzer for $seconds s"
  fuzz "$fuzzer" &
  running=$((running + 1))
done
while [[ $running -gt 0 ]]; do
  wait -n
  running=$((running - 1))
done
