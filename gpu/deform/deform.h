// SPDX-License-Identifier: Apache-2.0
/* Control grids: smooth deformations of space that are kept in a hash map (ASH, section 6.3, setup
 * 6), looked up, inverted and applied to points.
 *
 * A grid is a map from the integer coordinates u of control points to their offsets. Control point u
 * lies at origin + u * cell and is moved to origin + u * cell + offset. A point moves with the eight
 * corners of its cell by their trilinear weights: C(x) = x + sum of weight_k * offset_k. Corners that
 * the map does not have are left out, and the weights of the others rise to a sum of 1; a point of
 * which no corner is known stays where it is. So C is continuous but where known cells end. */
#ifndef VXD_GPU_DEFORM_DEFORM_H
#define VXD_GPU_DEFORM_DEFORM_H

#include "gpu/hash/hash.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Control points of one grid at most. */
#define VXD_DEFORM_MAX_POINTS ((size_t)1 << 20)

/* Offsets are within this length on each axis, metres. */
#define VXD_DEFORM_MAX_OFFSET_M 1000.0

struct vxd_deform;

/* Where the control points lie. */
struct vxd_deform_lattice {
    double cell_m;      /* between two control points, 1e-3 to 1000 */
    double origin_m[3]; /* of control point (0, 0, 0), within +-1e9 */
};

/* One slot of the table: open addressing over a power of two of slots. */
struct vxd_deform_slot {
    uint64_t tag; /* vxd_deform_tag of the key, or UINT64_MAX */
    int32_t entry;
    uint32_t unused;
};

/* What kernels and CPU loops read (deform_math.h); passed by value. Pointers are device memory,
 * borrowed from the grid. */
struct vxd_deform_view {
    const struct vxd_deform_slot *table;
    uint32_t table_mask;  /* slots - 1 */
    const float *offsets; /* 3 an entry, metres */
    double cell;
    double origin[3];
};

/* Copies a map's control points into a grid, so that the map may change afterwards. Blocking.
 *
 * in      map     keys of three components; its value array `array` has 3 float32 a row
 * errors  INVALID_ARGUMENT    another shape of map (field "map"), an offset that is not finite or
 *                             beyond VXD_DEFORM_MAX_OFFSET_M (names the control point), a lattice
 *                             outside its ranges, keys beyond +-2^20 - 2
 *         RESOURCE_EXHAUSTED  more than VXD_DEFORM_MAX_POINTS, or no memory
 * owner   the caller */
enum vxd_status vxd_deform_create(struct vxd_queue *queue, const struct vxd_hashmap *map,
                                  int array, const struct vxd_deform_lattice *lattice,
                                  struct vxd_deform **out, struct vxd_err *err);

/* In queue order; NULL is fine. */
void vxd_deform_destroy(struct vxd_queue *queue, struct vxd_deform *deform);

void vxd_deform_get_view(const struct vxd_deform *deform, struct vxd_deform_view *out);
size_t vxd_deform_n_points(const struct vxd_deform *deform);

/* A rigid transform for apply: p_to = rotation * p_from + translation; row-major. */
struct vxd_deform_pose {
    double rotation[9];
    double translation[3];
};

struct vxd_deform_apply_args {
    const float *points;  /* n x 3, metres; device memory, as all arrays */
    const float *normals; /* n x 3; NULL: none */
    size_t n;
    struct vxd_deform_pose T_grid_in;  /* from the points' frame to the grid's */
    struct vxd_deform_pose T_out_grid; /* from the grid's frame to that of the results */
    bool is_inverse;                   /* from deformed space back: C^-1 instead of C */
    float *out_points;                 /* n x 3; may be `points` */
    float *out_normals; /* n x 3, unit length; NULL: none; may be `normals` */
    uint8_t *is_inside; /* n: 1 where a corner is known; NULL: not needed */
};

/* Moves points: x_out = T_out_grid * C(T_grid_in * x). Normals are moved by the cofactors of C's
 * derivative, as normals of a surface are. A point that is not finite stays what it is.
 *
 * errors  INVALID_ARGUMENT  a pose that is not finite, n above 2^31 - 1, normals without results or
 *                           results without normals
 * sync    asynchronous
 * order   equal on every backend, bit for bit
 * source  ASH, section 6.3 (embedding in the 1-cube of a control grid) */
enum vxd_status vxd_deform_apply(struct vxd_queue *queue, const struct vxd_deform *deform,
                                 const struct vxd_deform_apply_args *args,
                                 struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
