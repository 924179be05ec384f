#!/usr/bin/env bash
# Runs fuzz programs for some seconds from their seed corpora: scripts/fuzz.sh [SECONDS] [PROGRAM...]; all without a name.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds="${1:-60}"
shift || true
fuzzers=("$@")
[[ ${#fuzzers[@]} -gt 0 ]] || mapfile -t fuzzers < <(git ls-files 'src/*_fuzz.cpp' | xargs -n1 basename -s .cpp)
scripts/build.sh fuzz "${fuzzers[@]}"
# All at once: each is one thread. A failure of any fails this script.
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
pids=()
for fuzzer in "${fuzzers[@]}"; do
  echo "fuzz: $fuzzer for $seconds s"
  fuzz "$fuzzer" &
  pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid"; done
