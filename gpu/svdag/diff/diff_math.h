// SPDX-License-Identifier: Apache-2.0
/* Where two trees differ: both go down together, and no further where they are one. What is
 * known of a pair of references at once (what is empty on one side, which states occur on the
 * other) needs no look at voxels.
 *
 * Cells are counted and written first; the changes of large ones, of the rows alone, after
 * that, each cell's by many threads where cells are few. */
#ifndef VXD_GPU_SVDAG_DIFF_DIFF_MATH_H
#define VXD_GPU_SVDAG_DIFF_DIFF_MATH_H

#include "gpu/svdag/diff/cells_math.h"
#include "gpu/svdag/diff/diff_cells.h"

enum {
    /* Cells of higher levels are large: their changes come last. */
    VXD_SVDAG_DIFF_SMALL = VXD_SVDAG_LEAF_HEIGHT + 1
};

/* A place, and what stands there on both sides. */
struct vxd_svdag_diff_tree_cube {
    struct vxd_svdag_position at; /* with the reference before */
    uint32_t after;
};

/* Rows of a diff, as in diff.h. */
struct vxd_svdag_diff_rows {
    int32_t *cells;
    uint8_t *changes;
};

VXD_HD struct vxd_svdag_diff_tree_cube
vxd_svdag_diff_child(const struct vxd_svdag_view *view,
                     const struct vxd_svdag_diff_tree_cube *tree_cube, int octant)
{
    struct vxd_svdag_diff_tree_cube child;

    child.at = vxd_svdag_tree_cube_child(view, &tree_cube->at, octant);
    child.after = vxd_svdag_child_ref(view, tree_cube->after, octant);
    return child;
}

/* What stands at the cube of this height that holds a voxel. */
VXD_HD struct vxd_svdag_diff_tree_cube
vxd_svdag_diff_at(const struct vxd_svdag_view *view, uint32_t before, uint32_t after,
                  uint32_t x, uint32_t y, uint32_t z, int height)
{
    const uint32_t mask = ~((1u << height) - 1);
    struct vxd_svdag_diff_tree_cube tree_cube = {
        {before, x & mask, y & mask, z & mask, height}, after};

    for (int h = view->depth; h > height && tree_cube.at.ref != tree_cube.after; h--) {
        const int octant = vxd_svdag_octant(x, y, z, h);

        tree_cube.at.ref = vxd_svdag_child_ref(view, tree_cube.at.ref, octant);
        tree_cube.after = vxd_svdag_child_ref(view, tree_cube.after, octant);
    }
    return tree_cube;
}

/* Whether some voxel of the area may differ in a cube. */
VXD_HD bool vxd_svdag_diff_may(const struct vxd_svdag_area *area,
                               const struct vxd_svdag_diff_tree_cube *tree_cube)
{
    return tree_cube->at.ref != tree_cube->after &&
           vxd_svdag_area_relation(area, &tree_cube->at) != VXD_SVDAG_OUTSIDE;
}

/* Neither side has parts: they differ in every voxel, and the same way in all. */
VXD_HD bool vxd_svdag_diff_is_even(const struct vxd_svdag_diff_tree_cube *tree_cube)
{
    return !vxd_svdag_is_node(tree_cube->at.ref) && !vxd_svdag_is_node(tree_cube->after);
}

/* Leaves ---------------------------------------------------------------------------------- */

/* Voxels, occupied on both sides of a cube of leaf height, that are of another material; no
 * more than `most` are looked for. */
VXD_HD uint64_t vxd_svdag_diff_changed(const struct vxd_svdag_view *view,
                                       const struct vxd_svdag_diff_tree_cube *tree_cube,
                                       uint64_t both, int most)
{
    struct vxd_svdag_values were = vxd_svdag_values_of(view, tree_cube->at.ref);
    struct vxd_svdag_values are = vxd_svdag_values_of(view, tree_cube->after);
    uint64_t changed = 0;
    int n = 0;

    for (uint64_t rest = both; rest != 0 && n < most; rest &= rest - 1) {
        const int bit = vxd_svdag_low_bit(rest);

        if (vxd_svdag_values_get(view, &were, bit) !=
            vxd_svdag_values_get(view, &are, bit)) {
            changed |= rest & (~rest + 1);
            n++;
        }
    }
    return changed;
}

