#!/usr/bin/env bash
# Formats all C++ and CUDA sources with clang-format 14; --check only says which files differ.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
clang-format --version | grep -q 'version 14\.' || {
  echo "format: needs clang-format 14 (Debian 12), found: $(clang-format --version)" >&2
  exit 1
}
mapfile -t files < <(git ls-files '*.cpp' '*.h' '*.cu' '*.cuh')
if [[ "${1:-}" == "--check" ]]; then
  clang-format --dry-run -Werror "${files[@]}"
else
  clang-format -i "${files[@]}"
fi
