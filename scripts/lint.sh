#!/usr/bin/env bash
# Runs clang-tidy over the sources: scripts/lint.sh [FILE...]; all library sources by default.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake --preset lint >/dev/null
if [[ $# -gt 0 ]]; then
  files=("$@")
else
  mapfile -t files < <(git ls-files 'src/*.cpp' ':!*_test.cpp' ':!*_fuzz.cpp')
fi
printf '%s\n' "${files[@]}" | xargs -P "$(nproc)" -n 4 clang-tidy -p build/lint --quiet
