// SPDX-License-Identifier: Apache-2.0
/* The operations of edits: each is a shape, and an action on the voxels in it. One edit
 * applies a list of operations one after the other; no reader sees a state in between
 * (gpu/svdag/edit/edit.h). */
#ifndef VXD_GPU_SVDAG_BRUSH_BRUSH_H
#define VXD_GPU_SVDAG_BRUSH_BRUSH_H

#include "gpu/svdag/svdag.h"
#include "proto/base/shapes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Most operations of one edit. */
#define VXD_SVDAG_MAX_OPS 4096

/* Largest magnitude of the coordinates of shapes, in units. It lies beyond every scene,
 * and squares of differences still fit 64 bits. */
#define VXD_SVDAG_MAX_COORDINATE ((int64_t)1 << 31)

/* Shapes. All coordinates are units from the scene's low corner; a voxel is in a shape
 * when its centre c is. */
enum vxd_svdag_shape_kind {
    VXD_SVDAG_BOX = 0,        /* low <= c < high on every axis */
    VXD_SVDAG_BALL = 1,       /* |c - a| <= r */
    VXD_SVDAG_CAPSULE = 2,    /* distance from c to the segment a b <= r */
    VXD_SVDAG_HALF_SPACE = 3, /* n . c <= d */
    VXD_SVDAG_NOISE_BALL = 4, /* |c - a| <= r + noise(c); noise_math.h */
    VXD_SVDAG_VOXELS = 5,     /* a list of voxels */
    VXD_SVDAG_HEIGHTFIELD = 6 /* low[2] <= c.z < the height of c's column */
};

/* A list of voxels by leaf: Morton codes of the leaves (of voxel >> 2), strictly
 * ascending, each with the mask of its voxels, which is not 0. gpu/svdag/scan/scan.h
 * makes such lists. */
struct vxd_svdag_voxels {
    const uint64_t
        *codes; /* n; device memory, borrowed until the wait, as are the other arrays */
    const uint64_t *masks; /* n */
    /* Values for FILL and PAINT in place of the operation's: the k-th voxel of leaf i has
     * values[first_value[i] + k]. NULL: all voxels take the operation's value. */
    const uint32_t *first_value;
    const uint16_t *values;
    size_t n;
};

/* A heightfield of n_x x n_y cells, each `cell` voxels a side, row-major by x. The first
 * cell begins at voxel (x, y). No voxel outside the grid is in the shape. */
struct vxd_svdag_heights {
    const int64_t
        *heights;      /* units, magnitudes up to VXD_SVDAG_MAX_COORDINATE; host memory */
    uint32_t n_x, n_y; /* at least 1; the product at most 2^26 */
    uint32_t cell;     /* at least 1 */
    int64_t x, y;
};

struct vxd_svdag_shape {
    enum vxd_svdag_shape_kind kind;
    int64_t low[3], high[3]; /* box; low[2] of a heightfield */
    int64_t a[3], b[3];      /* ball and capsule */
    int64_t r;               /* at least 0 */
    int32_t n[3];            /* half-space: any scale, not all 0 */
    int64_t d;               /* units times n's scale, magnitude up to 2^62 */
    /* Noise ball: value noise of this seed, -amplitude .. amplitude units (amplitude at least
     * 0, with r at most VXD_SVDAG_MAX_COORDINATE), on a lattice of 2^cell_bits voxels (0 to
     * 16). */
    uint32_t seed;
    int64_t amplitude;
    int cell_bits;
    struct vxd_svdag_voxels voxels;
    struct vxd_svdag_heights field;
};