/* Voxels of the area in a cube of leaf height, by what became of them: a mask a bit of enum
 * vxd_svdag_difference, of those changed up to `n_changed`. Says which differ at all. */
VXD_HD uint64_t vxd_svdag_diff_leaf(const struct vxd_svdag_view *view,
                                    const struct vxd_svdag_area *area,
                                    const struct vxd_svdag_diff_tree_cube *tree_cube,
                                    int n_changed, uint64_t masks[5])
{
    const uint64_t within = vxd_svdag_area_mask(
        area, &tree_cube->at, vxd_svdag_area_relation(area, &tree_cube->at));
    uint64_t occupied[2];
    uint64_t free[2];

    vxd_svdag_tree_cube_masks(view, tree_cube->at.ref, &occupied[0], &free[0]);
    vxd_svdag_tree_cube_masks(view, tree_cube->after, &occupied[1], &free[1]);
    masks[0] = occupied[1] & ~occupied[0] & within;
    masks[1] = occupied[0] & ~occupied[1] & within;
    masks[2] = view->value_bits > 1
                   ? vxd_svdag_diff_changed(view, tree_cube,
                                            occupied[0] & occupied[1] & within, n_changed)
                   : 0;
    masks[3] = free[1] & ~free[0] & within;
    masks[4] = free[0] & ~free[1] & within;
    return masks[0] | masks[1] | masks[2] | masks[3] | masks[4];
}

/* What became of some of these voxels. */
VXD_HD unsigned vxd_svdag_diff_bits_of(const uint64_t masks[5], uint64_t voxels)
{
    unsigned bits = 0;

    for (int i = 0; i < 5; i++) {
        bits |= (masks[i] & voxels) != 0 ? 1u << i : 0u;
    }
    return bits;
}

/* Changes --------------------------------------------------------------------------------- */

/* A member of a set of differences. */
VXD_HD unsigned vxd_svdag_diff_if(bool has, enum vxd_svdag_difference difference)
{
    return has ? (unsigned)difference : 0u;
}

/* What may have become of voxels below a pair that differs, higher than leaves; *is_exact: of
 * some voxel each of it has. */
VXD_HD unsigned vxd_svdag_diff_maybe(const struct vxd_svdag_view *view,
                                     const struct vxd_svdag_diff_tree_cube *tree_cube,
                                     bool *is_exact)
{
    const struct vxd_svdag_position to = {tree_cube->after, tree_cube->at.x,
                                          tree_cube->at.y, tree_cube->at.z,
                                          tree_cube->at.height};
    const unsigned before = vxd_svdag_position_states(view, &tree_cube->at);
    const unsigned after = vxd_svdag_position_states(view, &to);
    const bool was_occupied = (before & VXD_SVDAG_OCCUPIED) != 0;
    const bool is_occupied = (after & VXD_SVDAG_OCCUPIED) != 0;
    unsigned bits =
        vxd_svdag_diff_if(is_occupied, VXD_SVDAG_DIFF_ADDED) |
        vxd_svdag_diff_if(was_occupied, VXD_SVDAG_DIFF_REMOVED) |
        vxd_svdag_diff_if(was_occupied && is_occupied && view->value_bits > 1,
                          VXD_SVDAG_DIFF_CHANGED) |
        vxd_svdag_diff_if((after & VXD_SVDAG_FREE) != 0, VXD_SVDAG_DIFF_FREED) |
        vxd_svdag_diff_if((before & VXD_SVDAG_FREE) != 0, VXD_SVDAG_DIFF_UNFREED);

    /* Nothing is added where all was there. */
    if (vxd_svdag_is_uniform(tree_cube->at.ref)) {
        bits &= ~(unsigned)(was_occupied ? VXD_SVDAG_DIFF_ADDED : VXD_SVDAG_DIFF_FREED);
    }
    if (vxd_svdag_is_uniform(tree_cube->after)) {
        bits &=
            ~(unsigned)(is_occupied ? VXD_SVDAG_DIFF_REMOVED : VXD_SVDAG_DIFF_UNFREED);
    }
    *is_exact = tree_cube->at.ref == VXD_SVDAG_EMPTY ||
                tree_cube->after == VXD_SVDAG_EMPTY ||
                vxd_svdag_diff_is_even(tree_cube) || (bits & (bits - 1)) == 0;
    return bits;
}

