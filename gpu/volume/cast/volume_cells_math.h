// SPDX-License-Identifier: Apache-2.0
/* Ray casts turned around: not a ray looks for the surface, but each cell of eight voxels that the
 * surface goes through looks for the rays that meet it there. The same bits on both backends.
 *
 * A cell reaches from the centre of its low voxel to those of the next ones, so that the distance
 * in it is trilinear. Where a ray enters it and leaves it, the distance is bilinear over four
 * voxels, which the cell has in common with the one before or behind; it is computed to the same
 * bits there, so a ray finds each change of sign in exactly one cell. */
#ifndef VXD_GPU_VOLUME_CAST_VOLUME_CELLS_MATH_H
#define VXD_GPU_VOLUME_CAST_VOLUME_CELLS_MATH_H

#include "gpu/volume/cast/volume_cast_math.h"

/* Cells are looked at in cubes of so many a side, whose voxels are one more a side. */
#define VXD_CELLS_SIDE 8
#define VXD_CELLS_VOXELS (VXD_CELLS_SIDE + 1)
#define VXD_CELLS_ROWS (VXD_CELLS_VOXELS * VXD_CELLS_VOXELS)

#define VXD_CELLS_ENTRY_BYTES 64

/* No crossing: greater than any. */
#define VXD_CELLS_NONE UINT64_MAX

/* Pixels by which the rectangle of a cell is widened, for the rounding of projections. */
#define VXD_CELLS_MARGIN 0.02f

/* Voxels by which the part of a cell that the surface goes through is widened, for rounding. */
#define VXD_CELLS_SLACK 0.01f

/* The inverse of a direction is that of at least so many voxels a metre, so that it is finite; no
 * position in a volume can tell it from 0. */
#define VXD_CELLS_PARALLEL 1e-18f

struct vxd_cells_call {
    struct vxd_cast_call cast; /* without range image */
    /* Direction of pixel (u, v), voxels a metre of depth: by_u * u + (by_v * v + by_1). */
    float by_u[3];
    float by_v[3];
    float by_1[3];
    float half[3]; /* half the extent of a cell on the axes of the camera, metres */
    float spread
        [9]; /* extents on the camera's axes of a voxel's length on each of the map's */
    float least_z; /* of a cell that is projected, metres */
    /* The nearest crossing of each pixel of the rows that are cast: float bits of its depth, above
     * the cell's number, above whether the surface is seen from behind. */
    uint64_t *crossings;
    /* Cells and the pixels to try for each, where one step lists them for the next: max_entries of
     * VXD_CELLS_ENTRY_BYTES; NULL: one step does both. */
    void *entries;
    uint32_t *n_entries;
    uint32_t max_entries;
};

/* ---- Where cells project to ---- */

/* Pixels, inclusive. */
struct vxd_cells_rect {
    int first_u;
    int last_u;
    int first_v;
    int last_v;
};

/* The pixel at or above a position, between 0 and n. */
VXD_HD int vxd_cells_ceil(float at, int n)
{
    int whole;

    at = at > 0 ? at : 0;
    at = at < (float)n ? at : (float)n;
    whole = (int)at;
    return whole + ((float)whole < at ? 1 : 0);
}

/* The lesser and the greater of two numbers, neither of them NaN. */
VXD_HD float vxd_cells_least(float a, float b)
{
#if defined(__CUDA_ARCH__)
    return fminf(a, b);
#else
    return a < b ? a : b;
#endif
}

VXD_HD float vxd_cells_most(float a, float b)
{
#if defined(__CUDA_ARCH__)
    return fmaxf(a, b);
#else
    return a > b ? a : b;
#endif
}

/* The pixels of one axis of the image that a box spans: `at` metres from the optical axis, `half` to
 * either side, 1 / depth of its near and its far face; f and c of the camera, n pixels. */
