// SPDX-License-Identifier: Apache-2.0
/* The device's rows of values of a hash map, for indices that stand elsewhere. */
#ifndef VXD_GPU_HASH_HASH_CUDA_H
#define VXD_GPU_HASH_HASH_CUDA_H

#include "gpu/hash/value_rows_cuda.h"

#endif
