#!/usr/bin/env bash
# Builds and runs the unit tests under sanitizers: scripts/sanitize.sh asan-ubsan|asan|ubsan|tsan [CTEST-ARGUMENT...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset="${1:?usage: scripts/sanitize.sh asan-ubsan|asan|ubsan|tsan}"
shift
scripts/build.sh "$preset"
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1
ctest --test-dir "build/$preset" --output-on-failure -j "$(nproc)" "$@"