VXD_HD void vxd_cells_interval(float at, float half, float near_inverse,
                               float far_inverse, float f, float c, int n, int *first,
                               int *last)
{
    float low = vxd_subf(at, half);
    float high = vxd_addf(at, half);

    low = vxd_cells_least(vxd_mulf(low, near_inverse), vxd_mulf(low, far_inverse));
    high = vxd_cells_most(vxd_mulf(high, near_inverse), vxd_mulf(high, far_inverse));
    low = vxd_addf(vxd_mulf(low, f), c);
    high = vxd_addf(vxd_mulf(high, f), c);
    *first = vxd_cells_ceil(vxd_subf(low, VXD_CELLS_MARGIN), n);
    *last = vxd_cells_ceil(vxd_addf(high, VXD_CELLS_MARGIN), n) - 1;
}

/* The pixels whose rays may meet a box: its centre from the camera on the axes of the map, and half of its
 * extent on those of the camera, metres; false: none. */
VXD_HD bool vxd_cells_project_box(const struct vxd_cells_call *call, const float p[3],
                                  const float half[3], struct vxd_cells_rect *rect)
{
    const struct vxd_cast_call *cast = &call->cast;
    const struct vxd_camera_form *camera = &cast->camera;
    int first_row = cast->first_row * VXD_CAST_TILE;
    float at[3];
    float near_z;
    float far_z;
    float near_inverse;
    float far_inverse;

    VXD_UNROLL
    for (int axis = 0; axis < 3; axis++) {
        const float *r = &cast->to_camera[3 * (size_t)axis];

        at[axis] = vxd_addf(vxd_addf(vxd_mulf(r[0], p[0]), vxd_mulf(r[1], p[1])),
                            vxd_mulf(r[2], p[2]));
    }
    near_z = vxd_cells_most(vxd_subf(at[2], half[2]), call->least_z);
    far_z = vxd_addf(at[2], half[2]);
    if (!(far_z >= near_z) || !(near_z <= cast->depth_max)) {
        return false;
    }
    near_inverse = vxd_divf(1.0f, near_z);
    far_inverse = vxd_divf(1.0f, far_z);
    vxd_cells_interval(at[0], half[0], near_inverse, far_inverse, camera->fx, camera->cx,
                       camera->width, &rect->first_u, &rect->last_u);
    vxd_cells_interval(at[1], half[1], near_inverse, far_inverse, camera->fy, camera->cy,
                       vxd_cast_end_row(cast), &rect->first_v, &rect->last_v);
    rect->first_v = rect->first_v > first_row ? rect->first_v : first_row;
    return rect->first_u <= rect->last_u && rect->first_v <= rect->last_v;
}

/* Centre of a cube of n cells a side from voxel `low`, relative to the camera's block: metres from the
 * camera on the axes of the map. */
VXD_HD void vxd_cells_centre(const struct vxd_cast_call *cast, const int32_t low[3],
                             int n, float p[3])
{
    float to_centre = vxd_mulf(0.5f, (float)(n + 1));

    VXD_UNROLL
    for (int axis = 0; axis < 3; axis++) {
        p[axis] =
            vxd_mulf(vxd_subf(vxd_addf((float)low[axis], to_centre), cast->offset[axis]),
                     cast->view.voxel_size);
    }
}

/* The pixels whose rays may meet a cube of n cells a side; false: none. */
VXD_HD bool vxd_cells_project(const struct vxd_cells_call *call, const int32_t low[3],
                              int n, struct vxd_cells_rect *rect)
{
    float p[3];
    float half[3];

    vxd_cells_centre(&call->cast, low, n, p);
    VXD_UNROLL
    for (int axis = 0; axis < 3; axis++) {
        half[axis] = vxd_mulf(call->half[axis], (float)n);
    }
    return vxd_cells_project_box(call, p, half, rect);
}

/* Which corners of a cell are clearly in front of the surface, and which behind it: farther than `least`,
 * which is more than what a distance between them is off by rounding. */
struct vxd_cells_sides {
    uint32_t fronts;
    uint32_t backs;
    float least;
};

