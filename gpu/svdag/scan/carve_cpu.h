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
/* A scan in steps, as scan.h has it. */
struct vxd_svdag_scanning_cpu;
enum vxd_status vxd_svdag_scan_begin_cpu(struct vxd_queue *queue,
                                         const struct vxd_svdag_format *format,
                                         const struct vxd_svdag_scan *scan,
                                         struct vxd_svdag_scanning_cpu **out,
                                         struct vxd_err *err);
enum vxd_status vxd_svdag_scan_step_cpu(struct vxd_queue *queue,
                                        struct vxd_svdag_scanning_cpu *scanning,
                                        struct vxd_svdag_scan_result *out, bool *is_done,
                                        struct vxd_err *err);
void vxd_svdag_scan_end_cpu(struct vxd_svdag_scanning_cpu *scanning);
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

/* Which voxels of 32^3 rays pass, as a mask of each leaf. */
struct vxd_svdag_brick {
    uint64_t code; /* of a voxel >> VXD_SVDAG_BRICK_BITS */
    uint64_t *words;
};

struct vxd_svdag_brick_chunk;

/* The bricks of one thread, and where its rays are. */
struct vxd_svdag_caster {
    const struct vxd_svdag_rays *rays;
    struct vxd_context *context;
    struct vxd_svdag_brick_chunk *chunks;
    size_t n_in_chunk;             /* bricks of the first chunk handed out */
    struct vxd_svdag_brick *table; /* open addressing; words NULL: free */
    size_t table_size;
    size_t n_bricks;
    struct vxd_svdag_brick last;
    size_t at; /* the rays that it has taken and not cast: [at, end) */
    size_t end;
    uint64_t n_visits; /* of voxels, in this step */
    enum vxd_status status;
    struct vxd_err err;
};

/* Rays that are cast in steps. Zero-initialised = none. */
struct vxd_svdag_casting {
    const struct vxd_svdag_rays *rays;
    struct vxd_svdag_caster *casters; /* n_casters */
    size_t n_casters;
    uint64_t max_visits; /* of a thread in a step */
    atomic_size_t next;
    atomic_bool has_failed;
};

/* Begins to cast rays, which stay the caller's. The caller ends it, also after a failure.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_svdag_cast_begin(struct vxd_pool *pool,
                                     const struct vxd_svdag_rays *rays,
                                     struct vxd_svdag_casting *casting,
                                     struct vxd_err *err);
/* Casts rays until each thread has visited so many voxels; *is_done: all are cast. One ray is never
 * divided, so a thread visits at most 3 * VXD_SVDAG_MAX_RAY_VOXELS more.
 * errors  RESOURCE_EXHAUSTED */
enum vxd_status vxd_svdag_cast_step(struct vxd_pool *pool,
                                    struct vxd_svdag_casting *casting,
                                    uint64_t max_visits, bool *is_done,
                                    struct vxd_err *err);
/* Makes the list of the voxels that the rays pass, once all are cast.
 * errors  RESOURCE_EXHAUSTED; *list is empty then */
enum vxd_status vxd_svdag_cast_list(struct vxd_pool *pool,
                                    const struct vxd_svdag_casting *casting,
                                    struct vxd_svdag_voxel_list *list, uint64_t *n_voxels,
                                    struct vxd_err *err);
void vxd_svdag_cast_end(struct vxd_svdag_casting *casting);

#endif
