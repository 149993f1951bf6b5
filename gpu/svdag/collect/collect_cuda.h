// SPDX-License-Identifier: Apache-2.0
/* Marking and moving nodes on a device, for stores that stand elsewhere. */
#ifndef VXD_GPU_SVDAG_COLLECT_COLLECT_CUDA_H
#define VXD_GPU_SVDAG_COLLECT_COLLECT_CUDA_H

#include "gpu/svdag/collect/collect_put_cuda.h"

#endif
