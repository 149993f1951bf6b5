// SPDX-License-Identifier: Apache-2.0
/* What the steps of a ray cast pass on; the functions of the backends. */
#ifndef VXD_GPU_VOLUME_CAST_VOLUME_CAST_INTERNAL_H
#define VXD_GPU_VOLUME_CAST_VOLUME_CAST_INTERNAL_H

#include "gpu/volume/cast/volume_cells_math.h"

#ifdef __cplusplus
extern "C" {
#endif

/* By rays. Where the call has a range image, its range_min is filled with bytes 0x7f and its
 * range_max with 0. */
enum vxd_status vxd_volume_cast_cpu(struct vxd_queue *queue,
                                    const struct vxd_cast_call *call,
                                    struct vxd_err *err);
enum vxd_status vxd_volume_cast_cuda(struct vxd_queue *queue,
                                     const struct vxd_cast_call *call,
                                     struct vxd_err *err);

/* By cells. What the crossings hold before does not matter. */
enum vxd_status vxd_volume_cells_cpu(struct vxd_queue *queue,
                                     const struct vxd_cells_call *call,
                                     struct vxd_err *err);
enum vxd_status vxd_volume_cells_cuda(struct vxd_queue *queue,
                                      const struct vxd_cells_call *call,
                                      struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
