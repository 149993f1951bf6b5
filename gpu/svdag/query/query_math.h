// SPDX-License-Identifier: Apache-2.0
/* Rays, regions and neighbours over a scene's nodes, as both backends compile them. */
#ifndef VXD_GPU_SVDAG_QUERY_QUERY_MATH_H
#define VXD_GPU_SVDAG_QUERY_QUERY_MATH_H

#include "gpu/svdag/query/query_backends.h"
#include "gpu/svdag/query/region_math.h"
#include "gpu/svdag/query/tree_parts_math.h"

#endif
