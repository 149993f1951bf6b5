#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, then lints, builds and runs every test: partial builds, CUDA kernels
# and 64-bit Arm in emulators, fuzz targets, AddressSanitizer and UBSan, ThreadSanitizer, and last the
# release build, with CUDA compiled in where nvcc is found. Ends with ctest's summary; stops
# at the first failure. The release build runs all of every test; engine, aarch64 and thread
# run what tells something new there, with fewer random rounds (VOXELD_TEST_SLOW).
# usage: deploy/test.sh [STEP...]
#        steps: lint client engine emulator aarch64 fuzz address thread release
#        VOXELD_BUILD_ROOT    where the builds go (default build/test)
#        VOXELD_TEST_BACKEND  where the integration tests' daemons compute (default cpu; cuda:0)
set -euo pipefail

cd "$(dirname "$0")/.."
root=${VOXELD_BUILD_ROOT:-build/test}
jobs=$(nproc)
steps=("$@")
if [ ${#steps[@]} -eq 0 ]; then
    steps=(lint client engine emulator aarch64 fuzz address thread release)
fi
if [ -z "${CUDACXX:-}" ] && [ -x /usr/local/cuda/bin/nvcc ]; then
    export CUDACXX=/usr/local/cuda/bin/nvcc
fi

say() {
    printf '\n== %s (%s s)\n' "$1" "$SECONDS"
}

configure() { # directory, options...
    local directory=$1
    shift
    cmake -S . -B "$root/$directory" -G Ninja "$@" >"$root/$directory.log" ||
        { cat "$root/$directory.log" && return 1; }
}

build() { # directory
    cmake --build "$root/$1" -- -j "$jobs" >"$root/$1.log" 2>&1 ||
        { tail -n 60 "$root/$1.log" && return 1; }
}

check() { # directory, ctest options...
    local directory=$1
    shift
    # A test that hangs runs once more: nng 1.5.2 may wait for ever as a socket closes. One that
    # fails does not.
    ctest --test-dir "$root/$directory" --output-on-failure -j "$jobs" \
        --repeat after-timeout:2 "$@"
}

run_lint() {
    deploy/lint.sh "$root"
}

run_client() { # what a robot builds: no CUDA, no server libraries
    configure client -DVOXELD_CLIENT_ONLY=ON -DCMAKE_BUILD_TYPE=Release
    build client
    check client
}

run_engine() { # what a bare machine builds: CMake and a compiler
    configure engine -DVOXELD_ENGINE_ONLY=ON -DVOXELD_CUDA=OFF -DCMAKE_BUILD_TYPE=Release
    build engine
    # That all is there; the release build has the same code and flags, and runs the rest.
    check engine -R 'gpu_(core|digests|facts|hash_basic|network|voxelize|dag_(edit|query))$'
}

# CUDA kernels on the CPU: a fault of theirs is found here, where no GPU is.
run_emulator() {
    if [ "$(uname -m)" != x86_64 ]; then
        echo "skipped: the emulator switches fibers of x86-64 only"
        return
    fi
    configure emulator -DVOXELD_CUDA=EMULATED -DCMAKE_BUILD_TYPE=Release
    build emulator
    VOXELD_EMULATOR_RACES=1 VOXELD_TEST_SLOW=64 check emulator -R \
        '^test_(emulator.*|gpu_(core|hash_basic|voxelize|dag_(store|carve|scan|grid|planes|edit_alloc)))$'
}

# Everything but CUDA for a robot's Arm computer: unit tests in qemu-user, then both
# architectures' daemons and clients against each other, down to the last bit.
run_aarch64() {
    if [ "$(uname -m)" = aarch64 ]; then
        echo "skipped: this machine is aarch64 itself, and all other steps test it"
        return
    fi
    if ! deploy/packages.sh aarch64 || ! deploy/aarch64-root.sh "$root/aarch64-root"; then
        if grep -q '^ID=debian' /etc/os-release; then
            return 1
        fi
        echo "SKIPPED aarch64: this system's package sources have no arm64 packages (on" \
            "Ubuntu they are on ports.ubuntu.com); Debian 12 has them"
        return
    fi
    configure aarch64 --toolchain deploy/aarch64.cmake -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_SYSROOT="$(realpath "$root/aarch64-root")" -DVOXELD_CUDA=OFF
    build aarch64
    VOXELD_TEST_SLOW=8 check aarch64 -E '^bench_|_replayed$|_drive$'
    configure native -DCMAKE_BUILD_TYPE=Release -DVOXELD_TESTS=OFF -DVOXELD_CUDA=OFF
    build native
    tests/integration/same_bits.sh "$root/native/bin" "$root/aarch64/bin" \
        qemu-aarch64 -L "$root/aarch64-root"
}

run_fuzz() {
    configure fuzz -DVOXELD_FUZZ=ON -DVOXELD_TESTS=OFF -DVOXELD_CUDA=OFF \
        -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_C_COMPILER=clang-14
    build fuzz
    check fuzz
}

run_address() {
    configure address -DVOXELD_SANITIZE=address -DVOXELD_CUDA=OFF \
        -DCMAKE_BUILD_TYPE=RelWithDebInfo
    build address
    VOXELD_TEST_SLOW=4 check address
}

run_thread() {
    configure thread -DVOXELD_SANITIZE=thread -DVOXELD_CUDA=OFF \
        -DCMAKE_BUILD_TYPE=RelWithDebInfo
    build thread
    # Not what has one thread alone, or threads only in what other tests run too.
    VOXELD_TEST_SLOW=8 check thread -E "^bench_|_traces|\
test_client_(write|files|las|arrays|json|ctl_|voxelctl)|test_server_durable_planes|\
integration_(net_reference|net_places|bench|memory|tools|examples|python.*|layers|names|bundle|.*_tools)$"
}

run_release() { # one CUDA architecture, so that the build fits a small machine
    configure release -DCMAKE_BUILD_TYPE=Release -DVOXELD_CUDA=AUTO \
        -DVOXELD_CUDA_ARCHITECTURES="${VOXELD_CUDA_ARCHITECTURES:-90-real}"
    build release
    check release
}

deploy/packages.sh test
mkdir -p "$root"
for step in "${steps[@]}"; do
    say "$step"
    "run_$step"
done
