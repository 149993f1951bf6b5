#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compares libvoxeld's binary interface (functions, structs, enums of the installed headers) with
# the recorded one of its soname; programs that were linked before must go on. What only adds
# functions or enumerators passes. deploy/COMPATIBILITY.md says what to do about the rest.
# usage: abi_test.sh LIBRARY            LIBRARY was compiled with -g
#        abi_test.sh --write LIBRARY    records it, at a new soname or after what is only added
set -eu

cd "$(dirname "$0")/../../.."
data=tests/data/abi
is_write=false
if [ "$1" = --write ]; then
    is_write=true
    shift
fi
library=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Types of our own headers' alone, and nothing of where they lie.
abidw --headers-dir client/c/include --drop-private-types --exported-interfaces-only \
    --no-corpus-path --no-comp-dir-path --no-show-locs --no-elf-needed --type-id-style hash \
    --out-file "$work/now.abi" "$library"
if ! grep -q "<function-decl name='voxeld_connect'" "$work/now.abi"; then
    echo "$library has no debug information; compile it with -g" >&2
    exit 1
fi
soname=$(sed -n "s/.* soname='\([^']*\)'.*/\1/p" "$work/now.abi")
recorded=$data/$soname.abi
if $is_write; then
    mkdir -p "$data"
    find "$data" -name '*.abi' ! -name "$soname.abi" -delete
    cp "$work/now.abi" "$recorded"
    echo "$recorded written"
    exit 0
fi
if [ ! -f "$recorded" ]; then
    echo "there is no $recorded; a new soname gets one by tests/unit/client/abi_test.sh --write" >&2
    exit 1
fi

# usage: compare OLD NEW    fails where a program that was linked with OLD may not go on with NEW
compare() {
    abidiff --no-added-syms "$1" "$2"
}

# What must be found is found, else the comparison proves nothing.
# usage: must_find WHAT SED_SCRIPT    a change of the recorded interface
must_find() {
    sed "$2" "$recorded" >"$work/changed.abi"
    if cmp -s "$recorded" "$work/changed.abi"; then
        echo "the test's change '$1' changes nothing" >&2
        exit 1
    fi
    if compare "$recorded" "$work/changed.abi" >/dev/null; then
        echo "abidiff does not see that $1" >&2
        exit 1
    fi
}
must_find "a function is gone" "/<elf-symbol name='voxeld_map_create'/d
    /<function-decl name='voxeld_map_create'/,/<\/function-decl>/d"
must_find "a struct is larger" \
    "/class-decl name='voxeld_call' /s/size-in-bits='[0-9]*'/size-in-bits='8192'/"
must_find "a member has moved" \
    "/class-decl name='voxeld_error' /,/<\/class-decl>/s/offset-in-bits='0'/offset-in-bits='4096'/"
must_find "an enumerator has another value" \
    "/enumerator name='VOXELD_NOT_FOUND'/s/value='[0-9]*'/value='77'/"

if compare "$recorded" "$work/now.abi"; then
    echo "$soname is compatible with what was recorded"
else
    echo "$library breaks programs linked with $soname; see deploy/COMPATIBILITY.md" >&2
    exit 1
fi
