// SPDX-License-Identifier: Apache-2.0
/* Cells of 2^level voxels a side: counted, written in Morton order, and as a dense array. All
 * functions take a cube not lower than the cells, so that exports go by parts of the tree. */
#ifndef VXD_GPU_SVDAG_DIFF_CELLS_MATH_H
#define VXD_GPU_SVDAG_DIFF_CELLS_MATH_H

#include "gpu/svdag/query/query_math.h"
#include "gpu/svdag/diff/export_cells.h"

struct vxd_svdag_cells {
    struct vxd_svdag_area area; /* a box */
    int level;
    unsigned state; /* the voxels that count: OCCUPIED or FREE */
};

/* Rows of an export, as in export.h. */
struct vxd_svdag_rows {
    int32_t *cells;
    uint16_t *values;
    uint64_t *counts;
};

/* Voxels of the area that count, in a cube of leaf height. */
VXD_HD uint64_t vxd_svdag_cells_mask(const struct vxd_svdag_view *view,
                                     const struct vxd_svdag_position *tree_cube,
                                     const struct vxd_svdag_cells *cells)
{
    uint64_t occupied;
    uint64_t free;

    vxd_svdag_tree_cube_masks(view, tree_cube->ref, &occupied, &free);
    return (cells->state == VXD_SVDAG_FREE ? free : occupied) &
           vxd_svdag_area_mask(&cells->area, tree_cube,
                               vxd_svdag_area_relation(&cells->area, tree_cube));
}

/* Whether a cube has voxels that count, of which some may lie in the area. */
VXD_HD bool vxd_svdag_cells_may(const struct vxd_svdag_view *view,
                                const struct vxd_svdag_position *tree_cube,
                                const struct vxd_svdag_cells *cells)
{
    if (tree_cube->ref == VXD_SVDAG_EMPTY ||
        vxd_svdag_area_relation(&cells->area, tree_cube) == VXD_SVDAG_OUTSIDE) {
        return false;
    }
    return (vxd_svdag_is_node(tree_cube->ref) &&
            tree_cube->height == VXD_SVDAG_LEAF_HEIGHT) ||
           (vxd_svdag_position_states(view, tree_cube) & cells->state) != 0;
}

/* The first voxel in Morton order that counts, in the area; false: there is none. */
VXD_HD bool vxd_svdag_cells_first(const struct vxd_svdag_view *view,
                                  const struct vxd_svdag_position *from,
                                  const struct vxd_svdag_cells *cells, uint32_t *value)
{
    struct vxd_svdag_cursor cursor;
    bool is_more = true;

    vxd_svdag_cursor_begin(&cursor, from);
    while (is_more) {
        const struct vxd_svdag_position *tree_cube = &cursor.tree_cube;
        bool may = vxd_svdag_cells_may(view, tree_cube, cells);
        uint64_t mask;

        if (may && !vxd_svdag_is_node(tree_cube->ref)) {
            *value = vxd_svdag_uniform_value(tree_cube->ref);
            return true;
        }
        if (may && tree_cube->height > VXD_SVDAG_LEAF_HEIGHT) {
            vxd_svdag_cursor_down(view, &cursor);
            continue;
        }
        mask = may ? vxd_svdag_cells_mask(view, tree_cube, cells) : 0;
        if (mask != 0) {
            *value =
                vxd_svdag_tree_cube_value(view, tree_cube->ref, vxd_svdag_low_bit(mask));
            return true;
        }
        is_more = vxd_svdag_cursor_next(view, &cursor);
    }
    return false;
}

/* Cells of one leaf: 2^3 level voxels follow one another in its mask. */
VXD_HD uint64_t vxd_svdag_cells_group(uint64_t mask, int level, int i)
{
    int n_bits = 1 << (3 * level);

    return mask >> (i * n_bits) & ~(uint64_t)0 >> (64 - n_bits);
}

VXD_HD int vxd_svdag_cells_of_leaf(uint64_t mask, int level)
{
    int n = 0;

    if (level == 0) {
        return vxd_svdag_popc(mask);
    }
    for (int i = 0; i < 64 >> (3 * level); i++) {
        n += vxd_svdag_cells_group(mask, level, i) != 0;
    }
    return n;
}

