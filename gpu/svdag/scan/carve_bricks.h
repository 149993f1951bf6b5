// SPDX-License-Identifier: Apache-2.0
/* Scans and lists of voxels on a GPU: what host code (carve_cuda.c) and kernels (carve.cu)
 * share. Included as C11 and as CUDA C++. */
#ifndef VXD_GPU_SVDAG_SCAN_CARVE_BRICKS_H
#define VXD_GPU_SVDAG_SCAN_CARVE_BRICKS_H

#include "gpu/svdag/scan/carve_math.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    VXD_SVDAG_BRICK_BITS = 15,    /* of a voxel's code: 32^3 voxels */
    VXD_SVDAG_BRICK_LEAVES = 512, /* words */
    VXD_SVDAG_BRICK_PROBES = 64
};

/* Counts, all zeros at first. */
struct vxd_svdag_carve_counts {
    uint64_t n_class[VXD_SVDAG_POINT_OUTSIDE + 1];
    uint64_t n_rays_only;
    uint64_t n_passed; /* voxels */
    uint32_t n_bricks;
    uint32_t has_bad_value;
    uint32_t has_no_room; /* for a brick */
};

/* The points of a scan, or voxels by index. */
struct vxd_svdag_carve_input {
    struct vxd_svdag_scan scan; /* n and values for both */
    const int32_t *voxels;      /* NULL: the scan's points */
    int depth;
    uint32_t n_materials;
};

/* n sorted points, and the list of those that hit. */
struct vxd_svdag_carve_runs {
    struct vxd_svdag_carve_input input;
    const uint64_t *keys;
    const uint32_t *points;
    uint32_t n;
    uint32_t *voxels; /* n + 1: of voxels that begin; then how many begin before */
    uint32_t *leaves; /* of leaves, likewise */
    /* Of the list; masks are all zeros at first. */
    uint64_t *codes;
    uint64_t *masks;
    uint32_t *first_value; /* NULL: not wanted, with values */
    uint16_t *values;
    uint32_t
        *rays; /* first points of the voxels, then the points that hit nothing; NULL: not
                     * wanted */
    uint32_t n_hit;
    uint32_t n_voxels;
    uint32_t n_rays; /* of both kinds */
};

/* Bricks that rays passed, by their code plus one in a table of open addressing; the words of
 * slot i are its brick's. */
struct vxd_svdag_bricks {
    uint64_t *slots; /* 0: free; n, a power of two, all zeros at first, as the words */
    uint64_t *words; /* n x VXD_SVDAG_BRICK_LEAVES */
    uint32_t n;
};

struct vxd_svdag_carve_cast {
    struct vxd_svdag_scan scan;
    int depth;
    const uint32_t *points; /* n: whose rays */
    uint32_t n;
    struct vxd_svdag_bricks bricks;
    struct vxd_svdag_carve_counts *counts;
};

/* The bricks in order, and the list of what was passed. */
struct vxd_svdag_carve_passed {
    struct vxd_svdag_bricks bricks;
    uint64_t *codes; /* of bricks, n_bricks */
    uint32_t *slots; /* theirs */
    uint32_t n_bricks;
    uint32_t *
        places; /* n_bricks x VXD_SVDAG_BRICK_LEAVES + 1: leaves that are in; then before */
    uint64_t *list_codes;
    uint64_t *list_masks;
    struct vxd_svdag_carve_counts *counts;
};

/* Launches, a kernel each. */
enum vxd_status vxd_svdag_carve_keys(struct vxd_queue *queue,
                                     const struct vxd_svdag_carve_input *input,
                                     uint64_t *keys, uint32_t *points,
                                     struct vxd_svdag_carve_counts *counts,
                                     struct vxd_err *err);
/* Flags where voxels and leaves begin. */
enum vxd_status vxd_svdag_carve_begins(struct vxd_queue *queue,
                                       const struct vxd_svdag_carve_runs *runs,
                                       struct vxd_err *err);
/* Writes the list and the rays, once the flags are summed. */
enum vxd_status vxd_svdag_carve_write(struct vxd_queue *queue,
                                      const struct vxd_svdag_carve_runs *runs,
                                      struct vxd_err *err);
enum vxd_status vxd_svdag_carve_rays(struct vxd_queue *queue,
                                     const struct vxd_svdag_carve_cast *cast,
                                     struct vxd_err *err);
/* Takes hits out of the bricks that hold them. */
enum vxd_status vxd_svdag_carve_subtract(struct vxd_queue *queue,
                                         const struct vxd_svdag_bricks *bricks,
                                         const struct vxd_svdag_voxels *hits,
                                         struct vxd_err *err);
/* Gathers the bricks, in any order. */
enum vxd_status vxd_svdag_carve_gather(struct vxd_queue *queue,
                                       const struct vxd_svdag_carve_passed *passed,
                                       struct vxd_err *err);
/* Flags the leaves that have voxels, and counts those. */
enum vxd_status vxd_svdag_carve_flag(struct vxd_queue *queue,
                                     const struct vxd_svdag_carve_passed *passed,
                                     struct vxd_err *err);
enum vxd_status vxd_svdag_carve_list(struct vxd_queue *queue,
                                     const struct vxd_svdag_carve_passed *passed,
                                     struct vxd_err *err);

/* carve_cuda.c: carve.h, arguments already checked. */
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
