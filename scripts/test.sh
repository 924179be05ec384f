#!/usr/bin/env bash
# Installs what is missing, builds, and runs every check that needs no special machine: include order, type names,
# formatting, all tests. COTERIE_GOLDEN_DIR names a larger set of golden cases, where there is one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh
python3 scripts/check_includes.py
python3 scripts/check_type_names.py
if command -v clang-format >/dev/null; then scripts/format.sh --check; fi
scripts/build.sh release
ctest --test-dir build/release --output-on-failure -j "$(nproc)"