/* Adds to *seen what became of the area's voxels in a cube, as far as the cube itself decides it.
 * True: what is below may add to it. */
VXD_HD bool vxd_svdag_diff_bits_tree_cube(
    const struct vxd_svdag_view *view, const struct vxd_svdag_area *area,
    const struct vxd_svdag_diff_tree_cube *tree_cube, unsigned *seen)
{
    uint64_t masks[5];
    enum vxd_svdag_relation relation;
    unsigned maybe;
    bool is_exact;

    if (!vxd_svdag_diff_may(area, tree_cube)) {
        return false;
    }
    if (tree_cube->at.height == VXD_SVDAG_LEAF_HEIGHT) {
        const int n_changed = (*seen & VXD_SVDAG_DIFF_CHANGED) != 0 ? 0 : 1;
        const uint64_t voxels =
            vxd_svdag_diff_leaf(view, area, tree_cube, n_changed, masks);

        *seen |= vxd_svdag_diff_bits_of(masks, voxels);
        return false;
    }
    relation = vxd_svdag_area_relation(area, &tree_cube->at);
    maybe = vxd_svdag_diff_maybe(view, tree_cube, &is_exact);
    if (is_exact && (relation == VXD_SVDAG_INSIDE || vxd_svdag_diff_is_even(tree_cube))) {
        *seen |= maybe;
        return false;
    }
    return (maybe & ~*seen) != 0;
}

/* As the cursor of cursor_math.h, of both sides. */
struct vxd_svdag_diff_cursor {
    struct vxd_svdag_diff_tree_cube tree_cube;
    int top;
    uint32_t before[VXD_SVDAG_MAX_DEPTH + 1];
    uint32_t after[VXD_SVDAG_MAX_DEPTH + 1];
};

VXD_HD void vxd_svdag_diff_begin(struct vxd_svdag_diff_cursor *cursor,
                                 const struct vxd_svdag_diff_tree_cube *tree_cube)
{
    cursor->tree_cube = *tree_cube;
    cursor->top = tree_cube->at.height;
}

VXD_HD void vxd_svdag_diff_down(const struct vxd_svdag_view *view,
                                struct vxd_svdag_diff_cursor *cursor)
{
    cursor->before[cursor->tree_cube.at.height] = cursor->tree_cube.at.ref;
    cursor->after[cursor->tree_cube.at.height] = cursor->tree_cube.after;
    cursor->tree_cube = vxd_svdag_diff_child(view, &cursor->tree_cube, 0);
}

VXD_HD bool vxd_svdag_diff_next(const struct vxd_svdag_view *view,
                                struct vxd_svdag_diff_cursor *cursor)
{
    struct vxd_svdag_diff_tree_cube parent = cursor->tree_cube;

    while (parent.at.height < cursor->top) {
        uint32_t mask;
        int octant;

        parent.at.height++;
        octant =
            vxd_svdag_octant(parent.at.x, parent.at.y, parent.at.z, parent.at.height);
        mask = ~((1u << parent.at.height) - 1);
        parent.at.x &= mask;
        parent.at.y &= mask;
        parent.at.z &= mask;
        if (octant < 7) {
            parent.at.ref = cursor->before[parent.at.height];
            parent.after = cursor->after[parent.at.height];
            cursor->tree_cube = vxd_svdag_diff_child(view, &parent, octant + 1);
            return true;
        }
    }
    return false;
}

/* What became of the area's voxels below a cube, with what was seen before; the first that is
 * seen where `any` will do. */
VXD_HD unsigned vxd_svdag_diff_bits(const struct vxd_svdag_view *view,
                                    const struct vxd_svdag_area *area,
                                    const struct vxd_svdag_diff_tree_cube *from,
                                    unsigned seen, bool any)
{
    struct vxd_svdag_diff_cursor cursor;
    bool is_more = true;

    vxd_svdag_diff_begin(&cursor, from);
    while (is_more && !(any && seen != 0)) {
        if (vxd_svdag_diff_bits_tree_cube(view, area, &cursor.tree_cube, &seen)) {
            vxd_svdag_diff_down(view, &cursor);
        } else {
            is_more = vxd_svdag_diff_next(view, &cursor);
        }
    }
    return seen;
}

