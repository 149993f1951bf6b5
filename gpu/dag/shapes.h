// SPDX-License-Identifier: Apache-2.0
/* What the files of the shape editor share. */
#ifndef VXD_GPU_DAG_SHAPES_H
#define VXD_GPU_DAG_SHAPES_H

#include "gpu/dag/fields_math.h"
#include "gpu/dag/internal.h"

/* shapes_heights.c. Makes the pyramid of a heightfield; *memory (host) is the caller's, and
 * stays empty where the field is so small that none is ever looked at.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_dag_pyramid_make(struct vxd_context *context,
                                     const struct vxd_dag_heights *field,
                                     struct vxd_buffer *memory,
                                     struct vxd_dag_pyramid *out, struct vxd_err *err);

#endif
