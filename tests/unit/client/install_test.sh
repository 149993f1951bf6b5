#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the client to an empty place and builds against it as strangers do: the header
# alone in C11 and C++17, a program by pkg-config, one by find_package. Then runs them.
# usage: install_test.sh BUILD_DIR LIBDIR CC CXX
#        EMULATOR   runs what is built, SYSROOT has its libraries and TOOLCHAIN is the
#                   toolchain file of CMake, where it is for another architecture
set -eu

build=$1
libdir=$2
cc=$3
cxx=$4
emulator=${EMULATOR:-}
sysroot=${SYSROOT:+--sysroot=$SYSROOT}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix

cmake -DCMAKE_INSTALL_PREFIX="$prefix" -P "$build/client/cmake_install.cmake" >/dev/null
test -x "$prefix/bin/voxelctl"
test -f "$prefix/share/man/man1/voxelctl.1"
test -x "$prefix/libexec/voxeld/bench_load"
test -x "$prefix/share/voxeld/plot_load.py"
$emulator "$prefix/bin/voxelctl" --version
if [ -z "$emulator" ]; then # which would not start a program for voxelctl
    "$prefix/bin/voxelctl" bench --version
fi

cat >"$work/consumer.c" <<'PROGRAM'
#include <stdio.h>
#include <voxeld.h>
int main(void)
{
    struct voxeld_options options = {0};
    struct voxeld_client *client;
    struct voxeld_error error;
    options.url = "ipc:///nowhere/voxeld.sock";
    if (voxeld_connect(&options, &client, &error) != VOXELD_UNAVAILABLE) {
        return 1;
    }
    printf("%s: %s\n", voxeld_version(), error.message);
    return 0;
}
PROGRAM
cp "$work/consumer.c" "$work/consumer.cpp"
echo '#include <voxeld.h>' >"$work/alone.c"

flags="-Wall -Wextra -Wconversion -pedantic -Werror -I$prefix/include $sysroot"
# shellcheck disable=SC2086
"$cc" -std=c11 $flags -fsyntax-only "$work/alone.c"
# shellcheck disable=SC2086
"$cxx" -std=c++17 $flags -fsyntax-only -x c++ "$work/alone.c"

PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig
LD_LIBRARY_PATH=$prefix/$libdir
export PKG_CONFIG_PATH LD_LIBRARY_PATH
# shellcheck disable=SC2046,SC2086
"$cc" -std=c11 $sysroot "$work/consumer.c" $(pkg-config --cflags --libs voxeld) \
    -o "$work/by_pkg_config"
$emulator "$work/by_pkg_config"
# shellcheck disable=SC2046,SC2086
"$cxx" -std=c++17 $sysroot "$work/consumer.cpp" $(pkg-config --cflags --libs voxeld) \
    -o "$work/in_cxx"
$emulator "$work/in_cxx"

mkdir "$work/project"
cp "$work/consumer.c" "$work/project/"
cat >"$work/project/CMakeLists.txt" <<'PROJECT'
cmake_minimum_required(VERSION 3.22)
project(consumer LANGUAGES C)
find_package(voxeld 0.3 REQUIRED)
add_executable(consumer consumer.c)
target_link_libraries(consumer PRIVATE voxeld::voxeld)
PROJECT
if [ -n "${TOOLCHAIN:-}" ]; then # which looks for packages in the sysroot alone
    set -- --toolchain "$TOOLCHAIN" -DCMAKE_SYSROOT="$SYSROOT" \
        -Dvoxeld_DIR="$prefix/$libdir/cmake/voxeld"
else
    set -- -DCMAKE_PREFIX_PATH="$prefix"
fi
cmake -S "$work/project" -B "$work/project/build" -DCMAKE_C_COMPILER="$cc" "$@" >/dev/null
cmake --build "$work/project/build" >/dev/null
$emulator "$work/project/build/consumer"

# Nothing but the public API may be visible.
leaked=$(nm -D --defined-only "$prefix/$libdir/libvoxeld.so" | awk '{print $3}' |
    grep -v -E '^voxeld_[a-z]' || true)
if [ -n "$leaked" ]; then
    echo "libvoxeld.so exports: $leaked" >&2
    exit 1
fi
if nm -D --defined-only "$prefix/$libdir/libvoxeld.so" | grep -q voxeld__; then
    echo "libvoxeld.so exports generated code" >&2
    exit 1
fi
echo installed and used
