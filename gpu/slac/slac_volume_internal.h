// SPDX-License-Identifier: Apache-2.0
#ifndef VXD_GPU_SLAC_SLAC_VOLUME_INTERNAL_H
#define VXD_GPU_SLAC_SLAC_VOLUME_INTERNAL_H

#include "gpu/core/core_cpu.h"
#include "gpu/slac/slac_volume_math.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fills in the blocks of a deformed volume. */
enum vxd_status vxd_slac_volume_fill_cpu(struct vxd_queue *queue,
                                         const struct vxd_slac_volume_call *call,
                                         struct vxd_err *err);
enum vxd_status vxd_slac_volume_fill_cuda(struct vxd_queue *queue,
                                          const struct vxd_slac_volume_call *call,
                                          struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
