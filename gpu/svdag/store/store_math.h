// SPDX-License-Identifier: Apache-2.0
/* The layout of a store's index and of its state on a device, as both backends compile it. */
#ifndef VXD_GPU_SVDAG_STORE_STORE_MATH_H
#define VXD_GPU_SVDAG_STORE_STORE_MATH_H

#include "gpu/svdag/store/arena_index_math.h"
#include "gpu/svdag/store/store_device.h"
#include "gpu/svdag/store/store_table.h"

#endif
