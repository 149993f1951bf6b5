#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes an OCI image FROM scratch of what deploy/bundle.sh packs and glibc, by buildah.
# usage: deploy/image/build.sh [--out FILE.tar] [--from BUILD_DIR] [--root FOLDER]
#        --out   the image as an OCI archive (default build/voxeld-VERSION-image.tar)
#        --from  packs what was built there instead of building a release first; a build with the
#                CUDA backend makes the image for GPUs
#        --root  only fills FOLDER with the files of the image, which needs no buildah
set -euo pipefail
export LC_ALL=C

out=
from=
root=
while [ $# -gt 0 ]; do
    case $1 in
    --out | --from | --root)
        if [ $# -lt 2 ]; then
            echo "$1 needs a value" >&2
            exit 2
        fi
        printf -v "${1#--}" %s "$(realpath -m "$2")"
        shift 2
        ;;
    *)
        sed -n '4,8s/^# //p' "$0" >&2
        exit 2
        ;;
    esac
done
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Everything of the image: the bundle, glibc, a user, and a configuration that asks for tokens.
fill() { # folder
    local name library
    deploy/bundle.sh --out "$work/bundle.tar.gz" ${from:+--from "$from"} >&2
    mkdir -p "$1/opt/voxeld" "$1/etc/voxeld" "$1/etc/voxeld-tokens" "$1/run" "$1/tmp" "$1/proc" "$1/dev" "$1/sys" \
        "$1/var/lib/voxeld" "$1/lib64"
    tar -xzf "$work/bundle.tar.gz" -C "$1/opt/voxeld" --strip-components=1
    # Nobody compiles in there.
    rm -r "$1/opt/voxeld/include" "$1/opt/voxeld/lib/cmake" "$1/opt/voxeld/lib/pkgconfig" \
        "$1/opt/voxeld/share" "$1"/opt/voxeld/voxeld.s*
    for name in libc.so.6 libm.so.6 libpthread.so.0 libdl.so.2 librt.so.1 libresolv.so.2; do
        library=$(ldconfig -p | sed -n "s|^\t${name//./\\.} (libc6,[^)]*) => ||p" | head -n 1)
        mkdir -p "$1$(dirname "$library")"
        cp -L "$library" "$1$library"
    done
    for library in /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1; do
        if [ -e "$library" ]; then
            cp -L "$library" "$1$library"
        fi
    done
    cp /usr/share/doc/libc6/copyright "$1/opt/voxeld/licenses/libc6"
    cp deploy/image/voxeld.json "$1/etc/voxeld/"
    echo 'voxeld:x:65532:65532:voxeld:/var/lib/voxeld:/nonexistent' >"$1/etc/passwd"
    echo 'voxeld:x:65532:' >"$1/etc/group"
    chmod 1777 "$1/tmp"
}

if [ -n "$root" ]; then
    fill "$root"
    echo "$root"
    exit 0
fi
command -v buildah >/dev/null || {
    echo "build.sh: buildah is missing (package buildah); --root works without it" >&2
    exit 1
}
mkdir "$work/tree" "$work/state"
fill "$work/tree"
rmdir "$work/tree/var/lib/voxeld"
version=$(sed -n '1s/^voxeld \([^ ]*\) .*/\1/p' "$work/tree/opt/voxeld/README")
out=${out:-$PWD/build/voxeld-$version-image.tar}
mkdir -p "$(dirname "$out")"
# A store of its own, which needs no privileges beyond those of a build in a container.
store=(--storage-driver vfs --root "$work/store" --runroot "$work/run")
buildah "${store[@]}" bud --quiet --isolation chroot --format oci \
    --timestamp "$(git log -1 --format=%ct 2>/dev/null || echo 0)" \
    -f deploy/image/Containerfile -t "voxeld:$version" "$work" >&2
rm -f "$out"
buildah "${store[@]}" push --quiet "voxeld:$version" "oci-archive:$out:voxeld:$version" >&2
echo "$out"
