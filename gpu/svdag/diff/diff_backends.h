// SPDX-License-Identifier: Apache-2.0
/* The backends behind export_cells.h and diff_cells.h: what they are called with, and their scratch.
 * The functions themselves stand among the queries' (query_backends.h). */
#ifndef VXD_GPU_SVDAG_DIFF_DIFF_BACKENDS_H
#define VXD_GPU_SVDAG_DIFF_DIFF_BACKENDS_H

#include "gpu/svdag/diff/bits_math.h"
#include "gpu/svdag/diff/diff_math.h"
#include "gpu/svdag/query/query_math.h"

#ifdef __cplusplus
extern "C" {
#endif

/* rows.cells NULL: counts alone. */
struct vxd_svdag_cells_call {
    struct vxd_svdag_view view;
    uint32_t root;
    struct vxd_svdag_cells cells;
    uint64_t first;
    uint64_t limit;
    struct vxd_svdag_rows rows;
    uint64_t *n_cells;
    void *scratch; /* of a GPU */
};

/* limit 0: counts alone. */
struct vxd_svdag_diff_call {
    struct vxd_svdag_view view;
    uint32_t before;
    uint32_t after;
    struct vxd_svdag_cells cells; /* of any state */
    uint64_t first;
    uint64_t limit;
    struct vxd_svdag_diff_rows rows;
    uint64_t *n_cells;
    void *scratch;
};

struct vxd_svdag_dense_call {
    struct vxd_svdag_view view;
    uint32_t root;
    struct vxd_svdag_cells cells;
    struct vxd_svdag_dense dense; /* at least one cell */
};

struct vxd_svdag_bits_call {
    struct vxd_svdag_view view;
    uint32_t root;
    struct vxd_svdag_bits bits; /* of one word at least */
};

/* diff_cpu.c: bytes of a diff's scratch there. */
size_t vxd_svdag_diff_run_bytes(void);

/* Scratch of a GPU's exports: a list, and after it the cells before each of its spots. */
static inline size_t vxd_svdag_cells_scratch_bytes(const struct vxd_queue *queue)
{
    (void)queue;
    return VXD_ON_CUDA(queue->context)
               ? VXD_SVDAG_SPOTS_BYTES + (VXD_SVDAG_SPOTS_MOST + 1) * sizeof(uint64_t)
               : 0;
}

/* Scratch of diffs: on a GPU a list as of exports, with another reference and a row a spot, the
 * cells before each, and what is found of few rows. */
#define VXD_SVDAG_DIFF_LIST_BYTES                                                        \
    (VXD_SVDAG_SPOTS_HEAD_BYTES +                                                        \
     (size_t)2 * VXD_SVDAG_SPOTS_MOST * (sizeof(uint64_t) + 3 * sizeof(uint32_t)))
#define VXD_SVDAG_DIFF_FEW_ROWS (VXD_SVDAG_SPOTS_MOST / 8)
#define VXD_SVDAG_DIFF_FOUND_BYTES ((size_t)VXD_SVDAG_DIFF_FEW_ROWS * sizeof(uint32_t))
static inline size_t vxd_svdag_diff_scratch_bytes(const struct vxd_queue *queue)
{
    (void)queue;
    return VXD_ON_CUDA(queue->context)
               ? VXD_SVDAG_DIFF_LIST_BYTES +
                     (VXD_SVDAG_SPOTS_MOST + 1) * sizeof(uint64_t) +
                     VXD_SVDAG_DIFF_FOUND_BYTES
               : vxd_svdag_diff_run_bytes();
}

#ifdef __cplusplus
}
#endif
#endif
