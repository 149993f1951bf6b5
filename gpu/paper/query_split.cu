// SPDX-License-Identifier: Apache-2.0
/* The other compiled form of the kernels that walk over nodes: for stores that split items
 * (vxd_svdag_reads_split). */
#define VXD_SVDAG_SPLIT_FORM

#include "gpu/paper/slab_stores.h"

#include "gpu/svdag/diff/diff.cu"
#include "gpu/svdag/diff/export_cells.cu"
#include "gpu/svdag/query/nearest.cu"
#include "gpu/svdag/query/ray.cu"
#include "gpu/svdag/query/region.cu"
#include "gpu/svdag/query/values.cu"
