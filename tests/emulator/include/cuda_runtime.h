// SPDX-License-Identifier: Apache-2.0
/* What the engine calls of the CUDA runtime, on the emulated device: its memory is the host's,
 * a stream runs what it is given at once, and so every event has passed. */
#ifndef VXD_TESTS_EMULATOR_INCLUDE_CUDA_RUNTIME_H
#define VXD_TESTS_EMULATOR_INCLUDE_CUDA_RUNTIME_H

#include "tests/emulator/emulator.h"

#endif
