// SPDX-License-Identifier: Apache-2.0
/* What operations look at that take what they do from the state before them. */
#ifndef VXD_GPU_DAG_SOURCE_MATH_H
#define VXD_GPU_DAG_SOURCE_MATH_H

#include "gpu/dag/edit.h"
#include "gpu/dag/tree_math.h"

struct vxd_dag_source {
    const struct vxd_dag_op *op; /* borrowed */
    struct vxd_dag_view view;
    uint32_t root;
};

#endif
