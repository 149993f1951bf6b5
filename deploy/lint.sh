#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Style and static analysis over every tracked source file. Clang's path-sensitive analyzer
# takes nine tenths of clang-tidy's time and belongs to the long tier.
# usage: deploy/lint.sh [--full] [BUILD_ROOT]      --full runs the analyzer as well
set -euo pipefail

cd "$(dirname "$0")/.."
checks=(--checks=-clang-analyzer-*)
if [ "${1:-}" = --full ]; then
    checks=()
    shift
fi
root=${1:-build/test}
mkdir -p "$root"
export LINT_GENERATED="$root/lint/proto/generated"
jobs=$(nproc)
mapfile -t sources < <(git ls-files -co --exclude-standard '*.c' '*.h' '*.cu' '*.cuh' '*.cpp')
mapfile -t python < <(git ls-files -co --exclude-standard '*.py')
mapfile -t scripts < <(git ls-files -co --exclude-standard '*.sh' .ci/run)

printf '%s\0' "${sources[@]}" |
    xargs -0 -P "$jobs" -n 64 clang-format-14 --dry-run --Werror
for script in "${scripts[@]}"; do
    bash -n "$script"
done

if [ ! -x "$root/ruff/bin/ruff" ]; then
    python3 -m venv "$root/ruff"
    "$root/ruff/bin/pip" install -q 'ruff==0.8.4'
fi
"$root/ruff/bin/ruff" check --quiet --line-length 100 --select E,F,W,B,ANN,UP,SIM \
    --ignore ANN401 --target-version py311 "${python[@]}"

# The analysers read the flags of a real build; of what it makes they need the schema's headers.
cmake -S . -B "$root/lint" -G Ninja -DVOXELD_CUDA=OFF -DCMAKE_BUILD_TYPE=Release \
    -DVOXELD_TESTS=OFF >"$root/lint.log"
cmake --build "$root/lint" --target voxeld_schema -- -j "$jobs" >>"$root/lint.log" 2>&1 ||
    { tail -n 60 "$root/lint.log" && exit 1; }

# Every header stands alone: as C11, and those that device code or users include as C++17.
# Those for .cu files only are nvcc's to judge, those of the emulator C++ alone, and those of the
# CPU backend C.
check_headers() {
    local header
    for header in "$@"; do
        gcc -std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Werror -I. \
            -I"$LINT_GENERATED" -fsyntax-only -x c "$header"
        case $header in
        gpu/*_cpu.h) ;;
        gpu/* | proto/base/base.h | client/c/include/*.h)
            g++ -std=c++17 -Wall -Wextra -Werror -I. -fsyntax-only -x c++ "$header"
            ;;
        esac
    done
}
export -f check_headers
git ls-files -co --exclude-standard '*.h' |
    grep -v -e '_cuda\.h$' -e cuda_check.h -e '^tests/emulator/' |
    xargs -P "$jobs" -n 16 bash -euc 'check_headers "$@"' _

# The API's description, the dashboard's files and Foxglove's schemas are arrays of their bytes, over
# which cppcheck takes minutes.
python3 - "$root/lint" <<'END'
import json
import sys
from pathlib import Path

folder = Path(sys.argv[1])
units = json.loads((folder / "compile_commands.json").read_text())
server = folder.resolve() / "server"
bytes_of_files = (f"{server / 'web'}/", f"{server / 'foxglove'}/")
kept = [
    unit
    for unit in units
    if not unit["file"].endswith("/openapi_json.c") and not unit["file"].startswith(bytes_of_files)
]
(folder / "cppcheck.json").write_text(json.dumps(kept))
END
# varFuncNullUB: POSIX defines NULL as a pointer, so it may end a variadic call.
cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 -j "$jobs" \
    --enable=warning,performance,portability --suppress=missingIncludeSystem \
    --suppress='*:*.pb-c.*' --suppress=varFuncNullUB \
    --project="$root/lint/cppcheck.json"

mapfile -t units < <(git ls-files -co --exclude-standard \
    'proto/*.c' 'gpu/*.c' 'client/*.c' 'server/*.c')
# One file a run: clang-tidy 14 carries va_list state over from file to file.
printf '%s\n' "${units[@]}" |
    xargs -P "$jobs" -n 1 clang-tidy-14 -p "$root/lint" --quiet --warnings-as-errors='*' \
        "${checks[@]}" --extra-arg="-I$PWD/client/c/include" \
        2> >(grep -v -e 'warnings generated' -e 'Suppressed' -e 'Use -header-filter' >&2)
