// SPDX-License-Identifier: Apache-2.0
/* What operations look at that take what they do from the state before them. */
#ifndef VXD_GPU_SVDAG_BRUSH_EDIT_SOURCE_MATH_H
#define VXD_GPU_SVDAG_BRUSH_EDIT_SOURCE_MATH_H

#include "gpu/svdag/brush/brush.h"
#include "gpu/svdag/node/node_math.h"

struct vxd_svdag_source {
    const struct vxd_svdag_op *op; /* borrowed */
    struct vxd_svdag_view view;
    uint32_t root;
};

#endif
