#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages of deploy/packages.txt that are missing.
# usage: deploy/packages.sh [test | aarch64 | package]  adds those that only the tests need, or
#                                                       only cross-compiling for 64-bit Arm, or
#                                                       only the proofs of packages
set -euo pipefail

list=$(dirname "$0")/packages.txt
kind=${1:-}
missing=()
distribution=$(. /etc/os-release && echo "${ID:-}")
while read -r name only_for only_on program; do
    case $name in '' | '#'*) continue ;; esac
    if [ -n "${only_on:-}" ] && [ "$only_on" != "$distribution" ]; then
        continue
    fi
    if [ -n "${only_for:-}" ] && [ "$only_for" != "$kind" ]; then
        continue
    fi
    if [ -n "${program:-}" ] && command -v "$program" >/dev/null; then
        continue
    fi
    if ! dpkg-query -W -f='${Status}' "$name" 2>/dev/null | grep -q '^install ok installed'; then
        missing+=("$name")
    fi
done <"$list"

if [ ${#missing[@]} -eq 0 ]; then
    exit 0
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    as_root=(sudo)
fi
echo "installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -q
"${as_root[@]}" apt-get install -q -y --no-install-recommends "${missing[@]}"
