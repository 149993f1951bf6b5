// SPDX-License-Identifier: Apache-2.0
/* Shapes given by data: heightfields and lists of voxels. */
#ifndef VXD_GPU_SVDAG_BRUSH_DATA_SHAPES_MATH_H
#define VXD_GPU_SVDAG_BRUSH_DATA_SHAPES_MATH_H

#include "gpu/svdag/brush/shape_math.h"

/* Heights
 * ---------------------------------------------------------------------------------
 *
 * A cube needs the least and the greatest height of its columns. A cube of few cells
 * reads the cells. Others read a pyramid of least and greatest heights over squares of
 * 2^level cells, from 4 a side up to one square for all. Heights in the pyramid are
 * clamped to 32 bits, which no comparison with a voxel centre notices. */
enum {
    VXD_SVDAG_PYRAMID_BASE = 2,    /* first level: 4 cells a side */
    VXD_SVDAG_PYRAMID_LEVELS = 25, /* cells a side are at most 2^26 */
    VXD_SVDAG_PYRAMID_FEW = 16     /* up to so many cells are read directly */
};

struct vxd_svdag_pyramid {
    const int32_t *least[VXD_SVDAG_PYRAMID_LEVELS]; /* row-major by x, as the cells */
    const int32_t *most[VXD_SVDAG_PYRAMID_LEVELS];
    int n_levels;
};

/* Number of squares of 2^level cells that cover n cells. */
VXD_HD uint32_t vxd_svdag_pyramid_side(uint32_t n, int level)
{
    return ((n - 1) >> level) + 1;
}

/* Number of squares in all levels of a field's pyramid, and of levels. */
VXD_HD size_t vxd_svdag_pyramid_words(const struct vxd_svdag_heights *field,
                                      int *n_levels)
{
    size_t n = 0;
    size_t n_squares;

    *n_levels = 0;
    do {
        int level = VXD_SVDAG_PYRAMID_BASE + *n_levels;

        n_squares = (size_t)vxd_svdag_pyramid_side(field->n_x, level) *
                    vxd_svdag_pyramid_side(field->n_y, level);
        n += n_squares;
        (*n_levels)++;
    } while (n_squares > 1);
    return n;
}

VXD_HD int32_t vxd_svdag_pyramid_cut(int64_t height)
{
    return (int32_t)(height > INT32_MAX   ? INT32_MAX
                     : height < INT32_MIN ? INT32_MIN
                                          : height);
}

/* Computes one square of the pyramid: of the first level (number 0) from the cells, of a
 * later one from four squares of the level before. */
VXD_HD void vxd_svdag_pyramid_square(const struct vxd_svdag_heights *field,
                                     const struct vxd_svdag_pyramid *pyramid, int number,
                                     uint32_t x, uint32_t y, int32_t *least,
                                     int32_t *most)
{
    int level = VXD_SVDAG_PYRAMID_BASE + number;
    int shift = number == 0 ? VXD_SVDAG_PYRAMID_BASE : 1;
    uint32_t n_x =
        number == 0 ? field->n_x : vxd_svdag_pyramid_side(field->n_x, level - 1);
    uint32_t n_y =
        number == 0 ? field->n_y : vxd_svdag_pyramid_side(field->n_y, level - 1);
    uint32_t end_x = (x + 1) << shift < n_x ? (x + 1) << shift : n_x;
    uint32_t end_y = (y + 1) << shift < n_y ? (y + 1) << shift : n_y;

    *least = INT32_MAX;
    *most = INT32_MIN;
    for (uint32_t i = x << shift; i < end_x; i++) {
        for (uint32_t j = y << shift; j < end_y; j++) {
            size_t at = (size_t)i * n_y + j;
            int32_t low = number == 0 ? vxd_svdag_pyramid_cut(field->heights[at])
                                      : pyramid->least[number - 1][at];
            int32_t high = number == 0 ? low : pyramid->most[number - 1][at];

            *least = low < *least ? low : *least;
            *most = high > *most ? high : *most;
        }
    }
}

