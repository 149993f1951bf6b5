// SPDX-License-Identifier: Apache-2.0
/* Which voxels are in a shape, in integers alone: the same on every backend. */
#ifndef VXD_GPU_DAG_SHAPE_MATH_H
#define VXD_GPU_DAG_SHAPE_MATH_H

#include "gpu/dag/dag_math.h"
#include "gpu/dag/edit.h"

/* How a cube lies to a shape. PARTIAL may be said of one that is wholly in or out: it costs a
 * closer look and changes nothing. */
enum vxd_dag_relation {
    VXD_DAG_OUTSIDE = 0,
    VXD_DAG_PARTIAL = 1,
    VXD_DAG_INSIDE = 2
};

#endif
