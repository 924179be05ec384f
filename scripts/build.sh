#!/usr/bin/env bash
# Configures and builds one preset: scripts/build.sh [PRESET] [TARGET...]; PRESET is release where none is given.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset="${1:-release}"
shift || true
cmake --preset "$preset" >"/tmp/coterie-configure-$$.log" 2>&1 || {
  cat "/tmp/coterie-configure-$$.log" >&2
  exit 1
}
rm -f "/tmp/coterie-configure-$$.log"
cmake --build --preset "$preset" ${1:+--target "$@"}
