// SPDX-License-Identifier: Apache-2.0
/* What the backends' own code needs of a context: its insides, and the CPU's cache of blocks. */
#ifndef VXD_GPU_CORE_CORE_CPU_H
#define VXD_GPU_CORE_CORE_CPU_H

#include "gpu/core/block_cache.h"
#include "gpu/core/core_internal.h"

#endif
