#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests and measures on a machine with a GPU; CI has none. Needs nvcc, CMake and a generator, and
# nothing else: builds the engine, runs its tests on the GPU, times it, and runs the tests again
# under compute-sanitizer. A step that fails does not keep the others from running; the exit
# status and failed.log report it.
# usage: deploy/gpu.sh [STEP...]
#        steps: test bench memcheck racecheck (default: test bench)
#        VOXELD_OUT        where logs and figures go (default build/gpu/out)
#        VOXELD_GPU_TESTS  which tests, a regular expression (default: all on the GPU)
#        VOXELD_GPU_BENCH  which benchmarks, likewise, by the names of their files
#        VOXELD_DATA       scans and traces (default ../shared/data); without them the
#                          benchmarks that need one are left out
#        VOXELD_TEST_SLOW  sanitizers run one part in so many of random rounds (default 8)
set -uo pipefail

cd "$(dirname "$0")/.." || exit
out=$(realpath -m "${VOXELD_OUT:-build/gpu/out}")
data=$(realpath -m "${VOXELD_DATA:-../shared/data}")
build=build/gpu/release
tests=${VOXELD_GPU_TESTS:-.}
benches=${VOXELD_GPU_BENCH:-.}
scan=tests/data/spconv_benchmark_pc.npy
frame=$data/lidar/centerpoint_in_indices_zyx.int32.tensor
drive=(--cloud "$data/lidar/kitti_seq_000000.bin" --second "$data/lidar/kitti_seq_000001.bin")
balls=tests/data/dag_traces/epiccitadel_large_edits.csv
steps=("$@")
if [ ${#steps[@]} -eq 0 ]; then
    steps=(test bench)
fi
if [ -z "${CUDACXX:-}" ] && [ -x /usr/local/cuda/bin/nvcc ]; then
    export CUDACXX=/usr/local/cuda/bin/nvcc
fi
mkdir -p "$out"
: >"$out/failed.log"

say() {
    printf '\n== %s (%s s)\n' "$1" "$SECONDS"
}

failed() { # what
    echo "$1" | tee -a "$out/failed.log"
}

build() {
    if ! cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DVOXELD_ENGINE_ONLY=ON \
        -DVOXELD_CUDA=ON -DVOXELD_CUDA_ARCHITECTURES=90-real >"$out/build.log" 2>&1 ||
        ! cmake --build "$build" -j "$(nproc)" >>"$out/build.log" 2>&1; then
        tail -n 40 "$out/build.log"
        failed build
        exit 1
    fi
    nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
}

# Half as many at once as there are cores: they share one GPU.
run_test() {
    ctest --test-dir "$build" --output-on-failure -j $((($(nproc) + 1) / 2)) \
        -R "^test_gpu_.*($tests)" >"$out/test.log" 2>&1 ||
        failed "test: $(grep -c '\*\*\*' "$out/test.log") programs"
    tail -n 12 "$out/test.log"
}

# $out/bench_NAME.txt, and its end here.
bench() { # name, program, arguments...
    local name=$1
    shift
    if [[ "$name" =~ $benches ]]; then
        timeout 120 "$build/bin/$1" --backend cuda "${@:2}" >"$out/bench_$name.txt" 2>&1 ||
            failed "bench $name: $?"
        printf '\n-- %s\n' "$name"
        tail -n 25 "$out/bench_$name.txt"
    fi
}

run_bench() {
    bench ball bench_gpu_svdag
    bench twelve_balls bench_gpu_svdag --bits 4 --replay "$balls"
    bench versions bench_gpu_svdag_versions
    bench collect bench_gpu_svdag_collect
    bench render bench_render --depth 13 --width 1920 --height 1080 --repeat 20
    bench render_scan bench_render --depth 12 --width 1920 --height 1080 --repeat 20 \
        --cloud "$scan"
    bench tables bench_gpu_svdag_tables --repeat 3 --part table
    bench tables_load bench_gpu_svdag_tables --repeat 3 --part load
    bench conv_fp16 bench_conv --precision 2
    bench conv_tf32 bench_conv --precision 1
    bench conv_fp16_005 bench_conv --precision 2 --voxel-mm 50
    bench maps bench_sparse_maps --file "$scan"
    for size in 0.1 0.05; do
        for precision in fp16 tf32; do
            bench "minkunet42_${precision}_$size" bench_network --network minkunet42 \
                --cloud "$scan" --size $size --precision $precision --repeat 51
        done
    done
    if [ -d "$data/lidar" ]; then
        bench scan bench_gpu_svdag_scan "${drive[@]}"
        bench query bench_gpu_svdag_query "${drive[@]:0:2}"
        bench field bench_field "${drive[@]:0:2}"
        bench second bench_network --network second --coords "$frame" --precision fp16 \
            --repeat 101
        bench centerpoint bench_network --network centerpoint --coords "$frame" \
            --precision fp16 --repeat 101
    else
        echo "left out: scan query second centerpoint (no $data/lidar)"
    fi
    bench hashmap bench_hashmap --part table
    bench voxelize bench_voxelize --file "$scan"
    bench volume bench_volume
    bench surface bench_surface
    bench refine bench_refine --radius-mm 150 --voxel-mm 1.1 --height 320 --rounds 2 \
        --iterations 5 --subvolume-mm 60 --work-ms 1000
}

# compute-sanitizer slows kernels by tens, so random rounds are few.
sanitize() { # tool
    local tool=$1 program name
    for program in "$build"/bin/test_gpu_*; do
        name=$(basename "$program")
        if [[ "$name" =~ $tests ]]; then
            VOXELD_TEST_SLOW=${VOXELD_TEST_SLOW:-8} timeout 300 compute-sanitizer \
                --tool "$tool" --error-exitcode 9 "$program" >"$out/$tool-$name.log" 2>&1
            local rc=$?
            echo "$name $rc $(tail -n 1 "$out/$tool-$name.log")" | tee -a "$out/$tool.txt"
            [ $rc -eq 0 ] || failed "$tool $name: $rc"
        fi
    done
}

run_memcheck() {
    sanitize memcheck
}

run_racecheck() {
    sanitize racecheck
}

say build
build
for step in "${steps[@]}"; do
    say "$step"
    "run_$step"
done
say end
cat "$out/failed.log"
[ ! -s "$out/failed.log" ]
