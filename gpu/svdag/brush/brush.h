// SPDX-License-Identifier: Apache-2.0
/* What edits do: operations, each a shape and what becomes of the voxels in it. One edit applies
 * a list of them one after the other, seen by nobody in between (gpu/svdag/edit/edit.h). */
#ifndef VXD_GPU_SVDAG_BRUSH_BRUSH_H
#define VXD_GPU_SVDAG_BRUSH_BRUSH_H

#include "gpu/svdag/svdag.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Operations of one edit. */
#define VXD_SVDAG_MAX_OPS 4096

/* Coordinates of shapes, in units: beyond every scene, and squares still fit. */
#define VXD_SVDAG_MAX_COORDINATE ((int64_t)1 << 31)

/* Where. All coordinates are units from the scene's low corner; a voxel is in when its
 * centre c is. */
enum vxd_svdag_shape_kind {
    VXD_SVDAG_BOX = 0,        /* low <= c < high on every axis */
    VXD_SVDAG_BALL = 1,       /* |c - a| <= r */
    VXD_SVDAG_CAPSULE = 2,    /* distance from c to the segment a b <= r */
    VXD_SVDAG_HALF_SPACE = 3, /* n . c <= d */
    VXD_SVDAG_NOISE_BALL = 4, /* |c - a| <= r + noise(c); noise_math.h */
    VXD_SVDAG_VOXELS = 5,     /* a list of voxels */
    VXD_SVDAG_HEIGHTFIELD = 6 /* low[2] <= c.z < the height of c's column */
};

/* Voxels by leaf: the leaves' Morton codes (of voxel >> 2), strictly ascending, with the mask
 * of voxels in each, not 0. Made by carve.h. */
struct vxd_svdag_voxels {
    const uint64_t *codes; /* n; device memory, borrowed until the wait, as the others */
    const uint64_t *masks; /* n */
    /* Values for FILL and PAINT, instead of the operation's: that of the k-th voxel of leaf
     * i is values[first_value[i] + k]. NULL: all take the operation's. */
    const uint32_t *first_value;
    const uint16_t *values;
    size_t n;
};

/* Heights of n_x x n_y cells of cell voxels a side, row-major by x; the first cell begins at
 * voxel (x, y). Outside the grid nothing is in the shape. */
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

/* What becomes of the voxels there. */
enum vxd_svdag_action {
    VXD_SVDAG_FILL = 0,     /* occupied, of `value` */
    VXD_SVDAG_ERASE = 1,    /* not set */
    VXD_SVDAG_SET_FREE = 2, /* FREE; scenes that track it */
    VXD_SVDAG_PAINT = 3,    /* the occupied ones take `value` */
    VXD_SVDAG_REPLACE = 4,  /* the occupied ones of `from` take `value` */
    /* Of the state before the operation: occupied voxels with fewer than `threshold` occupied
     * face neighbours become not set (a voxel outside the scene is not occupied); voxels that
     * are not occupied and have at least `threshold` such neighbours take the value of the
     * first of -x, +x, -y, +y, -z, +z. Shapes but VOXELS and HEIGHTFIELD. */
    VXD_SVDAG_ERODE = 5,
    VXD_SVDAG_DILATE = 6,
    /* The box takes what stood elsewhere before the operation: voxel p of it what stood at
     * from_voxel + M (p - low), by voxel indices. Boxes of whole voxels alone. */
    VXD_SVDAG_COPY = 7
};

struct vxd_svdag_op {
    struct vxd_svdag_shape shape;
    enum vxd_svdag_action action;
    uint32_t value; /* below vxd_svdag_n_materials */
    uint32_t from;
    int threshold; /* 1 to 6 */
    /* COPY: M has one 1 or -1 in each row and column (turns by quarters, mirrors); what
     * would come from outside the scene is not set. With copy_empty voxels that are not set
     * and FREE ones are copied too, else they leave what is there. */
    int64_t from_voxel[3];
    int8_t matrix[3][3];
    bool copy_empty;
};

/* Room that an edit did not find, 0 of what was enough; for vxd_svdag_reserve. */
struct vxd_svdag_needs {
    uint64_t n_entries; /* cubes to look into, */
    uint64_t n_pairs;   /* of references to compare */
    uint64_t n_items;   /* in the store, */
    uint64_t n_words;   /* and addresses */
};

/* What passes of an edit on a GPU do, one after the other. */
enum vxd_svdag_edit_stage {
    VXD_SVDAG_EXPAND_BY_BLOCK, /* cubes, from the root down, as long as they are few */
    VXD_SVDAG_EXPAND_BY_GRID,  /* those of the heights below */
    VXD_SVDAG_EDIT_SUBTREES,   /* from height 4 down to the leaves and up again */
    VXD_SVDAG_REDUCE_BY_GRID,
    VXD_SVDAG_REDUCE_BY_BLOCK,
    VXD_SVDAG_N_STAGES
};

struct vxd_svdag_edit_result {
    /* On a GPU an edit grows nothing: where there was no room it has no result (nothing else
     * is to be used, and `root` is the one before), vxd_svdag_reserve is to be called and the
     * edit repeated. Never on the CPU. */
    bool needs_capacity;
    struct vxd_svdag_needs needs;
    uint32_t root;
    uint64_t n_added;   /* voxels occupied now and not before, */
    uint64_t n_removed; /* before and not now, */
    uint64_t n_changed; /* and those of another material */
    uint64_t n_freed;   /* FREE now and not before */
    /* Nodes looked up by height (2 = leaves), and those of them that were new in the store:
     * what the edit cost. Lookups that a thread's own memory spared do not count; nor, on a
     * GPU, what was new to tries that found no room. */
    uint64_t n_lookups[VXD_SVDAG_MAX_DEPTH + 1];
    uint64_t n_new[VXD_SVDAG_MAX_DEPTH + 1];
    /* On a GPU: cycles of a multiprocessor that the stages took, waits for others included. */
    uint64_t stage_cycles[VXD_SVDAG_N_STAGES];
};

#ifdef __cplusplus
}
#endif
#endif
