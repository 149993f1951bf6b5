// SPDX-License-Identifier: Apache-2.0
/* What the files of carve on the CPU share. */
#ifndef VXD_GPU_SVDAG_SCAN_CARVE_CPU_H
#define VXD_GPU_SVDAG_SCAN_CARVE_CPU_H

#include "gpu/svdag/scan/carve_math.h"
#include "gpu/svdag/store/store.h"

/* Jobs of carve.h, queued; arguments already checked. */
enum vxd_status vxd_svdag_scan_voxels_cpu(struct vxd_queue *queue,
                                          const struct vxd_svdag_format *format,
                                          const struct vxd_svdag_scan *scan,
                                          struct vxd_svdag_scan_result *out,
                                          struct vxd_err *err);
enum vxd_status vxd_svdag_list_voxels_cpu(struct vxd_queue *queue,
                                          const struct vxd_svdag_format *format,
                                          const int32_t *voxels, const uint16_t *values,
                                          size_t n, struct vxd_svdag_voxel_list *list,
                                          uint64_t *n_outside, struct vxd_err *err);

/* Memory of a job, from any of its threads, within the device budget; given back at once.
 * NULL is given back as well. */
enum vxd_status vxd_svdag_scratch_take(struct vxd_context *context, size_t n_bytes,
                                       void **out, struct vxd_err *err);
void vxd_svdag_scratch_give(struct vxd_context *context, void *ptr);

/* The rays of a scan. */
struct vxd_svdag_rays {
    struct vxd_queue *queue;
    const struct vxd_svdag_scan *scan;
    int depth;
    const uint32_t
        *points; /* n: whose rays; near ones in a row go through the same memory */
    size_t n;
    const struct vxd_svdag_voxels *hits; /* left out */
};

/* Casts them, and makes the list of what they passed, within a job.
 * errors  RESOURCE_EXHAUSTED; *list is empty then */
enum vxd_status vxd_svdag_cast_passed(struct vxd_pool *pool,
                                      const struct vxd_svdag_rays *rays,
                                      struct vxd_svdag_voxel_list *list,
                                      uint64_t *n_voxels, struct vxd_err *err);

#endif
