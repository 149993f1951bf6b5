// SPDX-License-Identifier: Apache-2.0
/* What scan.c and the backends of a scan's stages share. */
#ifndef VXD_GPU_VOLUME_SCAN_SCAN_INTERNAL_H
#define VXD_GPU_VOLUME_SCAN_SCAN_INTERNAL_H

#include "gpu/core/core_cpu.h"
#include "gpu/volume/scan/scan_steps.h"
#include "gpu/volume/scan/volume_scan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The rows + 1 tangents of the borders between rows of a lidar that was checked. */
void vxd_lidar_borders(const struct vxd_volume_lidar *lidar, float *borders);

/* All of the form but the borders.
 * errors  INVALID_ARGUMENT */
enum vxd_status vxd_lidar_form_init(const struct vxd_volume *volume,
                                    const struct vxd_volume_scan *scan,
                                    struct vxd_lidar_form *out, struct vxd_err *err);

/* Runs the call's stage over its items. Asynchronous. */
enum vxd_status vxd_lidar_run_cpu(struct vxd_queue *queue,
                                  const struct vxd_lidar_call *call, struct vxd_err *err);
enum vxd_status vxd_lidar_run_cuda(struct vxd_queue *queue,
                                   const struct vxd_lidar_call *call,
                                   struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
