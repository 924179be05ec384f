#!/usr/bin/env bash
# From a fresh Debian 12 machine to an answer: installs the packages, builds, and asks the model that ships with the
# project. scripts/quickstart.sh ["a question"]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/setup.sh
scripts/build.sh release coterie >&2
echo >&2
# A model this small knows its answers best when it is not left to chance.
exec build/release/coterie run --temp 0 -p "${1:-What is a volcano?}"