VXD_HD void vxd_cells_sides_of(const float d[8], struct vxd_cells_sides *sides)
{
    float most = 1e-30f;

    VXD_UNROLL
    for (int corner = 0; corner < 8; corner++) {
        most = vxd_cells_most(most, fabsf(d[corner]));
    }
    sides->least = vxd_mulf(most, 1e-6f);
    sides->fronts = 0;
    sides->backs = 0;
    VXD_UNROLL
    for (int corner = 0; corner < 8; corner++) {
        sides->fronts |= d[corner] > sides->least ? 1u << corner : 0;
        sides->backs |= d[corner] < -sides->least ? 1u << corner : 0;
    }
}

/* The part of a cell on an axis, from 0 to 1, outside of which no ray changes its sign. The distance is
 * linear between four edges of that axis; if all four begin on one side, it stays there up to the first
 * that leaves it; so behind the last, if all end on one side. */
VXD_HD void vxd_cells_slab(const float d[8], const struct vxd_cells_sides *sides,
                           int axis, float *begin, float *end)
{
    const int bit = 1 << axis;
    const uint32_t face = axis == 0 ? 0x55u : axis == 1 ? 0x33u : 0x0fu;
    bool begins_in_front = (sides->fronts & face) == face;
    bool ends_in_front = (sides->fronts >> bit & face) == face;
    bool begins = begins_in_front || (sides->backs & face) == face;
    bool ends = ends_in_front || (sides->backs >> bit & face) == face;
    uint32_t as_begin = begins_in_front ? sides->fronts : sides->backs;
    uint32_t as_end = ends_in_front ? sides->fronts : sides->backs;
    float first = 1;
    float last = 0;

    VXD_UNROLL
    for (int corner = 0; corner < 8; corner++) {
        if ((corner & bit) == 0) {
            float a = d[corner];
            float b = d[corner | bit];
            float inverse =
                vxd_inverse(vxd_cells_most(fabsf(vxd_subf(a, b)), sides->least));
            float in = vxd_mulf(vxd_subf(fabsf(a), sides->least), inverse);
            float out =
                vxd_subf(1.0f, vxd_mulf(vxd_subf(fabsf(b), sides->least), inverse));

            first = (as_begin >> (corner | bit) & 1u) == 0 && in < first ? in : first;
            last = (as_end >> corner & 1u) == 0 && out > last ? out : last;
        }
    }
    *begin = begins ? first : 0;
    *end = ends ? last : 1;
}

/* The pixels whose rays may change their sign in a cell; false: none. */
VXD_HD bool vxd_cells_project_surface(const struct vxd_cells_call *call,
                                      const int32_t low[3], const float d[8],
                                      struct vxd_cells_rect *rect)
{
    const struct vxd_cast_call *cast = &call->cast;
    struct vxd_cells_sides sides;
    float half[3] = {0, 0, 0};
    float p[3];

    vxd_cells_sides_of(d, &sides);
    vxd_cells_centre(cast, low, 1, p);
    VXD_UNROLL
    for (int axis = 0; axis < 3; axis++) {
        float begin;
        float end;
        float shift;
        float size;

        vxd_cells_slab(d, &sides, axis, &begin, &end);
        shift = vxd_subf(vxd_mulf(0.5f, vxd_addf(begin, end)), 0.5f);
        size = vxd_addf(vxd_mulf(0.5f, vxd_subf(end, begin)), VXD_CELLS_SLACK);
        p[axis] = vxd_addf(p[axis], vxd_mulf(shift, cast->view.voxel_size));
        VXD_UNROLL
        for (int to = 0; to < 3; to++) {
            half[to] = vxd_addf(half[to], vxd_mulf(call->spread[3 * to + axis], size));
        }
    }
    return vxd_cells_project_box(call, p, half, rect);
}

/* ---- A cube of voxels ---- */

/* The low voxel of cube `part` of a block, in the block. */
VXD_HD void vxd_cells_part(const struct vxd_volume_view *view, int part, int32_t at[3])
{
    int a_side = view->edge / VXD_CELLS_SIDE;

    at[0] = part % a_side * VXD_CELLS_SIDE;
    at[1] = part / a_side % a_side * VXD_CELLS_SIDE;
    at[2] = part / a_side / a_side * VXD_CELLS_SIDE;
}

