// SPDX-License-Identifier: Apache-2.0
/* The source of operations that read the state before them: copies, erosion and
 * dilation. */
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
