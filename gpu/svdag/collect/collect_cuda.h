// SPDX-License-Identifier: Apache-2.0
/* The kernels that insert items on a GPU, for stores of other modules. */
#ifndef VXD_GPU_SVDAG_COLLECT_COLLECT_CUDA_H
#define VXD_GPU_SVDAG_COLLECT_COLLECT_CUDA_H

#include "gpu/svdag/collect/collect_put_cuda.h"

#endif