/* Cells of a uniform cube that the area reaches. */
VXD_HD uint64_t vxd_svdag_cells_of_uniform(const struct vxd_svdag_position *tree_cube,
                                           const struct vxd_svdag_cells *cells)
{
    uint32_t corner[3] = {tree_cube->x, tree_cube->y, tree_cube->z};
    uint64_t n = 1;

    for (int axis = 0; axis < 3; axis++) {
        int64_t low = corner[axis];
        int64_t last = low + ((int64_t)1 << tree_cube->height) - 1;

        low = low < cells->area.low[axis] ? cells->area.low[axis] : low;
        last = last >= cells->area.high[axis] ? cells->area.high[axis] - 1 : last;
        n *= (uint64_t)((last >> cells->level) - (low >> cells->level) + 1);
    }
    return n;
}

/* Adds the cells of a cube to *n. True: only its children decide, and nothing was added; never
 * of a cube as low as a cell, or as a leaf. */
VXD_HD bool vxd_svdag_cells_count_tree_cube(const struct vxd_svdag_view *view,
                                            const struct vxd_svdag_cells *cells,
                                            const struct vxd_svdag_position *tree_cube,
                                            uint64_t *n)
{
    uint32_t value;

    if (!vxd_svdag_cells_may(view, tree_cube, cells)) {
        return false;
    }
    if (!vxd_svdag_is_node(tree_cube->ref)) {
        *n += vxd_svdag_cells_of_uniform(tree_cube, cells);
        return false;
    }
    if (tree_cube->height == VXD_SVDAG_LEAF_HEIGHT) {
        *n += (uint64_t)vxd_svdag_cells_of_leaf(
            vxd_svdag_cells_mask(view, tree_cube, cells), cells->level);
        return false;
    }
    if (tree_cube->height == cells->level) {
        *n += vxd_svdag_cells_first(view, tree_cube, cells, &value) ? 1 : 0;
        return false;
    }
    if (cells->level == 0 && cells->state == VXD_SVDAG_OCCUPIED &&
        tree_cube->height <= VXD_SVDAG_COUNT_HEIGHT &&
        vxd_svdag_area_relation(&cells->area, tree_cube) == VXD_SVDAG_INSIDE) {
        *n += vxd_svdag_words(view, tree_cube->ref)[0] >> 10;
        return false;
    }
    return true;
}

VXD_HD uint64_t vxd_svdag_cells_count(const struct vxd_svdag_view *view,
                                      const struct vxd_svdag_position *from,
                                      const struct vxd_svdag_cells *cells)
{
    struct vxd_svdag_cursor cursor;
    uint64_t n = 0;
    bool is_more = true;

    vxd_svdag_cursor_begin(&cursor, from);
    while (is_more) {
        if (vxd_svdag_cells_count_tree_cube(view, cells, &cursor.tree_cube, &n)) {
            vxd_svdag_cursor_down(view, &cursor);
        } else {
            is_more = vxd_svdag_cursor_next(view, &cursor);
        }
    }
    return n;
}

VXD_HD void vxd_svdag_rows_put(const struct vxd_svdag_rows *rows, uint64_t row,
                               uint32_t x, uint32_t y, uint32_t z, uint32_t value,
                               uint64_t count)
{
    rows->cells[row * 3] = (int32_t)x;
    rows->cells[row * 3 + 1] = (int32_t)y;
    rows->cells[row * 3 + 2] = (int32_t)z;
    if (rows->values != NULL) {
        rows->values[row] = (uint16_t)value;
    }
    if (rows->counts != NULL) {
        rows->counts[row] = count;
    }
}

/* One cell of a higher level than leaves'; false where nothing in it counts. */
VXD_HD bool vxd_svdag_cells_put(const struct vxd_svdag_view *view,
                                const struct vxd_svdag_position *tree_cube,
                                const struct vxd_svdag_cells *cells,
                                const struct vxd_svdag_rows *rows, uint64_t row)
{
    uint64_t counts[2] = {0, 0};
    uint32_t value;

    if (!vxd_svdag_cells_first(view, tree_cube, cells, &value)) {
        return false;
    }
    if (rows->counts != NULL) {
        vxd_svdag_area_count(view, tree_cube, &cells->area, cells->state, counts);
    }
    vxd_svdag_rows_put(rows, row, tree_cube->x >> cells->level,
                       tree_cube->y >> cells->level, tree_cube->z >> cells->level, value,
                       counts[cells->state == VXD_SVDAG_FREE]);
    return true;
}

