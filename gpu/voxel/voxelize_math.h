// SPDX-License-Identifier: Apache-2.0
/* What decides the integer results of voxelization; compiled by both gcc and nvcc. */
#ifndef VXD_GPU_VOXEL_VOXELIZE_MATH_H
#define VXD_GPU_VOXEL_VOXELIZE_MATH_H

#include "gpu/core/core_math.h"
#include "gpu/voxel/voxelize.h"

/* Points of one voxel are summed in blocks of this many (see vxd_voxelize). A block's
 * sum starts as its first point and the voxel's as its first block's sum, not as zero,
 * so that -0 survives. */
#define VXD_SUM_BLOCK 1024

enum vxd_point_class {
    VXD_POINT_KEPT = 0,
    VXD_POINT_NON_FINITE = 1,
    VXD_POINT_OUT_OF_RANGE = 2
};

/* The lattice of one call, derived once from the arguments by vxd_voxel_lattice_init.
 *
 * Keys contain only the bits that can differ, in the same order as Morton order over c + 2^20:
 * with every |c| < 2^k, the levels between k and 20 repeat the sign level, so a bias of 2^k gives
 * the same order; without negative c the sign level is constant and is left out too. */
struct vxd_voxel_lattice {
    enum vxd_voxel_rule rule;
    bool has_range;
    float size[3];
    float lo[3];
    float hi[3];
    double exact_size[3]; /* DOUBLE only */
    int32_t grid[3];      /* SPCONV only */
    int32_t bias;         /* added to every coordinate before packing */
    int levels;           /* bits an axis, 1 to 21; a key has 3 * levels bits */
};

/* What decides the cell of a position along one axis. */
struct vxd_voxel_axis {
    enum vxd_voxel_rule rule;
    bool has_range;
    float size;
    float lo;
    float hi;
    float grid;
};

VXD_HD struct vxd_voxel_axis vxd_voxel_axis_of(const struct vxd_voxel_lattice *lattice,
                                               enum vxd_voxel_rule rule, int axis)
{
    struct vxd_voxel_axis out;

    out.rule = rule;
    out.has_range = lattice->has_range;
    out.size = lattice->size[axis];
    out.lo = lattice->lo[axis];
    out.hi = lattice->hi[axis];
    out.grid = (float)lattice->grid[axis];
    return out;
}

/* The cell of a finite position; and whether the lattice has it. */
VXD_HD float vxd_voxel_cell(const struct vxd_voxel_axis *axis, float p)
{
    return axis->rule == VXD_RULE_SPCONV
               ? floorf(vxd_divf(vxd_subf(p, axis->lo), axis->size))
               : floorf(vxd_divf(p, axis->size));
}

VXD_HD bool vxd_voxel_has_cell(const struct vxd_voxel_axis *axis, float p, float q)
{
    /* No && or ||, so that loops over this have no branch. */
    if (axis->rule == VXD_RULE_SPCONV) {
        return ((int)(q >= 0.0f) & (int)(q < axis->grid)) != 0;
    }
    return ((int)(q >= -1048576.0f) & (int)(q < 1048576.0f) &
            ((int)!axis->has_range | ((int)(p >= axis->lo) & (int)(p < axis->hi)))) != 0;
}

/* Coordinate of a position, or why it has none. */
VXD_HD enum vxd_point_class vxd_voxel_coord(const struct vxd_voxel_lattice *lattice,
                                            const float p[3], int32_t c[3])
{
    enum vxd_point_class point_class = VXD_POINT_KEPT;

    for (int i = 0; i < 3; i++) {
        struct vxd_voxel_axis axis = vxd_voxel_axis_of(lattice, lattice->rule, i);
        float q;

        if (!isfinite(p[i])) {
            return VXD_POINT_NON_FINITE;
        }
        q = vxd_voxel_cell(&axis, p[i]);
        if (!vxd_voxel_has_cell(&axis, p[i], q)) {
            point_class = VXD_POINT_OUT_OF_RANGE;
            continue;
        }
        c[i] = (int32_t)q;
    }
    return point_class;
}

/* The same by the rule DOUBLE. */
VXD_HD enum vxd_point_class vxd_voxel_coord_exact(const struct vxd_voxel_lattice *lattice,
                                                  const double p[3], int32_t c[3])
{
    enum vxd_point_class point_class = VXD_POINT_KEPT;

    for (int axis = 0; axis < 3; axis++) {
        double q;

        if (!isfinite(p[axis])) {
            return VXD_POINT_NON_FINITE;
        }
        q = floor(vxd_divd(p[axis], lattice->exact_size[axis]));
        if (!(q >= -1048576.0 && q < 1048576.0) ||
            (lattice->has_range && !(p[axis] >= (double)lattice->lo[axis] &&
                                     p[axis] < (double)lattice->hi[axis]))) {
            point_class = VXD_POINT_OUT_OF_RANGE;
            continue;
        }
        c[axis] = (int32_t)q;
    }
    return point_class;
}

/* Morton key of a kept coordinate, 3 * levels bits. */
VXD_HD uint64_t vxd_voxel_key(const struct vxd_voxel_lattice *lattice, const int32_t c[3])
{
    return vxd_spread3((uint64_t)(uint32_t)(c[0] + lattice->bias)) << 2 |
           vxd_spread3((uint64_t)(uint32_t)(c[1] + lattice->bias)) << 1 |
           vxd_spread3((uint64_t)(uint32_t)(c[2] + lattice->bias));
}

/* Inverse of vxd_voxel_key. */
VXD_HD void vxd_voxel_from_key(const struct vxd_voxel_lattice *lattice, uint64_t key,
                               int32_t c[3])
{
    c[0] = (int32_t)vxd_gather3(key >> 2) - lattice->bias;
    c[1] = (int32_t)vxd_gather3(key >> 1) - lattice->bias;
    c[2] = (int32_t)vxd_gather3(key) - lattice->bias;
}

/* The mean that is output; the sum and its block sums use vxd_addf only. Both are
 * output through vxd_canonical_nanf. */
VXD_HD float vxd_voxel_mean(float sum, uint32_t count)
{
    return vxd_canonical_nanf(vxd_divf(sum, (float)count));
}

/* Sample of point i: the last s with starts[s] <= i; no point belongs to an empty
 * sample. */
VXD_HD int vxd_voxel_sample(const uint32_t *starts, int n_batch, uint32_t i)
{
    int low = 0;
    int high = n_batch;

    while (high - low > 1) {
        int middle = low + (high - low) / 2;

        if (starts[middle] <= i) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

#endif
