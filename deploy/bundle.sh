#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packs the daemon, voxelctl with its load tool, libvoxeld and every shared library they need but glibc's and
# the GPU driver's into one archive that runs wherever it is unpacked. Equal inputs give an
# equal archive, byte for byte.
# usage: deploy/bundle.sh [--out FILE.tar.gz] [--from BUILD_DIR]
#        --out   default build/voxeld-VERSION-linux-ARCH.tar.gz
#        --from  packs what was built there instead of building a release first
set -euo pipefail
export LC_ALL=C

out=
from=
while [ $# -gt 0 ]; do
    case $1 in
    --out | --from)
        if [ $# -lt 2 ]; then
            echo "$1 needs a value" >&2
            exit 2
        fi
        printf -v "${1#--}" %s "$(realpath -m "$2")"
        shift 2
        ;;
    *)
        sed -n '6,8s/^# //p' "$0" >&2
        exit 2
        ;;
    esac
done
cd "$(dirname "$0")/.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

die() {
    echo "bundle.sh: $*" >&2
    exit 1
}

build_release() {
    deploy/packages.sh
    if [ -z "${CUDACXX:-}" ] && [ -x /usr/local/cuda/bin/nvcc ]; then
        export CUDACXX=/usr/local/cuda/bin/nvcc
    fi
    cmake -S . -B build/bundle -G Ninja -DCMAKE_BUILD_TYPE=Release -DVOXELD_TESTS=OFF \
        -DVOXELD_CUDA=AUTO -DVOXELD_PAPER=ON -DCMAKE_INSTALL_LIBDIR=lib \
        -DCMAKE_INSTALL_LIBEXECDIR=libexec >/dev/null
    cmake --build build/bundle
    from=$PWD/build/bundle
}

# What every Linux brings itself, in the version that suits its kernel or driver.
is_systems() { # name of a library
    case $1 in
    linux-vdso.so.* | ld-linux*.so.* | libc.so.* | libm.so.* | libpthread.so.* | \
        libdl.so.* | librt.so.* | libresolv.so.* | libutil.so.* | libcuda.so.*) return 0 ;;
    esac
    return 1
}

# The licence of the package that owns a library, and the full texts which that names.
copy_licence() { # the library's file
    local file package text
    file=$(realpath "$1")
    # dpkg knows the path from before /lib became a link to /usr/lib, or the one from after.
    package=$(dpkg-query -S "$file" "${file#/usr}" 2>/dev/null | head -n 1 | cut -d: -f1) ||
        true
    text=/usr/share/doc/$package/copyright
    if [ -z "$package" ] || [ ! -r "$text" ]; then
        die "$file belongs to no package with a licence; nothing is packed without one"
    fi
    mkdir -p "$root/licenses/common"
    cp -L "$text" "$root/licenses/$package"
    for text in $(grep -oh '/usr/share/common-licenses/[A-Za-z0-9.-]*[A-Za-z0-9]' "$text" |
        sort -u); do
        if [ -r "$text" ]; then
            cp -L "$text" "$root/licenses/common/"
        fi
    done
}

copy_libraries() { # programs and libraries that need them
    local name path
    ldd "$@" | sed -n 's/^\t\([^ ]*\) => \([^(]*[^( ]\).*$/\1\t\2/p' | sort -u >"$work/needed"
    while IFS=$'\t' read -r name path; do
        if is_systems "$name"; then
            continue
        fi
        if [ ! -r "$path" ]; then
            die "a library is missing here: $name ($path)"
        fi
        cp -L "$path" "$root/lib/$name"
        chmod 644 "$root/lib/$name"
        copy_licence "$path"
    done <"$work/needed"
}

# Where a file looks for libraries depends on where it lies and on nothing else.
set_paths() {
    local file
    for file in "$root"/bin/*; do
        patchelf --set-rpath '$ORIGIN/../lib' "$file"
    done
    for file in "$root"/libexec/voxeld/*; do
        patchelf --set-rpath '$ORIGIN/../../lib' "$file"
    done
    for file in "$root"/lib/*.so.*; do
        if [ ! -L "$file" ]; then
            patchelf --set-rpath '$ORIGIN' "$file"
        fi
    done
}

describe_gpu() {
    local nvcc
    nvcc=$(sed -n 's/^CMAKE_CUDA_COMPILER:[A-Z]*=//p' "$from/CMakeCache.txt")
    if [ ! -x "$nvcc" ]; then
        echo "Built without the CUDA backend: it computes on the CPU."
        return
    fi
    echo "For the GPU it needs NVIDIA's driver, of CUDA $("$nvcc" --version |
        sed -n 's/.*release \([0-9.]*\).*/\1/p') or newer; without one it computes on the CPU."
}

