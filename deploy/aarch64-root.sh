#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fills a folder with the libraries and headers that voxeld needs on 64-bit Arm, as Debian's
# packages have them: a sysroot for deploy/aarch64.cmake. This machine's own packages and
# package lists stay as they are, and nobody needs to be root.
# usage: deploy/aarch64-root.sh DIR
set -euo pipefail
export LC_ALL=C

if [ $# -ne 1 ]; then
    sed -n '6s/^# //p' "$0" >&2
    exit 2
fi
root=$(realpath -m "$1")
packages=(libc6-dev libgnutls28-dev libjansson-dev libjpeg-dev libmicrohttpd-dev libnng-dev
    libpng-dev libprotobuf-c-dev libsqlite3-dev libwslay-dev nettle-dev zlib1g-dev)

# What a finished folder was made of; another list makes another folder.
if [ "$(cat "$root/.packages" 2>/dev/null)" = "${packages[*]}" ]; then
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/cache/archives/partial" "$work/lists/partial" "$work/root"
: >"$work/status" # of a machine where nothing is installed

# apt with the sources, keys and proxies of this machine, and nothing else of it.
for_arm64() {
    apt-get -q -o APT::Architecture=arm64 -o APT::Architectures::=arm64 \
        -o APT::Sandbox::User=root -o APT::Install-Recommends=false \
        -o Acquire::Languages=none -o Dir::Cache="$work/cache" -o Dir::State="$work" \
        -o Dir::State::Lists="$work/lists" -o Dir::State::Status="$work/status" "$@"
}

for_arm64 update
if ! for_arm64 -y --download-only install "${packages[@]}"; then
    echo "aarch64-root.sh: no arm64 packages of ${packages[*]} in this machine's sources" >&2
    exit 1
fi

for package in "$work"/cache/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar -x -C "$work/root" --exclude './usr/share/doc' \
        --exclude './usr/share/man' --exclude './etc' --exclude './var'
done
# A link to /lib/... means the sysroot's /lib, not this machine's.
find "$work/root" -type l -lname '/*' -printf '%P\t%l\n' |
    while IFS=$'\t' read -r link target; do
        ln -sfn "$(realpath -ms --relative-to="$(dirname "/$link")" "$target")" \
            "$work/root/$link"
    done
echo "${packages[*]}" >"$work/root/.packages"
rm -rf "$root"
mkdir -p "$(dirname "$root")"
mv "$work/root" "$root"