/* The low voxel of a block relative to the camera's block. */
VXD_HD void vxd_cells_block_low(const struct vxd_cast_call *call, int32_t entry,
                                int32_t low[3])
{
    VXD_UNROLL
    for (int axis = 0; axis < 3; axis++) {
        low[axis] =
            (call->view.keys[3 * (size_t)entry + (size_t)axis] - call->base[axis]) *
            call->view.edge;
    }
}

/* The column of VXD_NEIGHBOURS_27 of the block that a corner of a cell lies in, by the axes on which
 * it is in the next block: bits x 1, y 2, z 4. */
VXD_HD int vxd_cells_column(int across)
{
    return 13 + 9 * (across & 1) + 3 * (across >> 1 & 1) + (across >> 2);
}

/* The distance of a voxel of a block or, beyond its high sides, of the next one; NaN: not known.
 * next: the entries of the blocks by the axes on which they are the next one. */
VXD_HD float vxd_cells_voxel(const struct vxd_cast_call *call, const int32_t next[8],
                             int32_t x, int32_t y, int32_t z)
{
    int edge = call->view.edge;
    int across = (x >= edge ? 1 : 0) | (y >= edge ? 2 : 0) | (z >= edge ? 4 : 0);
    int32_t entry = next[across];
    float distance;

    if (entry == VXD_NO_ENTRY) {
        return NAN;
    }
    return vxd_cast_load(
               call,
               vxd_voxel_row(&call->view, entry, vxd_voxel_index(&call->view, x, y, z)),
               &distance)
               ? distance
               : NAN;
}

/* Which of the cells of a row are all known and have distances above 0 and not above it: a bit a
 * cell, from such bits of the voxels of the four rows around it. */
VXD_HD uint32_t vxd_cells_of_rows(const uint32_t *fronts, const uint32_t *backs, int row)
{
    uint32_t known = UINT32_MAX;
    uint32_t front = 0;
    uint32_t back = 0;

    VXD_UNROLL
    for (int i = 0; i < 4; i++) {
        int at = row + (i & 1) + VXD_CELLS_VOXELS * (i >> 1);
        uint32_t all = fronts[at] | backs[at];

        known &= all & all >> 1;
        front |= fronts[at] | fronts[at] >> 1;
        back |= backs[at] | backs[at] >> 1;
    }
    return known & front & back & ((1u << VXD_CELLS_SIDE) - 1);
}

/* ---- A ray and a cell ---- */

struct vxd_cells_ray {
    float direction[3]; /* voxels a metre of depth */
    float inverse[3];
};

VXD_HD float vxd_cells_direction(const struct vxd_cells_call *call, int axis, int u,
                                 int v)
{
    return vxd_addf(vxd_mulf(call->by_u[axis], (float)u),
                    vxd_addf(vxd_mulf(call->by_v[axis], (float)v), call->by_1[axis]));
}

VXD_HD void vxd_cells_aim(const struct vxd_cells_call *call, int u, int v,
                          struct vxd_cells_ray *ray)
{
    VXD_UNROLL
    for (int axis = 0; axis < 3; axis++) {
        float d = vxd_cells_direction(call, axis, u, v);

        ray->direction[axis] = d;
        d = d > -VXD_CELLS_PARALLEL && d < VXD_CELLS_PARALLEL ? VXD_CELLS_PARALLEL : d;
        ray->inverse[axis] = vxd_inverse(d);
    }
}

/* Exact at both ends. */
VXD_HD float vxd_cells_mix(float a, float b, float part)
{
    return part >= 1 ? b : vxd_cast_mix(a, b, part);
}