write_readme() {
    local glibc
    glibc=$(objdump -T "$root"/bin/* "$root"/libexec/voxeld/* "$root"/lib/*.so.* | grep -o 'GLIBC_2\.[0-9]*' |
        sort -uV | tail -n 1)
    cat >"$root/README" <<END
voxeld $version for Linux on $machine

It needs glibc ${glibc#GLIBC_} or newer and nothing else; unpack it anywhere.
$(describe_gpu)

    bin/voxeld --rpc ipc:///tmp/voxeld.sock
    bin/voxelctl --url ipc:///tmp/voxeld.sock info
    bin/voxelctl --url ipc:///tmp/voxeld.sock voxelize scan.pcd --size 0.1
    bin/voxelctl --url ipc:///tmp/voxeld.sock bench --concurrency 1,2,4,8 --csv load.csv

configs/README.md explains every key of the configuration. As a service, with this folder in
/opt/voxeld:

    useradd --system --shell /usr/sbin/nologin voxeld
    install -D -m 644 configs/voxeld.json /etc/voxeld/voxeld.json
    cp voxeld.service voxeld.socket /etc/systemd/system/
    systemctl enable --now voxeld.socket voxeld.service

voxeld is under the Apache License 2.0 (LICENSE); NOTICE names the works of others in it. lib/ holds libraries of the system that it
was built on, unchanged but for where they look for each other; licenses/ holds their
licences. A daemon with the CUDA backend contains NVIDIA's CUDA runtime, under the CUDA
Toolkit's licence agreement (its attachment A lists what may be passed on).
END
}

pack() {
    local time=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
    mkdir -p "$(dirname "$out")"
    tar -C "$work" --format=gnu --sort=name --mtime="@$time" --owner=0 --group=0 \
        --numeric-owner --mode=u=rwX,go=rX -cf "$work/bundle.tar" "$(basename "$root")"
    gzip -n -9 "$work/bundle.tar"
    # Beside its place first, so that nobody ever sees half of it.
    cp "$work/bundle.tar.gz" "$out.part"
    mv "$out.part" "$out"
}

if [ -z "$from" ]; then
    build_release
fi
for tool in patchelf objdump dpkg-query; do
    command -v "$tool" >/dev/null || die "$tool is missing (deploy/packages.sh installs it)"
done
if [ ! -r "$from/CMakeCache.txt" ]; then
    die "there is no build in $from"
fi
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$from/CMakeCache.txt")
machine=$(uname -m)
out=${out:-$PWD/build/voxeld-$version-linux-$machine.tar.gz}
root=$work/voxeld-$version-linux-$machine

cmake --install "$from" --prefix "$root" --strip >/dev/null
if [ ! -e "$root/lib/libvoxeld.so.$version" ]; then
    die "$from installs its libraries elsewhere than in lib"
fi
# Archives need libraries and headers of the system; units and configuration have their own places.
rm "$root/lib/libvoxeld.a"
for name in lib/libvoxeld-engine.a lib/cmake/voxeld-engine lib/pkgconfig/voxeld-engine.pc \
    include/voxeld-engine lib/systemd share/doc share/voxeld/networks share/voxeld/import \
    share/voxeld/voxeld.json; do
    rm -rf "${root:?}/$name"
done
copy_libraries "$root"/bin/* "$root"/libexec/voxeld/* "$root/lib/libvoxeld.so.$version"
set_paths
cp -r configs "$root/"
cp LICENSE deploy/NOTICE "$root/"
sed -e 's|/usr/bin/voxeld|/opt/voxeld/bin/voxeld|g' \
    -e 's|^# to /usr/bin, a config|# of this folder to /opt/voxeld, a config|' deploy/voxeld.service \
    >"$root/voxeld.service"
cp deploy/voxeld.socket "$root/"
write_readme
pack
echo "$out"