/* Cells of a leaf but the first *skip of them; returns how many, at most `most`. */
VXD_HD uint64_t vxd_svdag_cells_put_leaf(const struct vxd_svdag_view *view,
                                         const struct vxd_svdag_position *tree_cube,
                                         const struct vxd_svdag_cells *cells,
                                         const struct vxd_svdag_rows *rows, uint64_t row,
                                         uint64_t *skip, uint64_t most)
{
    uint64_t mask = vxd_svdag_cells_mask(view, tree_cube, cells);
    int shift = 3 * cells->level;
    uint64_t n = 0;

    for (int i = 0; i < 64 >> shift && n < most; i++) {
        uint64_t group = vxd_svdag_cells_group(mask, cells->level, i);
        int first = i << shift;
        int bit;

        if (group == 0) {
            continue;
        }
        if (*skip > 0) {
            (*skip)--;
            continue;
        }
        bit = first + vxd_svdag_low_bit(group);
        vxd_svdag_rows_put(
            rows, row + n,
            (tree_cube->x + (uint32_t)((first >> 4 & 2) | (first >> 2 & 1))) >>
                cells->level,
            (tree_cube->y + (uint32_t)((first >> 3 & 2) | (first >> 1 & 1))) >>
                cells->level,
            (tree_cube->z + (uint32_t)((first >> 2 & 2) | (first & 1))) >> cells->level,
            vxd_svdag_tree_cube_value(view, tree_cube->ref, bit),
            (uint64_t)vxd_svdag_popc(group));
        n++;
    }
    return n;
}

/* Writes rows from `row` on: the cells of a cube but the first `skip`, at most `most` of them;
 * returns how many. */
VXD_HD uint64_t vxd_svdag_cells_write(const struct vxd_svdag_view *view,
                                      const struct vxd_svdag_position *from,
                                      const struct vxd_svdag_cells *cells,
                                      const struct vxd_svdag_rows *rows, uint64_t row,
                                      uint64_t skip, uint64_t most)
{
    struct vxd_svdag_cursor cursor;
    uint64_t n = 0;
    bool is_more = true;

    vxd_svdag_cursor_begin(&cursor, from);
    while (is_more && n < most) {
        const struct vxd_svdag_position *tree_cube = &cursor.tree_cube;
        bool is_last = tree_cube->height <= VXD_SVDAG_LEAF_HEIGHT ||
                       tree_cube->height <= cells->level;
        bool may = vxd_svdag_cells_may(view, tree_cube, cells);

        if (may && skip > 0 && !is_last) {
            uint64_t n_here = vxd_svdag_cells_count(view, tree_cube, cells);

            if (n_here <= skip) {
                skip -= n_here;
                may = false;
            }
        }
        if (may && !is_last) {
            vxd_svdag_cursor_down(view, &cursor);
            continue;
        }
        if (may && cells->level <= VXD_SVDAG_LEAF_HEIGHT) {
            n += vxd_svdag_cells_put_leaf(view, tree_cube, cells, rows, row + n, &skip,
                                          most - n);
        } else if (may && skip > 0) {
            skip -= vxd_svdag_cells_count(view, tree_cube, cells);
        } else if (may) {
            n += vxd_svdag_cells_put(view, tree_cube, cells, rows, row + n);
        }
        is_more = vxd_svdag_cursor_next(view, &cursor);
    }
    return n;
}

/* A dense array of cells, and where it begins. */
struct vxd_svdag_dense {
    int64_t low[3];  /* in cells */
    int64_t size[3]; /* cells */
    uint8_t *states;
    uint16_t *values; /* may be NULL */
};

/* Fills the cells low .. high - 1 of the array, by index in the scene. */
VXD_HD void vxd_svdag_dense_put(const struct vxd_svdag_dense *dense, const int64_t low[3],
                                const int64_t high[3], unsigned states, uint32_t value)
{
    for (int64_t x = low[0] - dense->low[0]; x < high[0] - dense->low[0]; x++) {
        for (int64_t y = low[1] - dense->low[1]; y < high[1] - dense->low[1]; y++) {
            int64_t row = (x * dense->size[1] + y) * dense->size[2] - dense->low[2];

            for (int64_t z = low[2]; z < high[2]; z++) {
                dense->states[row + z] = (uint8_t)states;
                if (dense->values != NULL) {
                    dense->values[row + z] = (uint16_t)value;
                }
            }
        }
    }
}