/* Cells ----------------------------------------------------------------------------------- */

/* All voxels below a pair that differ, where its inner node counts them and the other side is
 * empty: those that are set. False: they have to be looked at. */
VXD_HD bool vxd_svdag_diff_counted(const struct vxd_svdag_view *view,
                                   const struct vxd_svdag_diff_tree_cube *tree_cube,
                                   uint64_t *n)
{
    uint32_t head;

    if (tree_cube->at.height > VXD_SVDAG_COUNT_HEIGHT ||
        (tree_cube->at.ref != VXD_SVDAG_EMPTY && tree_cube->after != VXD_SVDAG_EMPTY)) {
        return false;
    }
    head = vxd_svdag_words(view, tree_cube->at.ref | tree_cube->after)[0];
    *n = head >> 10;
    return (head & VXD_SVDAG_HAS_FREE) == 0;
}

/* Adds the cells of a cube to *n. True: only its children decide, and nothing was added; never
 * of a cube as low as a cell, or as a leaf. */
VXD_HD bool vxd_svdag_diff_count_tree_cube(
    const struct vxd_svdag_view *view, const struct vxd_svdag_cells *cells,
    const struct vxd_svdag_diff_tree_cube *tree_cube, uint64_t *n)
{
    const bool is_inside =
        vxd_svdag_area_relation(&cells->area, &tree_cube->at) == VXD_SVDAG_INSIDE;
    uint64_t masks[5];
    uint64_t n_voxels;

    if (!vxd_svdag_diff_may(&cells->area, tree_cube)) {
        return false;
    }
    if (vxd_svdag_diff_is_even(tree_cube)) {
        *n += vxd_svdag_cells_of_uniform(&tree_cube->at, cells);
        return false;
    }
    if (tree_cube->at.height == VXD_SVDAG_LEAF_HEIGHT) {
        *n += (uint64_t)vxd_svdag_cells_of_leaf(
            vxd_svdag_diff_leaf(view, &cells->area, tree_cube, 64, masks), cells->level);
        return false;
    }
    if (tree_cube->at.height == cells->level) {
        *n +=
            is_inside || vxd_svdag_diff_bits(view, &cells->area, tree_cube, 0, true) != 0;
        return false;
    }
    if (cells->level == 0 && is_inside &&
        vxd_svdag_diff_counted(view, tree_cube, &n_voxels)) {
        *n += n_voxels;
        return false;
    }
    return true;
}

VXD_HD uint64_t vxd_svdag_diff_count(const struct vxd_svdag_view *view,
                                     const struct vxd_svdag_diff_tree_cube *from,
                                     const struct vxd_svdag_cells *cells)
{
    struct vxd_svdag_diff_cursor cursor;
    uint64_t n = 0;
    bool is_more = true;

    vxd_svdag_diff_begin(&cursor, from);
    while (is_more) {
        if (vxd_svdag_diff_count_tree_cube(view, cells, &cursor.tree_cube, &n)) {
            vxd_svdag_diff_down(view, &cursor);
        } else {
            is_more = vxd_svdag_diff_next(view, &cursor);
        }
    }
    return n;
}

VXD_HD void vxd_svdag_diff_put(const struct vxd_svdag_diff_rows *rows, uint64_t row,
                               const uint32_t voxel[3], int level)
{
    for (int axis = 0; axis < 3; axis++) {
        rows->cells[3 * row + (uint64_t)axis] = (int32_t)(voxel[axis] >> level);
    }
}

/* One cell of a higher level than leaves', with its changes where it is small. */
VXD_HD void vxd_svdag_diff_put_cell(const struct vxd_svdag_view *view,
                                    const struct vxd_svdag_diff_tree_cube *tree_cube,
                                    const struct vxd_svdag_cells *cells,
                                    const struct vxd_svdag_diff_rows *rows, uint64_t row)
{
    const uint32_t voxel[3] = {tree_cube->at.x, tree_cube->at.y, tree_cube->at.z};

    vxd_svdag_diff_put(rows, row, voxel, cells->level);
    if (rows->changes != NULL && cells->level <= VXD_SVDAG_DIFF_SMALL) {
        rows->changes[row] =
            (uint8_t)vxd_svdag_diff_bits(view, &cells->area, tree_cube, 0, false);
    }
}