VXD_HD float vxd_cells_mix8(const float d[8], const float f[3])
{
    float low = vxd_cells_mix(vxd_cells_mix(d[0], d[1], f[0]),
                              vxd_cells_mix(d[2], d[3], f[0]), f[1]);
    float high = vxd_cells_mix(vxd_cells_mix(d[4], d[5], f[0]),
                               vxd_cells_mix(d[6], d[7], f[0]), f[1]);

    return vxd_cells_mix(low, high, f[2]);
}

/* Where a ray at depth t is in a cell: 0 to 1 on each axis. */
VXD_HD void vxd_cells_within(const struct vxd_cast_call *call,
                             const struct vxd_cells_ray *ray, const int32_t low[3],
                             float t, float f[3])
{
    VXD_UNROLL
    for (int axis = 0; axis < 3; axis++) {
        float at = vxd_addf(call->offset[axis], vxd_mulf(ray->direction[axis], t));

        f[axis] = vxd_subf(vxd_subf(at, 0.5f), (float)low[axis]);
    }
}

/* Where a ray enters a cell and leaves it, and the distances there. Returns false where it misses
 * the cell. low: its low voxel relative to the camera's block; d: corners, bits x 1, y 2, z 4. */
VXD_HD bool vxd_cells_span(const struct vxd_cast_call *call,
                           const struct vxd_cells_ray *ray, const int32_t low[3],
                           const float d[8], struct vxd_cast_hit *hit)
{
    float enters[3];
    float leaves[3];
    float f[3];

    VXD_UNROLL
    for (int axis = 0; axis < 3; axis++) {
        float near_side = vxd_subf(vxd_addf((float)low[axis], 0.5f), call->offset[axis]);
        float far_side = vxd_subf(vxd_addf((float)low[axis], 1.5f), call->offset[axis]);
        float a = vxd_mulf(near_side, ray->inverse[axis]);
        float b = vxd_mulf(far_side, ray->inverse[axis]);

        enters[axis] = vxd_cells_least(a, b);
        leaves[axis] = vxd_cells_most(a, b);
    }
    hit->t[0] = vxd_cells_most(vxd_cells_most(enters[0], enters[1]), enters[2]);
    hit->t[1] = vxd_cells_least(vxd_cells_least(leaves[0], leaves[1]), leaves[2]);
    if (!(hit->t[0] < hit->t[1])) {
        return false;
    }
    vxd_cells_within(call, ray, low, hit->t[0], f);
    VXD_UNROLL
    for (int axis = 0; axis < 3; axis++) {
        float side = ray->inverse[axis] > 0 ? 0.0f : 1.0f;

        f[axis] = enters[axis] == hit->t[0] ? side : f[axis];
    }
    hit->d[0] = vxd_cells_mix8(d, f);
    vxd_cells_within(call, ray, low, hit->t[1], f);
    VXD_UNROLL
    for (int axis = 0; axis < 3; axis++) {
        float side = ray->inverse[axis] > 0 ? 1.0f : 0.0f;

        f[axis] = leaves[axis] == hit->t[1] ? side : f[axis];
    }
    hit->d[1] = vxd_cells_mix8(d, f);
    return true;
}

/* The crossing of a pixel's ray in a cell, as a word of the call's crossings; VXD_CELLS_NONE where
 * the sign does not change. number: the cell's. */
VXD_HD uint64_t vxd_cells_crossing(const struct vxd_cells_call *call,
                                   const struct vxd_cells_ray *ray, const int32_t low[3],
                                   const float d[8], uint32_t number)
{
    struct vxd_cast_hit hit;
    bool is_behind;
    float t;

    if (!vxd_cells_span(&call->cast, ray, low, d, &hit) ||
        (hit.d[0] > 0) == (hit.d[1] > 0)) {
        return VXD_CELLS_NONE;
    }
    is_behind = hit.d[1] > 0;
    t = vxd_cast_crossing(&hit);
    return !(is_behind && call->cast.passes_backs) && t > 0 &&
                   t >= call->cast.depth_min && t <= call->cast.depth_max
               ? (uint64_t)vxd_float_bits(t) << 32 | number << 1 | (is_behind ? 1 : 0)
               : VXD_CELLS_NONE;
}

