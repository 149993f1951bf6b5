// SPDX-License-Identifier: Apache-2.0
/* The kernels of diffs and exports, for .cu files, as templates over the form of the
 * store (query_cuda.h). */
#ifndef VXD_GPU_SVDAG_DIFF_DIFF_CUDA_H
#define VXD_GPU_SVDAG_DIFF_DIFF_CUDA_H

#include "gpu/svdag/diff/diff_cells_cuda.h"
#include "gpu/svdag/diff/export_bits_cuda.h"
#include "gpu/svdag/diff/export_cells_cuda.h"

#endif