/* What stands at the cell of a row. */
VXD_HD struct vxd_svdag_diff_tree_cube
vxd_svdag_diff_of_row(const struct vxd_svdag_view *view, uint32_t before, uint32_t after,
                      const struct vxd_svdag_diff_rows *rows, int level, uint64_t row)
{
    const int32_t *cell = rows->cells + 3 * row;

    return vxd_svdag_diff_at(view, before, after, (uint32_t)cell[0] << level,
                             (uint32_t)cell[1] << level, (uint32_t)cell[2] << level,
                             level);
}

/* Cells of a leaf but the first *skip of them, with their changes; returns how many, at most
 * `most`. */
VXD_HD uint64_t vxd_svdag_diff_put_leaf(const struct vxd_svdag_view *view,
                                        const struct vxd_svdag_diff_tree_cube *tree_cube,
                                        const struct vxd_svdag_cells *cells,
                                        const struct vxd_svdag_diff_rows *rows,
                                        uint64_t row, uint64_t *skip, uint64_t most)
{
    const int shift = 3 * cells->level;
    const uint64_t group = ~(uint64_t)0 >> (64 - (1 << shift));
    uint64_t masks[5];
    const uint64_t voxels = vxd_svdag_diff_leaf(view, &cells->area, tree_cube, 64, masks);
    uint64_t n = 0;

    for (int first = 0; first < 64 && n < most; first += 1 << shift) {
        const uint32_t voxel[3] = {
            tree_cube->at.x + (uint32_t)((first >> 4 & 2) | (first >> 2 & 1)),
            tree_cube->at.y + (uint32_t)((first >> 3 & 2) | (first >> 1 & 1)),
            tree_cube->at.z + (uint32_t)((first >> 2 & 2) | (first & 1))};

        if ((voxels & group << first) == 0) {
            continue;
        }
        if (*skip > 0) {
            (*skip)--;
            continue;
        }
        vxd_svdag_diff_put(rows, row + n, voxel, cells->level);
        if (rows->changes != NULL) {
            rows->changes[row + n] =
                (uint8_t)vxd_svdag_diff_bits_of(masks, voxels & group << first);
        }
        n++;
    }
    return n;
}

/* Writes rows from `row` on: the cells of a cube but the first `skip`, at most `most` of them;
 * returns how many. */
VXD_HD uint64_t vxd_svdag_diff_write(const struct vxd_svdag_view *view,
                                     const struct vxd_svdag_diff_tree_cube *from,
                                     const struct vxd_svdag_cells *cells,
                                     const struct vxd_svdag_diff_rows *rows, uint64_t row,
                                     uint64_t skip, uint64_t most)
{
    struct vxd_svdag_diff_cursor cursor;
    uint64_t n = 0;
    bool is_more = true;

    vxd_svdag_diff_begin(&cursor, from);
    while (is_more && n < most) {
        const struct vxd_svdag_diff_tree_cube *tree_cube = &cursor.tree_cube;
        const bool is_last = tree_cube->at.height <= VXD_SVDAG_LEAF_HEIGHT ||
                             tree_cube->at.height <= cells->level;
        bool may = vxd_svdag_diff_may(&cells->area, tree_cube);

        if (may && (is_last ? cells->level > VXD_SVDAG_LEAF_HEIGHT : skip > 0)) {
            uint64_t n_here = vxd_svdag_diff_count(view, tree_cube, cells);

            may = n_here > skip;
            skip -= may ? 0 : n_here;
        }
        if (may && !is_last) {
            vxd_svdag_diff_down(view, &cursor);
            continue;
        }
        if (may && cells->level <= VXD_SVDAG_LEAF_HEIGHT) {
            n += vxd_svdag_diff_put_leaf(view, tree_cube, cells, rows, row + n, &skip,
                                         most - n);
        } else if (may) {
            vxd_svdag_diff_put_cell(view, tree_cube, cells, rows, row + n);
            n++;
        }
        is_more = vxd_svdag_diff_next(view, &cursor);
    }
    return n;
}

#endif
