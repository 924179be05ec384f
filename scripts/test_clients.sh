#!/usr/bin/env bash
# The official OpenAI and Anthropic clients, and clients that mean no good, against a built coterie.
# scripts/test_clients.sh [program]; COTERIE_CROWD_SECONDS says how long eight clients ask side by side (default: 20).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
COTERIE_PROGRAM="$(realpath "${1:-build/release/coterie}")"
export COTERIE_PROGRAM
cd tests/clients
npm ci --no-audit --no-fund --loglevel=error
npm test
