// SPDX-License-Identifier: Apache-2.0
/* What the files of gpu/surface share: the arrays of one extraction, and the backends' steps. */
#ifndef VXD_GPU_SURFACE_SURFACE_INTERNAL_H
#define VXD_GPU_SURFACE_SURFACE_INTERNAL_H

#include "gpu/surface/surface.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Passed to jobs and kernels by value. Of n listed blocks, those are chosen whose surface is asked
 * for, and those are picked that are chosen or may own vertices of a chosen block's cells. The
 * picked ones are numbered 0 to n_picked - 1: their places. */
struct vxd_surface_work {
    struct vxd_volume_view view;
    double voxel_size;
    double low[3]; /* of the box, from the volume's origin, in voxels */
    double high[3];
    uint64_t since;
    float min_weight;
    int has_box;
    int is_mesh;
    uint32_t begin; /* of the n listed blocks: [begin, end) may be chosen */
    uint32_t end;
    uint32_t n;
    uint32_t n_picked;
    const int32_t *entries;    /* n, ascending */
    const int32_t *neighbours; /* n x 27 */
    uint8_t *is_chosen;        /* by entry, 0 where no block lives */
    uint32_t *picked;          /* n + 1: 1 or 0, then the places */
    int32_t *places;           /* by entry; -1: not picked */
    uint32_t *list;            /* n_picked: which of the n */
    uint16_t *edges;           /* n_picked x 3 edge^2: rows of bits, see surface_math.h */
    uint16_t *ranks;           /* likewise: vertices of the block before the row's */
    uint32_t *vertices;        /* n_picked + 1: counts, then first vertices */
    uint32_t *triangles;       /* n_picked + 1 */
    uint32_t *chosen;          /* n_picked + 1 */
    struct vxd_surface_outputs out;
};

/* What a plan finds. */
struct vxd_surface_report {
    uint32_t n_observed;
    uint32_t n_picked;
    uint32_t n_vertices;
    uint32_t n_triangles;
    uint32_t n_chosen;
};

/* All of the steps below but the last in one, on a GPU: neighbours are those of the volume, so the list
 * has entries, and what is n or n_picked long has place for n_blocks. Of `end`, UINT32_MAX is no end. */
#define VXD_SURFACE_PLAN_GRID ((size_t)1024) /* thread blocks at most */
struct vxd_surface_plan {
    struct vxd_surface_work work;
    size_t n_blocks;
    uint32_t *sums; /* 5 a thread block */
    uint32_t *arrived;
    struct vxd_surface_report *report; /* host memory that the device writes */
};

enum vxd_status vxd_surface_plan_cuda(struct vxd_queue *queue,
                                      const struct vxd_surface_plan *plan,
                                      struct vxd_err *err);

/* Which blocks are chosen: is_chosen, by entry. */
enum vxd_status vxd_surface_choose_cpu(struct vxd_queue *queue,
                                       const struct vxd_surface_work *work,
                                       struct vxd_err *err);
enum vxd_status vxd_surface_choose_cuda(struct vxd_queue *queue,
                                        const struct vxd_surface_work *work,
                                        struct vxd_err *err);
/* Which are picked: picked, as 1 and 0. */
enum vxd_status vxd_surface_pick_cpu(struct vxd_queue *queue,
                                     const struct vxd_surface_work *work,
                                     struct vxd_err *err);
enum vxd_status vxd_surface_pick_cuda(struct vxd_queue *queue,
                                      const struct vxd_surface_work *work,
                                      struct vxd_err *err);
/* Lists the picked ones, whose places `picked` has now. */
enum vxd_status vxd_surface_list_cpu(struct vxd_queue *queue,
                                     const struct vxd_surface_work *work,
                                     struct vxd_err *err);
enum vxd_status vxd_surface_list_cuda(struct vxd_queue *queue,
                                      const struct vxd_surface_work *work,
                                      struct vxd_err *err);
/* Edges, ranks and counts of the picked ones. */
enum vxd_status vxd_surface_count_cpu(struct vxd_queue *queue,
                                      const struct vxd_surface_work *work,
                                      struct vxd_err *err);
enum vxd_status vxd_surface_count_cuda(struct vxd_queue *queue,
                                       const struct vxd_surface_work *work,
                                       struct vxd_err *err);
/* The outputs that are not NULL. */
enum vxd_status vxd_surface_write_cpu(struct vxd_queue *queue,
                                      const struct vxd_surface_work *work,
                                      struct vxd_err *err);
enum vxd_status vxd_surface_write_cuda(struct vxd_queue *queue,
                                       const struct vxd_surface_work *work,
                                       struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
