#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, starts the daemon (on the GPU where there is one, else
# on the CPU), sends it a real lidar scan and shows the answer. Runs until Ctrl-C.
# usage: deploy/quickstart.sh [--once]      --once stops after the scan
set -euo pipefail

cd "$(dirname "$0")/.."
once=${1:-}
case $once in
'' | --once) ;;
*)
    sed -n '3,5s/^# //p' "$0" >&2
    exit 2
    ;;
esac

deploy/packages.sh
if [ -z "${CUDACXX:-}" ] && [ -x /usr/local/cuda/bin/nvcc ]; then
    export CUDACXX=/usr/local/cuda/bin/nvcc
fi
cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DVOXELD_TESTS=OFF >/dev/null
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
build/bin/voxeld --rpc "$VOXELD_URL" --http "${VOXELD_HTTP:-127.0.0.1:8420}" 2>"$run/log" &
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
echo "HTTP: http://$http/   (status page; /v1/status, /metrics, /v1/openapi.json)"

if [ "$once" = --once ]; then
    exit 0
fi
echo "rpc:  VOXELD_URL=$VOXELD_URL   log: $run/log"
echo "Ctrl-C stops the daemon."
wait "$daemon"
