// SPDX-License-Identifier: Apache-2.0
/* What the files of scans on the CPU share. */
#ifndef VXD_GPU_SVDAG_SCAN_CARVE_CPU_H
#define VXD_GPU_SVDAG_SCAN_CARVE_CPU_H

#include "gpu/svdag/scan/carve_math.h"
#include "gpu/svdag/store/store.h"

/* Queue the jobs of scan.h, for arguments that were checked. */
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

/* Takes memory for a job, on any of its threads, within the device budget, and gives it
 * back at once. Giving back NULL does nothing. */
enum vxd_status vxd_svdag_scratch_take(struct vxd_context *context, size_t n_bytes,
                                       void **out, struct vxd_err *err);
void vxd_svdag_scratch_give(struct vxd_context *context, void *ptr);

/* The rays of a scan. */
struct vxd_svdag_rays {
    struct vxd_queue *queue;
    const struct vxd_svdag_scan *scan;
    int depth;
    const uint32_t *
        points; /* n: points whose rays are cast; rays of consecutive points touch the same memory */
    size_t n;
    const struct vxd_svdag_voxels *hits; /* hit voxels, which are left out */
    int32_t *ends;        /* n x 3: their cells are written here; may be NULL */
    int32_t *origins;     /* likewise */
    atomic_bool *are_off; /* set where there are ends, but not of all rays */
};

/* Casts the rays and makes the list of the voxels that they pass, within a job.
 * errors  RESOURCE_EXHAUSTED; *list is empty then */
enum vxd_status vxd_svdag_cast_passed(struct vxd_pool *pool,
                                      const struct vxd_svdag_rays *rays,
                                      struct vxd_svdag_voxel_list *list,
                                      uint64_t *n_voxels, struct vxd_err *err);

#endif
