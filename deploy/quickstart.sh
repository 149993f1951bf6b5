#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, starts the daemon (on the GPU where there is one, else
# on the CPU), sends it a real lidar scan and shows the answer. Runs until Ctrl-C.
# CUDA kernels take most of a build's time: they are compiled where a GPU answers, for that GPU
# alone, and without the papers' stores, which only comparisons need.
# usage: deploy/quickstart.sh [--once] [--cuda] [--token]
#        --once   stops after the scan
#        --cuda   compiles CUDA although no GPU answers here
#        --token  HTTP wants a token, which keeps this machine's other users out; the URL that is
#                 printed logs a browser in
set -euo pipefail

cd "$(dirname "$0")/.."
once=
cuda=OFF
needs_token=false
while [ $# -gt 0 ]; do
    case $1 in
    --once) once=--once ;;
    --cuda) cuda=ON ;;
    --token) needs_token=true ;;
    *)
        echo "quickstart.sh: unknown option '$1'" >&2
        sed -n '7,11s/^# //p' "$0" >&2
        exit 2
        ;;
    esac
    shift
done

deploy/packages.sh
if [ -z "${CUDACXX:-}" ] && [ -x /usr/local/cuda/bin/nvcc ]; then
    export CUDACXX=/usr/local/cuda/bin/nvcc
fi
# "9.0" a device; empty without a driver or a device. The kernels need 8.0. Where nvcc is older than
# the device, or devices differ, the default architectures' PTX is compiled by the driver.
capabilities=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null || true)
architectures=()
lowest=$(sort -V <<<"$capabilities" | head -n 1 | tr -d ' ')
if [[ $lowest =~ ^[0-9]+\.[0-9]+$ ]] && [ "${lowest%.*}" -ge 8 ]; then
    nvcc=${CUDACXX:-$(command -v nvcc || true)}
    if [ -n "$nvcc" ]; then
        cuda=ON
        if [ "$(sort -u <<<"$capabilities" | wc -l)" -eq 1 ] &&
            "$nvcc" --list-gpu-arch | grep -qx "compute_${lowest/./}"; then
            architectures=("-DVOXELD_CUDA_ARCHITECTURES=${lowest/./}-real")
        fi
    else
        echo "A GPU answers, but there is no nvcc: building for the CPU." \
            "Install the CUDA toolkit or set CUDACXX to use the GPU."
    fi
fi
cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DVOXELD_TESTS=OFF \
    -DVOXELD_PAPER=OFF -DVOXELD_CUDA="$cuda" "${architectures[@]}" >/dev/null
cmake --build build

run=$(mktemp -d "${TMPDIR:-/tmp}/voxeld.XXXXXX")
daemon=
stop() {
    if [ -n "$daemon" ] && kill -TERM "$daemon" 2>/dev/null; then
        wait "$daemon" || true
    fi
    rm -rf "$run"
}
trap stop EXIT
trap 'exit 0' INT TERM

export VOXELD_URL="ipc://$run/voxeld.sock"
printf '{"networks_dir": "%s/configs/networks", "http": {"require_token": %s}}\n' \
    "$PWD" "$needs_token" >"$run/voxeld.json"
build/bin/voxeld --config "$run/voxeld.json" --rpc "$VOXELD_URL" \
    --http "${VOXELD_HTTP:-127.0.0.1:8420}" 2>"$run/log" &
daemon=$!
for _ in $(seq 200); do
    if grep -q '"msg":"ready"' "$run/log"; then
        break
    fi
    if ! kill -0 "$daemon" 2>/dev/null; then
        cat "$run/log" >&2
        exit 1
    fi
    sleep 0.05
done
if ! grep -q '"msg":"ready"' "$run/log"; then
    echo "the daemon did not become ready within 10 s:" >&2
    cat "$run/log" >&2
    exit 1
fi
http=$(sed -n 's/.*"msg":"ready".*"http":"\([^"]*\)".*/\1/p' "$run/log")

echo
build/bin/voxelctl info
echo
echo "\$ voxelctl voxelize tests/data/spconv_benchmark_pc.npy --size 0.1"
build/bin/voxelctl voxelize tests/data/spconv_benchmark_pc.npy --size 0.1
echo
echo "HTTP: http://$http/   (dashboard; /v1/status, /metrics, /v1/openapi.json)"
if [ "$needs_token" = true ]; then
    echo "Log in: $(build/bin/voxelctl token login)   (for an hour; voxelctl token login makes another)"
fi

if [ "$once" = --once ]; then
    exit 0
fi
echo "rpc:  VOXELD_URL=$VOXELD_URL   log: $run/log"
echo "Ctrl-C stops the daemon."
wait "$daemon"
