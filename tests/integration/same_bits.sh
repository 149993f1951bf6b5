#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# This machine's build and another architecture's, in an emulator, must give the same bytes:
# either voxelctl asks either daemon for a real scan's voxels, and for the self-test's digest.
# usage: same_bits.sh BIN_DIR OTHER_BIN_DIR EMULATOR...
set -euo pipefail

if [ $# -lt 3 ]; then
    sed -n '5s/^# //p' "$0" >&2
    exit 2
fi
cd "$(dirname "$0")/../.."
scan=tests/data/spconv_benchmark_pc.npy
n_voxels=125565 # as counted with NumPy (tests/integration/support/oracle.py)
own=$(realpath "$1")
other=$(realpath "$2")
shift 2
emulator=("$@")
work=$(mktemp -d)
daemons=()

stop() {
    local daemon
    for daemon in "${daemons[@]}"; do
        kill -TERM "$daemon" 2>/dev/null || true
    done
    wait
    rm -rf "$work"
}
trap stop EXIT

fail() {
    echo "same_bits.sh: $*" >&2
    exit 1
}

start() { # name, command...
    local name=$1
    shift
    "$@" --backend cpu --rpc "ipc://$work/$name.sock" --http '' --data-dir "$work/$name" \
        2>"$work/$name.log" &
    daemons+=($!)
    for _ in $(seq 2400); do
        if grep -q '"msg":"ready"' "$work/$name.log"; then
            return
        fi
        kill -0 "${daemons[-1]}" 2>/dev/null || break
        sleep 0.05
    done
    cat "$work/$name.log" >&2
    fail "the daemon \"$name\" did not become ready"
}

# What one voxelctl gets from one daemon: every array as a file, and what it printed but for
# the times.
ask() { # directory for the answers, daemon, voxelctl...
    local out=$work/$1 url=ipc://$work/$2.sock tensor
    shift 2
    mkdir "$out"
    for tensor in coords counts inverse first_index mean sum min max first; do
        "$@" --url "$url" --timeout 50 voxelize "$scan" --size 0.1 \
            --reduce mean,sum,min,max,first --tensor "$tensor" --out "$out/$tensor.npy" \
            >"$out/text"
    done
    sed -n 's/^\([0-9,]* voxels from [0-9,]* points\).*/\1/p' "$out/text" >"$out/count"
    "$@" --url "$url" --timeout 50 voxelize "$scan" --size 0.05,0.05,0.1 --rule spconv \
        --range=-50,-50,-3,50,50,1 --order first --max-points 5 --max-voxels 16000 \
        --out "$out/hard.ply" >/dev/null
    "$@" --url "$url" --timeout 50 self-test --duration-ms 1 --json |
        grep -o '"digest": "[0-9a-f]*"' >"$out/digest"
    rm "$out/text"
}

start own "$own/voxeld"
start other "${emulator[@]}" "$other/voxeld"
ask own_asks_own own "$own/voxelctl"
ask own_asks_other other "$own/voxelctl"
ask other_asks_own own "${emulator[@]}" "$other/voxelctl"
ask other_asks_other other "${emulator[@]}" "$other/voxelctl"

voxels=$(tr -d , <"$work/own_asks_own/count")
if [ "${voxels%% *}" != $n_voxels ]; then
    fail "$voxels, not $n_voxels"
fi
for answers in own_asks_other other_asks_own other_asks_other; do
    diff -r "$work/own_asks_own" "$work/$answers" || fail "$answers differs"
done
echo "$voxels, $(cat "$work/own_asks_own/digest"): equal bytes from both builds"
