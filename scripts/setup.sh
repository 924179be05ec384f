#!/usr/bin/env bash
# Installs the Debian packages that building, testing and running need. Asks for nothing that is already there.
# --ci adds what only the checks of the whole project need.
set -euo pipefail

packages=(
  g++ cmake ninja-build pkg-config
  libfmt-dev libspdlog-dev nlohmann-json3-dev libcli11-dev libpcre2-dev libxxhash-dev
  libcpp-httplib-dev libssl-dev prometheus-cpp-dev
  libgtest-dev libgmock-dev python3 python3-jinja2
)
if [[ "${1:-}" == "--ci" ]]; then
  packages+=(clang clang-format clang-tidy libclang-rt-14-dev openssl)
  # The tests of clients and of the page want Node 18 or later: Debian's, unless another one is there.
  command -v npm >/dev/null || packages+=(nodejs npm)
  packages+=(chromium)
fi

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

sudo=()
if [[ $EUID -ne 0 ]]; then
  command -v sudo >/dev/null || {
    echo "setup: these packages are missing and need root to install: ${missing[*]}" >&2
    exit 1
  }
  sudo=(sudo)
fi
echo "setup: installing ${missing[*]}"
"${sudo[@]}" apt-get update -qq
DEBIAN_FRONTEND=noninteractive "${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
