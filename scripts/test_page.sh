#!/usr/bin/env bash
# The page: its types, its parts, that web/dist is what its sources give, and all of it in a browser against a built
# coterie. scripts/test_page.sh [program]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
COTERIE_PROGRAM="$(realpath "${1:-build/release/coterie}")"
export COTERIE_PROGRAM
cd web
npm ci --no-audit --no-fund --loglevel=error
npm run --silent check
npm run --silent test

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
npm run --silent build -- --outDir "$fresh" --emptyOutDir --logLevel warn
diff -r dist "$fresh" || {
  echo "web/dist is not what web/src gives: run npm --prefix web run build, and commit it" >&2
  exit 1
}
npm run --silent test:page