/* Cells of a leaf, one to 64. */
VXD_HD void vxd_svdag_dense_put_leaf(const struct vxd_svdag_view *view,
                                     const struct vxd_svdag_position *tree_cube,
                                     const struct vxd_svdag_cells *cells,
                                     const struct vxd_svdag_dense *dense)
{
    uint64_t area = vxd_svdag_area_mask(&cells->area, tree_cube,
                                        vxd_svdag_area_relation(&cells->area, tree_cube));
    int shift = 3 * cells->level;
    uint64_t occupied;
    uint64_t free;

    vxd_svdag_tree_cube_masks(view, tree_cube->ref, &occupied, &free);
    for (int i = 0; i < 64 >> shift; i++) {
        uint64_t set = vxd_svdag_cells_group(occupied, cells->level, i);
        uint64_t clear = vxd_svdag_cells_group(free, cells->level, i);
        uint64_t none = vxd_svdag_cells_group(~(occupied | free), cells->level, i);
        int first = i << shift;
        int64_t low[3] = {
            (tree_cube->x + (uint32_t)((first >> 4 & 2) | (first >> 2 & 1))) >>
                cells->level,
            (tree_cube->y + (uint32_t)((first >> 3 & 2) | (first >> 1 & 1))) >>
                cells->level,
            (tree_cube->z + (uint32_t)((first >> 2 & 2) | (first & 1))) >> cells->level};
        int64_t high[3] = {low[0] + 1, low[1] + 1, low[2] + 1};
        uint32_t value = 0;

        if ((area >> first & 1) == 0) {
            continue;
        }
        if (set != 0) {
            value = vxd_svdag_tree_cube_value(view, tree_cube->ref,
                                              first + vxd_svdag_low_bit(set));
        }
        vxd_svdag_dense_put(dense, low, high,
                            vxd_svdag_state_if(set != 0, VXD_SVDAG_OCCUPIED) |
                                vxd_svdag_state_if(clear != 0, VXD_SVDAG_FREE) |
                                vxd_svdag_state_if(none != 0, VXD_SVDAG_UNKNOWN),
                            value);
    }
}

/* The cells that a uniform cube, or a cube of the cells' own height, has in the area. */
VXD_HD void vxd_svdag_dense_put_tree_cube(const struct vxd_svdag_view *view,
                                          const struct vxd_svdag_position *tree_cube,
                                          const struct vxd_svdag_cells *cells,
                                          const struct vxd_svdag_dense *dense)
{
    uint32_t corner[3] = {tree_cube->x, tree_cube->y, tree_cube->z};
    unsigned states = vxd_svdag_area_states(view, tree_cube, &cells->area);
    uint32_t value = 0;
    int64_t low[3];
    int64_t high[3];

    if ((states & VXD_SVDAG_OCCUPIED) != 0) {
        (void)vxd_svdag_cells_first(view, tree_cube, cells, &value);
    }
    for (int axis = 0; axis < 3; axis++) {
        int64_t from = cells->area.low[axis];
        int64_t to = cells->area.high[axis];

        low[axis] = vxd_svdag_clamp(corner[axis], from, to) >> cells->level;
        high[axis] =
            vxd_svdag_clamp(corner[axis] + ((int64_t)1 << tree_cube->height), from, to) >>
            cells->level;
    }
    vxd_svdag_dense_put(dense, low, high, states, value);
}

/* Writes the cells of a cube that are not UNKNOWN alone; those are there before. The area is
 * one of whole cells and inside the array; cells->state is OCCUPIED. True: only what is below
 * decide, and nothing was written; never of a cube as low as a cell, or as a leaf. */
VXD_HD bool vxd_svdag_dense_tree_cube(const struct vxd_svdag_view *view,
                                      const struct vxd_svdag_cells *cells,
                                      const struct vxd_svdag_position *tree_cube,
                                      const struct vxd_svdag_dense *dense)
{
    if (tree_cube->ref == VXD_SVDAG_EMPTY ||
        vxd_svdag_area_relation(&cells->area, tree_cube) == VXD_SVDAG_OUTSIDE) {
        return false;
    }
    if (!vxd_svdag_is_node(tree_cube->ref) || tree_cube->height == cells->level) {
        vxd_svdag_dense_put_tree_cube(view, tree_cube, cells, dense);
        return false;
    }
    if (tree_cube->height == VXD_SVDAG_LEAF_HEIGHT) {
        vxd_svdag_dense_put_leaf(view, tree_cube, cells, dense);
        return false;
    }
    return true;
}

/* Writes the cells below a cube, likewise. */
VXD_HD void vxd_svdag_dense_write(const struct vxd_svdag_view *view,
                                  const struct vxd_svdag_position *from,
                                  const struct vxd_svdag_cells *cells,
                                  const struct vxd_svdag_dense *dense)
{
    struct vxd_svdag_cursor cursor;
    bool is_more = true;

    vxd_svdag_cursor_begin(&cursor, from);
    while (is_more) {
        if (vxd_svdag_dense_tree_cube(view, cells, &cursor.tree_cube, dense)) {
            vxd_svdag_cursor_down(view, &cursor);
        } else {
            is_more = vxd_svdag_cursor_next(view, &cursor);
        }
    }
}

#endif
