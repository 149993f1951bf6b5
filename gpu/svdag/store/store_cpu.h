// SPDX-License-Identifier: Apache-2.0
/* The arena on the CPU, and the host's side of stores on a GPU. */
#ifndef VXD_GPU_SVDAG_STORE_STORE_CPU_H
#define VXD_GPU_SVDAG_STORE_STORE_CPU_H

#include "gpu/svdag/store/arena_cpu.h"
#include "gpu/svdag/store/store_device_internal.h"

#endif
