#!/usr/bin/env bash
# What `cmake --install` brings, tried where it lies: scripts/test_install.sh [build folder]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build="$(realpath "${1:-build/release}")"
prefix="$(mktemp -d)"
trap 'rm -rf "$prefix"' EXIT

fail() {
  echo "test_install: $1" >&2
  exit 1
}
cmake --install "$build" --prefix "$prefix" >/dev/null
"$prefix/bin/coterie" --version >/dev/null || fail "the installed program does not start"

unit="$prefix/lib/systemd/system/coterie.service"
grep -qxF "ExecStart=$prefix/bin/coterie serve \$COTERIE_SERVE_FLAGS" "$unit" || fail "the unit starts another program"
if command -v systemd-analyze >/dev/null; then
  # The manual is not where systemd looks for it.
  complaints="$(systemd-analyze verify "$unit" 2>&1 | grep -v "'man coterie(1)'" || true)"
  [[ -z "$complaints" ]] || fail "$complaints"
fi

for command in $("$prefix/bin/coterie" --help | sed -n '/^Subcommands:/,$s/^  \([a-z]*\)  .*/\1/p'); do
  grep -qx "\.B $command" "$prefix/share/man/man1/coterie.1" ||
    fail "the manual does not know $command"
done

completed="$(PATH="$prefix/bin:$PATH" bash -c '
  source "$1"
  COMP_WORDS=(coterie serve --api) COMP_CWORD=2
  _coterie
  echo "${COMPREPLY[@]}"' bash "$prefix/share/bash-completion/completions/coterie")"
[[ "$completed" == "--api-key --api-key-file" ]] || fail "completion of serve --api gives '$completed'"
echo "test_install: program, unit, manual and completion are in place"
