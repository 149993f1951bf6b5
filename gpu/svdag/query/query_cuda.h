// SPDX-License-Identifier: Apache-2.0
/* The kernels of queries, for .cu files, as templates over the form of the store: whether
 * it splits items. A launcher vxd_svdag_<query>_launch<IS_SPLIT> is a function of struct
 * vxd_svdag_queries. How warps traverse a tree comes with them, for other kernels. */
#ifndef VXD_GPU_SVDAG_QUERY_QUERY_CUDA_H
#define VXD_GPU_SVDAG_QUERY_QUERY_CUDA_H

#include "gpu/svdag/query/changed_cuda.h"
#include "gpu/svdag/query/nearest_cuda.h"
#include "gpu/svdag/query/ray_cuda.h"
#include "gpu/svdag/query/region_cuda.h"
#include "gpu/svdag/query/tree_walk_cuda.h"
#include "gpu/svdag/query/values_cuda.h"

#endif
