// SPDX-License-Identifier: Apache-2.0
/* The backends behind export_cells.h and diff_cells.h: what they are called with, and their scratch.
 * The functions themselves stand among the queries' (query_backends.h). */
#ifndef VXD_GPU_SVDAG_DIFF_DIFF_BACKENDS_H
#define VXD_GPU_SVDAG_DIFF_DIFF_BACKENDS_H

#include "gpu/svdag/node/node_math.h"
#include "gpu/svdag/diff/diff_math.h"
#include "gpu/svdag/query/query_math.h"

/* Rows of bits, as both backends compile them. */

enum {
    VXD_SVDAG_LEAF_SIDE = 4,
    VXD_SVDAG_LEAF_ROWS = 16,   /* of a leaf along z, x slowest */
    VXD_SVDAG_WORD_LEAVES = 16, /* along z */
};

struct vxd_svdag_bits {
    int64_t low[3];
    int64_t size[3]; /* voxels, multiples of 4 */
    int64_t n_words; /* of a row */
    uint64_t *occupied;
    uint64_t *free;
};

/* The occupied and FREE voxels of the leaf that holds a voxel, none outside the scene. Returns
 * the height of the cube that is known to be like this leaf, at least that of leaves. */
VXD_HD int vxd_svdag_masks_at(const struct vxd_svdag_view *view, uint32_t root, int64_t x,
                              int64_t y, int64_t z, uint64_t *occupied, uint64_t *free)
{
    int64_t side = (int64_t)1 << view->depth;
    int height = view->depth;
    uint32_t ref = root;

    if (x < 0 || y < 0 || z < 0 || x >= side || y >= side || z >= side) {
        *occupied = 0;
        *free = 0;
        return VXD_SVDAG_LEAF_HEIGHT;
    }
    while (height > VXD_SVDAG_LEAF_HEIGHT && vxd_svdag_is_node(ref)) {
        ref = vxd_svdag_child_ref(
            view, ref, vxd_svdag_octant((uint32_t)x, (uint32_t)y, (uint32_t)z, height));
        height--;
    }
    vxd_svdag_tree_cube_masks(view, ref, occupied, free);
    return height;
}

/* Four voxels along z of a leaf's mask, as bits 0 to 3. */
VXD_HD uint64_t vxd_svdag_leaf_row(uint64_t mask, int row)
{
    int first = vxd_svdag_leaf_bit((uint32_t)row >> 2, (uint32_t)row & 3u, 0);
    uint64_t low = mask >> first & 3u;
    uint64_t high = mask >> (first + 8) & 3u;

    return low | high << 2;
}

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

/* Scratch of a GPU's exports: a list, and after it the cells before each of its cubes. */
static inline size_t vxd_svdag_cells_scratch_bytes(const struct vxd_queue *queue)
{
    (void)queue;
    return VXD_ON_CUDA(queue->context)
               ? VXD_SVDAG_TREE_CUBES_BYTES +
                     (VXD_SVDAG_TREE_CUBES_MOST + 1) * sizeof(uint64_t)
               : 0;
}

/* Scratch of diffs: on a GPU a list as of exports, with another reference and a row a cube, the
 * cells before each, and what is found of few rows. */
#define VXD_SVDAG_DIFF_LIST_BYTES                                                        \
    (VXD_SVDAG_TREE_CUBES_HEAD_BYTES +                                                   \
     (size_t)2 * VXD_SVDAG_TREE_CUBES_MOST * (sizeof(uint64_t) + 3 * sizeof(uint32_t)))
#define VXD_SVDAG_DIFF_FEW_ROWS (VXD_SVDAG_TREE_CUBES_MOST / 8)
#define VXD_SVDAG_DIFF_FOUND_BYTES ((size_t)VXD_SVDAG_DIFF_FEW_ROWS * sizeof(uint32_t))
static inline size_t vxd_svdag_diff_scratch_bytes(const struct vxd_queue *queue)
{
    (void)queue;
    return VXD_ON_CUDA(queue->context)
               ? VXD_SVDAG_DIFF_LIST_BYTES +
                     (VXD_SVDAG_TREE_CUBES_MOST + 1) * sizeof(uint64_t) +
                     VXD_SVDAG_DIFF_FOUND_BYTES
               : vxd_svdag_diff_run_bytes();
}

#ifdef __cplusplus
}
#endif
#endif
