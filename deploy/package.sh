#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds Debian packages (voxeld, voxelctl, libvoxeld0.3, libvoxeld-dev) and the Python wheel.
# The wheel needs pip; $PYTHON is the interpreter that has it (default python3).
# usage: deploy/package.sh [--out FOLDER] [--build FOLDER] [--cuda]
#        --out    where they go (default build/packages)
#        --build  where to compile (default build/package), for builds that go on where they stopped
#        --cuda   with the CUDA backend, which needs nvcc
set -euo pipefail

top=$(realpath "$(dirname "$0")/..")
out=$top/build/packages
build=$top/build/package
cuda=OFF
while [ $# -gt 0 ]; do
    case $1 in
    --out | --build)
        if [ $# -lt 2 ]; then
            echo "$1 needs a value" >&2
            exit 2
        fi
        printf -v "${1#--}" %s "$(realpath -m "$2")"
        shift
        ;;
    --cuda) cuda=ON ;;
    *)
        sed -n '5,8s/^# //p' "$0" >&2
        exit 2
        ;;
    esac
    shift
done
cd "$top"

deploy/packages.sh
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr \
    -DVOXELD_TESTS=OFF -DVOXELD_PAPER=OFF -DVOXELD_CUDA="$cuda" >/dev/null
cmake --build "$build" >&2
rm -rf "$out"
mkdir -p "$out"
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH
(cd "$build" && cpack -B "$out" >&2)
rm -rf "$out/_CPack_Packages"
# Offline where the builder is installed; else pip fetches it.
isolation=()
if "${PYTHON:-python3}" -c 'import flit_core' 2>/dev/null; then
    isolation=(--no-build-isolation --no-index)
fi
"${PYTHON:-python3}" -m pip wheel --quiet --no-deps --no-cache-dir "${isolation[@]}" \
    --wheel-dir "$out" ./client/python >&2
chmod 644 "$out"/*
ls "$out"
