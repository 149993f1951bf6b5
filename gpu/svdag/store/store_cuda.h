// SPDX-License-Identifier: Apache-2.0
/* Finding or inserting nodes on a device, by threads, blocks and groups of eight lanes. */
#ifndef VXD_GPU_SVDAG_STORE_STORE_CUDA_H
#define VXD_GPU_SVDAG_STORE_STORE_CUDA_H

#include "gpu/svdag/store/block_ops_cuda.h"
#include "gpu/svdag/store/find_or_insert_cuda.h"

#endif
