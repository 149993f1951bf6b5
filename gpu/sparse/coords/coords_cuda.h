// SPDX-License-Identifier: Apache-2.0
/* The device's coordinate sets, for kernels that look coordinates up. */
#ifndef VXD_GPU_SPARSE_COORDS_COORDS_CUDA_H
#define VXD_GPU_SPARSE_COORDS_COORDS_CUDA_H

#include "gpu/sparse/coords/grid_cuda.h"
#include "gpu/sparse/coords/grid_sort_cuda.h"

#endif
