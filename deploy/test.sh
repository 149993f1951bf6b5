#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, then lints, builds and runs every test: partial builds, CUDA kernels
# and 64-bit Arm in emulators, fuzz targets, AddressSanitizer and UBSan, ThreadSanitizer, and the
# release build, with CUDA compiled in where nvcc is found. Ends with a table of the steps.
# usage: deploy/test.sh [--full] [--busy] [--repeat N] [--jobs N] [STEP...]
#        steps: lint client engine emulator aarch64 fuzz address thread release
#        --full               the long tier, 150 minutes at most; started again it goes on
#        VOXELD_BUILD_ROOT    where the builds go (default build/test)
#        VOXELD_TEST_BACKEND  where the integration tests' daemons compute (default cpu; cuda:0)
set -euo pipefail

cd "$(dirname "$0")/.."
deploy/packages.sh test
if [ -z "${CUDACXX:-}" ] && [ -x /usr/local/cuda/bin/nvcc ]; then
    export CUDACXX=/usr/local/cuda/bin/nvcc
fi
exec python3 deploy/test.py "$@"
