// SPDX-License-Identifier: Apache-2.0
/* What the files of the shape editor share. */
#ifndef VXD_GPU_DAG_SHAPES_H
#define VXD_GPU_DAG_SHAPES_H

#include "gpu/dag/internal.h"
#include "gpu/dag/shapes_math.h"

/* Operations from the first of n on that one run takes: shapes in a row. 0 where the first one
 * is none. */
size_t vxd_dag_shapes_count(const struct vxd_dag_op *ops, size_t n);

/* Plans a run of n operations (1 to VXD_DAG_SHAPES_OPS, as many lists as fit) into shape_ops,
 * whose pyramids stay as they are. Borrows ops and shape_ops. */
void vxd_dag_shapes_plan(const struct vxd_dag_view *view, const struct vxd_dag_op *ops,
                         size_t n, struct vxd_dag_shape_op *shape_ops,
                         struct vxd_dag_shapes_run *run);

/* shapes_heights.c. Makes the pyramid of a heightfield; *memory (host) is the caller's, and
 * stays empty where the field is so small that none is ever looked at.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_dag_pyramid_make(struct vxd_context *context,
                                     const struct vxd_dag_heights *field,
                                     struct vxd_buffer *memory,
                                     struct vxd_dag_pyramid *out, struct vxd_err *err);

#endif