/* ---- What a pixel shows ---- */

/* The rows and distances of a cell's corners, which are known. */
VXD_HD void vxd_cells_corners(const struct vxd_cast_call *call, int32_t entry,
                              uint32_t index, struct vxd_cast_cell *cell)
{
    const struct vxd_volume_view *view = &call->view;
    int32_t last = view->edge - 1;
    int32_t x = (int32_t)index & last;
    int32_t y = (int32_t)(index >> view->shift) & last;
    int32_t z = (int32_t)(index >> 2 * view->shift);
    int across = (x == last ? 1 : 0) | (y == last ? 2 : 0) | (z == last ? 4 : 0);

    VXD_UNROLL
    for (int corner = 0; corner < 8; corner++) {
        int other = corner & across;
        int32_t of = other == 0
                         ? entry
                         : vxd_block_neighbour(view, entry, vxd_cells_column(other));

        of = of != VXD_NO_ENTRY ? of : entry;
        cell->rows[corner] =
            vxd_voxel_row(view, of,
                          vxd_voxel_index(view, x + (corner & 1), y + (corner >> 1 & 1),
                                          z + (corner >> 2)));
        cell->d[corner] = vxd_volume_distance(view, cell->rows[corner]);
    }
}

/* Shows a pixel by its nearest crossing: the distance is taken as linear between where the ray enters
 * the cell and leaves it, then as linear once more in the part that holds the surface. */
VXD_HD void vxd_cells_pixel(const struct vxd_cells_call *call, int u, int v)
{
    const struct vxd_cast_call *cast = &call->cast;
    size_t row = (size_t)(v - cast->first_row * VXD_CAST_TILE);
    uint64_t word = call->crossings[row * (size_t)cast->camera.width + (size_t)u];
    struct vxd_cast_ray ray = {{0, 0, 0}, {0, 0, 0}, 0, {0, 0, 0}, VXD_NO_ENTRY};
    struct vxd_cast_hit hit = {{0, 0}, {0, 0}, {0, 0, 0}, {0, 0, 0}};
    struct vxd_cells_ray aim;
    float t = 0;

    vxd_cells_aim(call, u, v, &aim);
    VXD_UNROLL
    for (int axis = 0; axis < 3; axis++) {
        ray.direction[axis] = aim.direction[axis];
        ray.block[axis] = INT32_MIN;
    }
    if (word != VXD_CELLS_NONE && (word & 1) == 0) {
        uint32_t number = (uint32_t)word >> 1;
        uint32_t index = number & ((uint32_t)vxd_volume_block_voxels(&cast->view) - 1);
        int32_t entry = (int32_t)(number >> 3 * cast->view.shift);
        uint32_t last = (uint32_t)cast->view.edge - 1;
        struct vxd_cast_cell cell;
        int32_t low[3];

        vxd_cells_block_low(cast, entry, low);
        low[0] += (int32_t)(index & last);
        low[1] += (int32_t)(index >> cast->view.shift & last);
        low[2] += (int32_t)(index >> 2 * cast->view.shift);
        vxd_cells_corners(cast, entry, index, &cell);
        t = vxd_float_of_bits((uint32_t)(word >> 32));
        if (vxd_cells_span(cast, &aim, low, cell.d, &hit)) {
            float d;

            vxd_cells_within(cast, &aim, low, t, cell.f);
            d = vxd_cast_mix8(cell.d, cell.f);
            if (d > 0) { /* constant indices keep them in registers */
                hit.t[0] = t;
                hit.d[0] = d;
            } else {
                hit.t[1] = t;
                hit.d[1] = d;
            }
            t = vxd_cast_crossing(&hit);
        }
        vxd_cells_within(cast, &aim, low, t, cell.f);
        vxd_cast_shade(cast, &cell, &hit);
    }
    vxd_cast_write(cast, &ray, &hit, t,
                   (size_t)v * (size_t)cast->camera.width + (size_t)u);
}

#endif
