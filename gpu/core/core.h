// SPDX-License-Identifier: Apache-2.0
/* The base of the engine: contexts (a device and its memory), queues of work, buffers,
 * the CPU's thread pool, prefix sums, radix sort, and the limits of the machine. */
#ifndef VXD_GPU_CORE_CORE_H
#define VXD_GPU_CORE_CORE_H

#include "gpu/core/context.h"
#include "gpu/core/machine_limits.h"
#include "gpu/core/memory.h"
#include "gpu/core/parallel.h"
#include "gpu/core/prefix_sum.h"
#include "gpu/core/queue.h"
#include "gpu/core/radix_sort.h"

#endif