/* What becomes of the voxels in the shape, by the numbers of the wire, which the journal has, too. */
enum vxd_svdag_action {
    VXD_SVDAG_FILL = VXD_ACTION_FILL,   /* they become occupied, with `value` */
    VXD_SVDAG_ERASE = VXD_ACTION_ERASE, /* they become not set */
    VXD_SVDAG_SET_FREE =
        VXD_ACTION_SET_FREE, /* they become FREE; only in scenes that track it */
    VXD_SVDAG_PAINT = VXD_ACTION_PAINT, /* the occupied ones take `value` */
    VXD_SVDAG_REPLACE =
        VXD_ACTION_REPLACE, /* the occupied ones with value `from` take `value` */
    /* Both read the state before the operation. ERODE: occupied voxels with fewer than
     * `threshold` occupied face neighbours become not set; a voxel outside the scene is
     * not occupied. DILATE: voxels that are not occupied and have at least `threshold`
     * occupied neighbours take the value of the first of -x, +x, -y, +y, -z, +z. For all
     * shapes but VOXELS and HEIGHTFIELD. */
    VXD_SVDAG_ERODE = VXD_ACTION_ERODE,
    VXD_SVDAG_DILATE = VXD_ACTION_DILATE,
    /* Copies to the box what was elsewhere before the operation: voxel p of the box
     * becomes voxel from_voxel + M (p - low), by voxel indices. For boxes of whole voxels
     * only. */
    VXD_SVDAG_COPY = VXD_ACTION_COPY
};

struct vxd_svdag_op {
    struct vxd_svdag_shape shape;
    enum vxd_svdag_action action;
    uint32_t value; /* below vxd_svdag_n_materials */
    uint32_t from;
    int threshold; /* 1 to 6 */
    /* COPY: M has one 1 or -1 in each row and column (quarter turns and mirrors). A voxel
     * whose source is outside the scene becomes not set. With copy_empty, source voxels
     * that are not set and FREE ones are copied too; else they leave the target voxel as
     * it is. */
    int64_t from_voxel[3];
    int8_t matrix[3][3];
    bool copy_empty;
};

/* Capacity that an edit lacked on a GPU, 0 for what was enough; read by
 * vxd_svdag_reserve. */
struct vxd_svdag_needs {
    uint64_t n_entries; /* entries of the frontier: cubes to visit */
    uint64_t n_pairs;   /* pairs of references to compare */
    uint64_t n_items;   /* items of the store */
    uint64_t n_words;   /* addresses of the store */
};

/* The stages of an edit kernel, in order. */
enum vxd_svdag_edit_stage {
    VXD_SVDAG_EXPAND_BY_BLOCK, /* the first block alone: the upper cubes, while they are few */
    VXD_SVDAG_EXPAND_BY_GRID, /* all blocks: the heights below */
    VXD_SVDAG_EDIT_SUBTREES, /* each block: subtrees from height 4 to the leaves and up again */
    VXD_SVDAG_REDUCE_BY_GRID,
    VXD_SVDAG_REDUCE_BY_BLOCK,
    VXD_SVDAG_N_STAGES
};

struct vxd_svdag_edit_result {
    /* An edit on a GPU grows nothing. Where capacity was lacking it has no result: only
     * `needs` and `root` are valid, and `root` is the one before the edit. Call
     * vxd_svdag_reserve, then repeat the edit. Never set on the CPU. */
    bool needs_capacity;
    struct vxd_svdag_needs needs;
    uint32_t root;
    uint64_t n_added;   /* voxels occupied now and not before */
    uint64_t n_removed; /* voxels occupied before and not now */
    uint64_t n_changed; /* voxels occupied before and now, with different materials */
    uint64_t n_freed;   /* voxels FREE now and not before */
    /* Nodes looked up, by height (2 = leaves), and how many of them were new to the
     * store. This is what the edit cost. Lookups that a thread answered from its own
     * memory are not counted; nor are, on a GPU, items that were new to earlier tries of
     * the edit. */
    uint64_t n_lookups[VXD_SVDAG_MAX_DEPTH + 1];
    uint64_t n_new[VXD_SVDAG_MAX_DEPTH + 1];
    /* On a GPU: cycles of a multiprocessor in each stage, including waits for other
     * blocks. */
    uint64_t stage_cycles[VXD_SVDAG_N_STAGES];
};

#ifdef __cplusplus
}
#endif
#endif
