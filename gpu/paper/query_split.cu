// SPDX-License-Identifier: Apache-2.0
/* The other compiled form of the kernels that walk over nodes: for stores that split items
 * (vxd_dag_reads_split). */
#define VXD_DAG_SPLIT_FORM

#include "gpu/paper/slab_stores.h"

#include "gpu/dag/diff.cu"
#include "gpu/dag/export.cu"
#include "gpu/dag/nearest.cu"
#include "gpu/dag/ray.cu"
#include "gpu/dag/region.cu"
#include "gpu/dag/values.cu"