/* The range of cells under the columns first .. first + n - 1 of an axis, whose grid has
 * n_cells cells from voxel `start` on; false where there are none. Clears *is_whole where
 * some of the columns have no cell. */
VXD_HD bool vxd_svdag_heights_cells(int64_t first, int64_t n, int64_t start,
                                    uint32_t cell, uint32_t n_cells, uint32_t range[2],
                                    bool *is_whole)
{
    int64_t low = first - start;
    int64_t high = first + n - 1 - start;
    int64_t end = (int64_t)n_cells * cell;

    if (high < 0 || low >= end) {
        return false;
    }
    if (low < 0) {
        *is_whole = false;
        low = 0;
    }
    if (high >= end) {
        *is_whole = false;
        high = end - 1;
    }
    range[0] = (uint32_t)(low / cell);
    range[1] = (uint32_t)(high / cell);
    return true;
}

VXD_HD void vxd_svdag_heights_span(const struct vxd_svdag_heights *field,
                                   const struct vxd_svdag_pyramid *pyramid,
                                   const uint32_t x[2], const uint32_t y[2],
                                   int64_t *least, int64_t *most)
{
    uint64_t n_cells = (uint64_t)(x[1] - x[0] + 1) * (y[1] - y[0] + 1);
    int level = n_cells <= VXD_SVDAG_PYRAMID_FEW ? 0 : VXD_SVDAG_PYRAMID_BASE;
    uint32_t n_y;

    while (level > 0 && ((x[1] >> level) - (x[0] >> level) > 1 ||
                         (y[1] >> level) - (y[0] >> level) > 1)) {
        level++;
    }
    n_y = vxd_svdag_pyramid_side(field->n_y, level);
    *least = INT64_MAX;
    *most = INT64_MIN;
    for (uint32_t i = x[0] >> level; i <= x[1] >> level; i++) {
        for (uint32_t j = y[0] >> level; j <= y[1] >> level; j++) {
            uint64_t at = (uint64_t)i * n_y + j;
            int64_t low = level == 0 ? field->heights[at]
                                     : pyramid->least[level - VXD_SVDAG_PYRAMID_BASE][at];
            int64_t high =
                level == 0 ? low : pyramid->most[level - VXD_SVDAG_PYRAMID_BASE][at];

            *least = low < *least ? low : *least;
            *most = high > *most ? high : *most;
        }
    }
}

VXD_HD enum vxd_svdag_relation
vxd_svdag_heights_relation(const struct vxd_svdag_shape *shape,
                           const struct vxd_svdag_pyramid *pyramid, uint32_t x,
                           uint32_t y, int height, const struct vxd_svdag_extent *extent)
{
    const struct vxd_svdag_heights *field = &shape->field;
    int64_t side = (int64_t)1 << height;
    bool is_whole = true;
    uint32_t cells_x[2];
    uint32_t cells_y[2];
    int64_t least;
    int64_t most;

    if (extent->high[2] < shape->low[2] ||
        !vxd_svdag_heights_cells(x, side, field->x, field->cell, field->n_x, cells_x,
                                 &is_whole) ||
        !vxd_svdag_heights_cells(y, side, field->y, field->cell, field->n_y, cells_y,
                                 &is_whole)) {
        return VXD_SVDAG_OUTSIDE;
    }
    vxd_svdag_heights_span(field, pyramid, cells_x, cells_y, &least, &most);
    if (extent->low[2] >= most) {
        return VXD_SVDAG_OUTSIDE;
    }
    return is_whole && extent->low[2] >= shape->low[2] && extent->high[2] < least
               ? VXD_SVDAG_INSIDE
               : VXD_SVDAG_PARTIAL;
}

