// SPDX-License-Identifier: Apache-2.0
/* What host code (carve_cuda.c) and kernels (carve.cu) share of scans and lists of voxels
 * on a GPU. Included as C11 and as CUDA C++. */
#ifndef VXD_GPU_SVDAG_SCAN_CARVE_BRICKS_H
#define VXD_GPU_SVDAG_SCAN_CARVE_BRICKS_H

#include "gpu/svdag/scan/carve_math.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    VXD_SVDAG_BRICK_PROBES = 64
};

/* Counts, all zeros at first. */
struct vxd_svdag_carve_counts {
    uint64_t n_class[VXD_SVDAG_POINT_OUTSIDE + 1];
    uint64_t n_rays_only;
    uint64_t n_passed; /* voxels */
    uint32_t n_bricks;
    uint32_t has_bad_value;
    uint32_t is_full; /* the table had no slot for a brick */
    uint32_t are_off; /* not all rays have ends that can be kept */
};

/* The points of a scan, or voxels by index. */
struct vxd_svdag_carve_input {
    struct vxd_svdag_scan scan; /* n and values are used for both */
    const int32_t *voxels;      /* NULL: the scan's points */
    int depth;
    uint32_t n_materials;
};

/* n sorted points, and the list of the voxels that they hit. */
struct vxd_svdag_carve_runs {
    struct vxd_svdag_carve_input input;
    const uint64_t *keys;
    const uint32_t *points;
    uint32_t n;
    uint32_t *
        voxels; /* n + 1: 1 where a voxel's run begins; after the scan, the number of runs before */
    uint32_t *leaves; /* the same for leaves */
    /* The list; masks are all zeros at first. */
    uint64_t *codes;
    uint64_t *masks;
    uint32_t *first_value; /* NULL, as is `values`: a list without values */
    uint16_t *values;
    uint32_t *
        rays; /* the first point of each voxel, then those that hit nothing but have a ray; NULL: not needed */
    uint32_t n_hit;
    uint32_t n_voxels;
    uint32_t n_rays; /* elements of `rays` */
};

/* A hash table, with open addressing, of the bricks that rays pass, by their code plus
 * one. Slot i has the words of its brick at index i. */
struct vxd_svdag_bricks {
    uint64_t
        *slots; /* 0: free; n, a power of two; all zeros at first, as are the words */
    uint64_t *words; /* n x VXD_SVDAG_BRICK_LEAVES */
    uint32_t n;
};

struct vxd_svdag_carve_cast {
    struct vxd_svdag_scan scan;
    int depth;
    const uint32_t *points; /* n: points whose rays are cast */
    uint32_t n;
    int32_t *ends;    /* n x 3: the cells of their ends are written here; may be NULL */
    int32_t *origins; /* likewise */
    struct vxd_svdag_bricks bricks;
    struct vxd_svdag_carve_counts *counts;
};

/* The bricks in order, and the list of the passed voxels. */
struct vxd_svdag_carve_passed {
    struct vxd_svdag_bricks bricks;
    uint64_t *codes; /* codes of the bricks, n_bricks */
    uint32_t *slots; /* their slots */
    uint32_t n_bricks;
    uint32_t *
        places; /* n_bricks x VXD_SVDAG_BRICK_LEAVES + 1: 1 for leaves in the list; after the scan, their index */
    uint64_t *list_codes;
    uint64_t *list_masks;
    struct vxd_svdag_carve_counts *counts;
};

/* Each launches one kernel. */
enum vxd_status vxd_svdag_carve_keys(struct vxd_queue *queue,
                                     const struct vxd_svdag_carve_input *input,
                                     uint64_t *keys, uint32_t *points,
                                     struct vxd_svdag_carve_counts *counts,
                                     struct vxd_err *err);
/* Flags where the runs of voxels and leaves begin. */
enum vxd_status vxd_svdag_carve_begins(struct vxd_queue *queue,
                                       const struct vxd_svdag_carve_runs *runs,
                                       struct vxd_err *err);
/* Writes the list and the rays, after the scan of the flags. */
enum vxd_status vxd_svdag_carve_write(struct vxd_queue *queue,
                                      const struct vxd_svdag_carve_runs *runs,
                                      struct vxd_err *err);
enum vxd_status vxd_svdag_carve_rays(struct vxd_queue *queue,
                                     const struct vxd_svdag_carve_cast *cast,
                                     struct vxd_err *err);
/* Removes the hit voxels from the bricks. */
enum vxd_status vxd_svdag_carve_subtract(struct vxd_queue *queue,
                                         const struct vxd_svdag_bricks *bricks,
                                         const struct vxd_svdag_voxels *hits,
                                         struct vxd_err *err);
/* Gathers the bricks, in any order. */
enum vxd_status vxd_svdag_carve_gather(struct vxd_queue *queue,
                                       const struct vxd_svdag_carve_passed *passed,
                                       struct vxd_err *err);
/* Flags the leaves that have voxels, and counts the voxels. */
enum vxd_status vxd_svdag_carve_flag(struct vxd_queue *queue,
                                     const struct vxd_svdag_carve_passed *passed,
                                     struct vxd_err *err);
enum vxd_status vxd_svdag_carve_list(struct vxd_queue *queue,
                                     const struct vxd_svdag_carve_passed *passed,
                                     struct vxd_err *err);

/* carve_cuda.c: the entries of scan.h, for arguments that were checked. */
enum vxd_status vxd_svdag_scan_voxels_cuda(struct vxd_queue *queue,
                                           const struct vxd_svdag_format *format,
                                           const struct vxd_svdag_scan *scan,
                                           struct vxd_svdag_scan_result *out,
                                           struct vxd_err *err);
enum vxd_status vxd_svdag_list_voxels_cuda(struct vxd_queue *queue,
                                           const struct vxd_svdag_format *format,
                                           const int32_t *voxels, const uint16_t *values,
                                           size_t n, struct vxd_svdag_voxel_list *list,
                                           uint64_t *n_outside, struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
