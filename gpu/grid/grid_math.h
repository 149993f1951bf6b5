// SPDX-License-Identifier: Apache-2.0
/* What decides the cells of grids, as both backends compile it. */
#ifndef VXD_GPU_GRID_GRID_MATH_H
#define VXD_GPU_GRID_GRID_MATH_H

#include "gpu/grid/grid.h"
#include "gpu/svdag/query/query_math.h"

/* Bits of a leaf's mask that stand for its columns: those of voxels at its lowest z. */
#define VXD_GRID_COLUMNS 0x0055005500550055ULL

/* The columns of a leaf that have a voxel in the mask. */
VXD_HD uint64_t vxd_grid_flatten(uint64_t mask)
{
    mask |= mask >> 1; /* odd z to even */
    mask |= mask >> 8; /* the upper two z to the lower two */
    return mask & VXD_GRID_COLUMNS;
}

/* The bit of a column, by the low two bits of x and y. */
VXD_HD int vxd_grid_column_bit(uint32_t x, uint32_t y)
{
    return vxd_svdag_leaf_bit(x, y, 0);
}

/* The voxels of a column of a leaf, lowest z in the lowest of four bits. */
VXD_HD unsigned vxd_grid_column(uint64_t mask, int bit)
{
    mask >>= bit;
    return (unsigned)(mask & 3) | (unsigned)(mask >> 6 & 12);
}

/* The voxels of a leaf in the band low .. high - 1, which it reaches. */
VXD_HD uint64_t vxd_grid_band_mask(uint32_t z, int32_t low, int32_t high)
{
    uint64_t mask = 0;

    for (int k = 0; k < 4; k++) {
        int32_t at = (int32_t)z + k;

        mask |= at >= low && at < high ? vxd_svdag_leaf_plane(2, k) : 0;
    }
    return mask;
}

VXD_HD uint8_t vxd_grid_state(bool occupied, bool free)
{
    return (uint8_t)(occupied ? VXD_SVDAG_OCCUPIED
                     : free   ? VXD_SVDAG_FREE
                              : VXD_SVDAG_UNKNOWN);
}

/* Occupied voxels of a column. */
struct vxd_grid_span {
    int32_t low;  /* INT32_MAX where there is none */
    int32_t high; /* INT32_MIN */
    uint64_t n;
    uint64_t sum; /* of their z */
};

VXD_HD double vxd_grid_divide(double a, double b)
{
#if defined(__CUDA_ARCH__)
    return __ddiv_rn(a, b);
#else
    return a / b;
#endif
}

/* The height of an index, which may be a mean of several. */
VXD_HD float vxd_grid_height(const struct vxd_grid_heights *heights, double z)
{
    return (float)vxd_addd(heights->origin_m,
                           vxd_muld(vxd_addd(z, 0.5), heights->voxel_m));
}

VXD_HD void vxd_grid_put_heights(const struct vxd_grid_heights *heights, size_t cell,
                                 const struct vxd_grid_span *span)
{
    float none = vxd_float_of_bits(0x7fc00000u);
    bool has = span->n > 0;

    heights->top[cell] = has ? span->high : INT32_MIN;
    heights->low[cell] = has ? vxd_grid_height(heights, (double)span->low) : none;
    heights->high[cell] = has ? vxd_grid_height(heights, (double)span->high) : none;
    heights->mean[cell] =
        has ? vxd_grid_height(heights,
                              vxd_grid_divide((double)span->sum, (double)span->n))
            : none;
}

/* Twice the slope along an axis, in voxels a cell; false where no neighbour has a height. */
VXD_HD bool vxd_grid_slope_axis(int32_t before, int32_t here, int32_t after,
                                int64_t *twice)
{
    bool has_before = before != INT32_MIN;
    bool has_after = after != INT32_MIN;

    *twice = has_before && has_after ? (int64_t)after - before
             : has_after             ? 2 * ((int64_t)after - here)
             : has_before            ? 2 * ((int64_t)here - before)
                                     : 0;
    return has_before || has_after;
}

/* The slope of a cell. Heights are indices and cells are voxels, so it needs no unit; the sum of
 * squares is below 2^46 and exact. */
VXD_HD float vxd_grid_slope_of(const int32_t *top, uint32_t n_x, uint32_t n_y, uint32_t x,
                               uint32_t y)
{
    const int32_t *at = top + (size_t)y * n_x + x;
    int64_t along_x;
    int64_t along_y;
    bool has_x;
    bool has_y;
    double square;

    if (*at == INT32_MIN) {
        return vxd_float_of_bits(0x7fc00000u);
    }
    has_x = vxd_grid_slope_axis(x > 0 ? at[-1] : INT32_MIN, *at,
                                x + 1 < n_x ? at[1] : INT32_MIN, &along_x);
    has_y = vxd_grid_slope_axis(y > 0 ? *(at - n_x) : INT32_MIN, *at,
                                y + 1 < n_y ? at[n_x] : INT32_MIN, &along_y);
    if (!has_x || !has_y) {
        return vxd_float_of_bits(0x7fc00000u);
    }
    square = (double)(along_x * along_x + along_y * along_y);
    return (float)vxd_muld(sqrt(square), 0.5);
}

VXD_HD bool vxd_grid_is_lethal(uint8_t state, enum vxd_grid_unknown unknown)
{
    return state == VXD_SVDAG_OCCUPIED ||
           (state == VXD_SVDAG_UNKNOWN && unknown == VXD_GRID_UNKNOWN_LETHAL);
}

/* The cost of a cell whose nearest obstacle is so far away. nav2's inflation layer leaves what is
 * unknown so, unless the robot would touch an obstacle there. */
VXD_HD uint8_t vxd_grid_cost(const uint8_t *costs, uint32_t radius, uint32_t square,
                             uint8_t state, enum vxd_grid_unknown unknown)
{
    uint8_t cost = square <= radius * radius ? costs[square] : (uint8_t)VXD_COST_FREE;

    return state == VXD_SVDAG_UNKNOWN && unknown == VXD_GRID_UNKNOWN_KEPT &&
                   cost < VXD_COST_INSCRIBED
               ? (uint8_t)VXD_COST_UNKNOWN
               : cost;
}

/* Whether a cell of a dense array is a frontier. */
VXD_HD bool vxd_grid_is_frontier(const uint8_t *states, const uint32_t n[3],
                                 uint32_t cell)
{
    uint32_t row = cell / n[2];
    uint32_t z = cell - row * n[2];
    uint32_t x = row / n[1];
    uint32_t y = row - x * n[1];
    const uint8_t *at = states + cell;
    size_t plane = (size_t)n[1] * n[2];

    return *at == VXD_SVDAG_FREE && ((z > 0 && at[-1] == VXD_SVDAG_UNKNOWN) ||
                                     (z + 1 < n[2] && at[1] == VXD_SVDAG_UNKNOWN) ||
                                     (y > 0 && *(at - n[2]) == VXD_SVDAG_UNKNOWN) ||
                                     (y + 1 < n[1] && at[n[2]] == VXD_SVDAG_UNKNOWN) ||
                                     (x > 0 && *(at - plane) == VXD_SVDAG_UNKNOWN) ||
                                     (x + 1 < n[0] && at[plane] == VXD_SVDAG_UNKNOWN));
}

#endif