/* Cells under four columns of an axis, -1 where there is none. */
VXD_HD void vxd_svdag_heights_four(int64_t first, int64_t start, uint32_t cell,
                                   uint32_t n_cells, int64_t cells[4])
{
    int64_t end = (int64_t)n_cells * cell;

    for (int k = 0; k < 4; k++) {
        int64_t at = first + k - start;

        cells[k] = at < 0 || at >= end ? -1 : cell == 1 ? at : at / cell;
    }
}

VXD_HD uint64_t vxd_svdag_heights_mask(const struct vxd_svdag_shape *shape, uint32_t x,
                                       uint32_t y, const struct vxd_svdag_extent *extent)
{
    const struct vxd_svdag_heights *field = &shape->field;
    uint64_t above = 0; /* voxels at or above the shape's lower bound */
    uint64_t mask = 0;
    int64_t cells_x[4];
    int64_t cells_y[4];

    vxd_svdag_heights_four(x, field->x, field->cell, field->n_x, cells_x);
    vxd_svdag_heights_four(y, field->y, field->cell, field->n_y, cells_y);
    for (int k = 0; k < 4; k++) {
        above |= vxd_svdag_nth_centre(extent, 2, k) >= shape->low[2]
                     ? vxd_svdag_leaf_plane(2, k)
                     : 0;
    }
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++) {
            int64_t top;

            if (cells_x[i] < 0 || cells_y[j] < 0) {
                continue;
            }
            top = field->heights[cells_x[i] * field->n_y + cells_y[j]];
            for (int k = 0; k < 4; k++) {
                mask |= (uint64_t)(vxd_svdag_nth_centre(extent, 2, k) < top)
                        << vxd_svdag_leaf_index(i, j, k);
            }
        }
    }
    return mask & above;
}

/* Lists of voxels ------------------------------------------------------------------------ */

/* First of the ascending codes[first .. end - 1] that is at least `code`; end if none is. */
VXD_HD uint64_t vxd_svdag_list_bound(const uint64_t *codes, uint64_t first, uint64_t end,
                                     uint64_t code)
{
    while (first < end) {
        uint64_t middle = first + (end - first) / 2;

        if (codes[middle] < code) {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    return first;
}

/* Whether leaf i of a list is valid by the rules of brush.h: its code is below n_codes,
 * the scene's number of leaves, and, where values are used, they are below
 * n_materials. */
VXD_HD bool vxd_svdag_list_is_good(const struct vxd_svdag_voxels *voxels, uint64_t i,
                                   uint64_t n_codes, uint32_t n_materials,
                                   bool uses_values)
{
    const uint64_t mask = voxels->masks[i];
    int n = uses_values ? vxd_svdag_popc(mask) : 0;

    if (voxels->codes[i] >= n_codes ||
        (i > 0 && voxels->codes[i - 1] >= voxels->codes[i]) || mask == 0) {
        return false;
    }
    for (int k = 0; k < n; k++) {
        if (voxels->values[voxels->first_value[i] + (uint32_t)k] >= n_materials) {
            return false;
        }
    }
    return true;
}

/* Code of the leaf that holds a voxel; for the low corner of a cube, that of its first
 * leaf. */
VXD_HD uint64_t vxd_svdag_list_code(uint32_t x, uint32_t y, uint32_t z)
{
    return vxd_spread3(x >> 2) << 2 | vxd_spread3(y >> 2) << 1 | vxd_spread3(z >> 2);
}

/* Narrows a range of list entries to the leaves of a cube. A cube's codes are
 * consecutive. */
VXD_HD void vxd_svdag_list_narrow(const struct vxd_svdag_voxels *voxels, uint32_t x,
                                  uint32_t y, uint32_t z, int height, uint64_t range[2])
{
    uint64_t code = vxd_svdag_list_code(x, y, z);
    uint64_t n = (uint64_t)1 << 3 * (height - VXD_SVDAG_LEAF_HEIGHT);

    range[0] = vxd_svdag_list_bound(voxels->codes, range[0], range[1], code);
    range[1] = vxd_svdag_list_bound(voxels->codes, range[0], range[1], code + n);
}

#endif
