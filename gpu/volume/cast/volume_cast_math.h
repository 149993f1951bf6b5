// SPDX-License-Identifier: Apache-2.0
/* One ray through a volume, the same bits on both backends. Positions are in voxels from the low
 * corner of the camera's block, so that float32 keeps its precision far from the origin. */
#ifndef VXD_GPU_VOLUME_CAST_VOLUME_CAST_MATH_H
#define VXD_GPU_VOLUME_CAST_VOLUME_CAST_MATH_H

#include "gpu/volume/volume_math.h"

/* Pixels a side of a tile of the range image. */
#define VXD_CAST_TILE VXD_VOLUME_CAST_ROWS

/* No ray takes more samples, with the blocks that it skips. */
#define VXD_CAST_MAX_STEPS 8192

/* No ray goes farther on an axis, in voxels, so that positions round to ints. */
#define VXD_CAST_FAR 16777216.0f

/* Steps: the part of the distance that is stepped, the least step, and the distance below which
 * samples are trilinear, in voxels. The distance was measured along other rays, so it may be
 * longer than it is along this one. */
#define VXD_CAST_PART 0.8f
#define VXD_CAST_LEAST 0.5f
#define VXD_CAST_NEAR 2.0f

/* Samples of unknown space that are taken at once. */
#define VXD_CAST_BATCH 4

/* How far behind the exit of a block the next sample is, voxels. */
#define VXD_CAST_PAST_EXIT 0.01f

struct vxd_cast_call {
    struct vxd_volume_view view;
    struct vxd_camera_form camera;
    int32_t base[3];    /* block of the camera */
    float offset[3];    /* the camera in it, voxels */
    float to_voxels[9]; /* rotation / voxel size */
    float to_camera[9]; /* transposed rotation */
    float at[3];        /* the camera, metres from the volume's origin */
    float depth_min;
    float depth_max;
    float weight_threshold;
    float mu_voxels;   /* the truncation */
    bool passes_backs; /* surfaces seen from behind are not there */

    /* The range image, float bits of z a tile; NULL: depth_min to depth_max. */
    uint32_t *range_min;
    uint32_t *range_max;
    int tiles_x;
    int tiles_y;
    int first_row; /* rows of tiles to cast */
    int end_row;
    /* Blocks that bound the rays: n entries of the list, or all with a stamp where it is NULL. */
    const int32_t *entries;
    size_t n;

    float *depth;
    float *vertex;
    float *normal;
    uint8_t *colour;
    uint8_t *mask;
    uint8_t *label;
    float *weight;

    /* Cosine and sine of the elevation of each row, then of the azimuth of each column, of a lidar;
     * NULL: the camera. */
    const float *beams;
};

/* The end of the rows of pixels that are cast. */
VXD_HD int vxd_cast_end_row(const struct vxd_cast_call *call)
{
    int end = call->end_row * VXD_CAST_TILE;

    return end < call->camera.height ? end : call->camera.height;
}

/* ---- The range image ---- */

/* The tiles and depths that a block projects to. */
struct vxd_cast_box {
    int first_x; /* tiles, inclusive; first above last where it is out of the image */
    int last_x;
    int first_y;
    int last_y;
    float z_min;
    float z_max;
};

VXD_HD int vxd_cast_tile(float pixel, int n_tiles)
{
    float last = (float)((n_tiles + 1) * VXD_CAST_TILE);

    pixel = pixel > -(float)VXD_CAST_TILE ? pixel : -(float)VXD_CAST_TILE;
    pixel = pixel < last ? pixel : last;
    return ((int)pixel + VXD_CAST_TILE) / VXD_CAST_TILE - 1;
}

/* Corner `corner` of a block in the camera's frame, metres. */
VXD_HD void vxd_cast_corner(const struct vxd_cast_call *call, const int32_t key[3],
                            int corner, float at[3])
{
    float p[3];

    for (int axis = 0; axis < 3; axis++) {
        int32_t blocks = key[axis] - call->base[axis] + (corner >> axis & 1);

        p[axis] =
            vxd_mulf(vxd_subf((float)(blocks * call->view.edge), call->offset[axis]),
                     call->view.voxel_size);
    }
    for (int axis = 0; axis < 3; axis++) {
        const float *r = &call->to_camera[3 * (size_t)axis];

        at[axis] = vxd_addf(vxd_addf(vxd_mulf(r[0], p[0]), vxd_mulf(r[1], p[1])),
                            vxd_mulf(r[2], p[2]));
    }
}

/* Returns false where the block is outside of the depths. A block that reaches behind the camera
 * covers the whole image. */
VXD_HD bool vxd_cast_project(const struct vxd_cast_call *call, const int32_t key[3],
                             struct vxd_cast_box *box)
{
    float least = vxd_mulf(call->view.voxel_size, 0.5f);
    float u_min = 3e38f;
    float u_max = -3e38f;
    float v_min = 3e38f;
    float v_max = -3e38f;

    box->z_min = 3e38f;
    box->z_max = -3e38f;
    for (int corner = 0; corner < 8; corner++) {
        float at[3];
        float inverse;
        float u;
        float v;

        vxd_cast_corner(call, key, corner, at);
        box->z_min = at[2] < box->z_min ? at[2] : box->z_min;
        box->z_max = at[2] > box->z_max ? at[2] : box->z_max;
        inverse = vxd_divf(1.0f, at[2] > least ? at[2] : least);
        u = vxd_addf(vxd_mulf(call->camera.fx, vxd_mulf(at[0], inverse)),
                     call->camera.cx);
        v = vxd_addf(vxd_mulf(call->camera.fy, vxd_mulf(at[1], inverse)),
                     call->camera.cy);
        u_min = u < u_min ? u : u_min;
        u_max = u > u_max ? u : u_max;
        v_min = v < v_min ? v : v_min;
        v_max = v > v_max ? v : v_max;
    }
    if (box->z_max < call->depth_min || box->z_min > call->depth_max ||
        box->z_max <= least) {
        return false;
    }
    if (box->z_min <= least) {
        *box = (struct vxd_cast_box){0,     call->tiles_x - 1, 0, call->tiles_y - 1,
                                     least, box->z_max};
        return true;
    }
    box->first_x = vxd_cast_tile(vxd_subf(u_min, 1.0f), call->tiles_x);
    box->last_x = vxd_cast_tile(vxd_addf(u_max, 1.0f), call->tiles_x);
    box->first_y = vxd_cast_tile(vxd_subf(v_min, 1.0f), call->tiles_y);
    box->last_y = vxd_cast_tile(vxd_addf(v_max, 1.0f), call->tiles_y);
    box->first_x = box->first_x > 0 ? box->first_x : 0;
    box->first_y = box->first_y > 0 ? box->first_y : 0;
    box->last_x = box->last_x < call->tiles_x ? box->last_x : call->tiles_x - 1;
    box->last_y = box->last_y < call->tiles_y ? box->last_y : call->tiles_y - 1;
    return true;
}

/* ---- Samples ---- */

/* A ray, and the block that its last sample was in. */
struct vxd_cast_ray {
    float direction[3]; /* voxels a metre of depth */
    float inverse[3];   /* 1 / direction */
    float inverse_length;
    int32_t block[3];
    int32_t entry;
};

enum vxd_cast_sample {
    VXD_CAST_UNALLOCATED,
    VXD_CAST_UNKNOWN, /* below the weight threshold */
    VXD_CAST_KNOWN
};

VXD_HD float vxd_cast_position(const struct vxd_cast_call *call,
                               const struct vxd_cast_ray *ray, int axis, float t)
{
    return vxd_addf(call->offset[axis], vxd_mulf(ray->direction[axis], t));
}

VXD_HD int32_t vxd_cast_floor(float at)
{
    int32_t cell = (int32_t)at;

    return cell - ((float)cell > at ? 1 : 0);
}

/* The entry of a block, whose coordinates are relative to the camera's. */
VXD_HD int32_t vxd_cast_find(const struct vxd_cast_call *call, int32_t x, int32_t y,
                             int32_t z)
{
    int32_t most = VXD_BLOCK_LIMIT;

    x += call->base[0];
    y += call->base[1];
    z += call->base[2];
    return x >= -most && x <= most && y >= -most && y <= most && z >= -most && z <= most
               ? vxd_volume_find_block(&call->view, vxd_block_tag(x, y, z))
               : VXD_NO_ENTRY;
}

/* The entry of the block of a voxel, looked up where it is another one than the last. */
VXD_HD int32_t vxd_cast_entry(const struct vxd_cast_call *call, struct vxd_cast_ray *ray,
                              int32_t x, int32_t y, int32_t z)
{
    int32_t bx = x >> call->view.shift;
    int32_t by = y >> call->view.shift;
    int32_t bz = z >> call->view.shift;
    uint32_t dx = (uint32_t)bx - (uint32_t)ray->block[0] + 1; /* 0 to 2: a neighbour */
    uint32_t dy = (uint32_t)by - (uint32_t)ray->block[1] + 1;
    uint32_t dz = (uint32_t)bz - (uint32_t)ray->block[2] + 1;

    if (dx != 1 || dy != 1 || dz != 1) {
        ray->block[0] = bx;
        ray->block[1] = by;
        ray->block[2] = bz;
        if (ray->entry != VXD_NO_ENTRY && call->view.neighbours != NULL && dx <= 2 &&
            dy <= 2 && dz <= 2) {
            uint32_t column = 9 * dx + 3 * dy + dz;

            ray->entry = call->view.neighbours[27 * (size_t)ray->entry + column];
        } else {
            ray->entry = vxd_cast_find(call, bx, by, bz);
        }
    }
    return ray->entry;
}

/* Whether a voxel of a distance is known. Voxels that were never observed hold the distance 0, so
 * without a threshold the weight of most others need not be read. */
VXD_HD bool vxd_cast_is_known(const struct vxd_cast_call *call, size_t row,
                              float distance)
{
    float weight;

    if (distance != 0 && !(call->weight_threshold > 0)) {
        return true;
    }
    weight = vxd_volume_weight(&call->view, row);
    return weight > 0 && weight >= call->weight_threshold;
}

/* Loads a voxel's distance; false where it is not known. */
VXD_HD bool vxd_cast_load(const struct vxd_cast_call *call, size_t row, float *distance)
{
    *distance = vxd_volume_distance(&call->view, row);
    return vxd_cast_is_known(call, row, *distance);
}

/* The distance of the voxel at a position. */
VXD_HD enum vxd_cast_sample vxd_cast_nearest(const struct vxd_cast_call *call,
                                             struct vxd_cast_ray *ray, const float p[3],
                                             float *distance)
{
    int32_t x = vxd_cast_floor(p[0]);
    int32_t y = vxd_cast_floor(p[1]);
    int32_t z = vxd_cast_floor(p[2]);
    int32_t entry = vxd_cast_entry(call, ray, x, y, z);
    size_t row;

    if (entry == VXD_NO_ENTRY) {
        return VXD_CAST_UNALLOCATED;
    }
    row = vxd_voxel_row(&call->view, entry, vxd_voxel_index(&call->view, x, y, z));
    return vxd_cast_load(call, row, distance) ? VXD_CAST_KNOWN : VXD_CAST_UNKNOWN;
}

/* The eight voxels whose centres are around a position: corner bits x 1, y 2, z 4. */
struct vxd_cast_cell {
    size_t rows[8];
    float d[8]; /* distances */
    float f[3]; /* the position between the centres, 0 to 1 */
};

/* The cell around a position, which may lie in up to eight blocks. Returns false where a voxel is
 * not known. */
VXD_HD bool vxd_cast_cell_at(const struct vxd_cast_call *call, struct vxd_cast_ray *ray,
                             const float p[3], struct vxd_cast_cell *cell)
{
    const struct vxd_volume_view *view = &call->view;
    int32_t last = view->edge - 1;
    int32_t v[3];
    int across = 0; /* the axes on which the cell ends in the next block */
    int32_t entry;
    bool is_known = true;

    VXD_UNROLL
    for (int axis = 0; axis < 3; axis++) {
        float at = vxd_subf(p[axis], 0.5f);

        v[axis] = vxd_cast_floor(at);
        cell->f[axis] = vxd_subf(at, (float)v[axis]);
        across |= (v[axis] & last) == last ? 1 << axis : 0;
    }
    entry = vxd_cast_entry(call, ray, v[0], v[1], v[2]);
    if (entry == VXD_NO_ENTRY) {
        return false;
    }
    VXD_UNROLL
    for (int corner = 0; corner < 8; corner++) {
        int other = corner & across;
        int32_t of = vxd_block_neighbour(
            view, entry, 13 + 9 * (other & 1) + 3 * (other >> 1 & 1) + (other >> 2));
        uint32_t index = vxd_voxel_index(view, v[0] + (corner & 1),
                                         v[1] + (corner >> 1 & 1), v[2] + (corner >> 2));

        is_known = is_known && of != VXD_NO_ENTRY;
        cell->rows[corner] = vxd_voxel_row(view, of != VXD_NO_ENTRY ? of : entry, index);
    }
    VXD_UNROLL
    for (int corner = 0; corner < 8; corner++) { /* no load waits for another */
        is_known = vxd_cast_load(call, cell->rows[corner], &cell->d[corner]) && is_known;
    }
    return is_known;
}

VXD_HD float vxd_cast_mix(float a, float b, float part)
{
    return vxd_addf(a, vxd_mulf(vxd_subf(b, a), part));
}

/* Trilinear value of eight. */
VXD_HD float vxd_cast_mix8(const float d[8], const float f[3])
{
    float low = vxd_cast_mix(vxd_cast_mix(d[0], d[1], f[0]),
                             vxd_cast_mix(d[2], d[3], f[0]), f[1]);
    float high = vxd_cast_mix(vxd_cast_mix(d[4], d[5], f[0]),
                              vxd_cast_mix(d[6], d[7], f[0]), f[1]);

    return vxd_cast_mix(low, high, f[2]);
}

VXD_HD bool vxd_cast_is_near_surface(const struct vxd_cast_call *call, float d)
{
    float voxels = vxd_mulf(d, call->mu_voxels);

    return voxels < VXD_CAST_NEAR && voxels > -VXD_CAST_NEAR;
}

/* ---- The march ---- */

/* Walks from the unallocated block of a ray's last sample to the next allocated one, and counts
 * blocks as steps. Returns a depth just within it, or one past t_end. */
VXD_HD float vxd_cast_skip(const struct vxd_cast_call *call, struct vxd_cast_ray *ray,
                           float t, float t_end, int *n_steps)
{
    float edge = (float)call->view.edge;
    float to_border[3]; /* depths */
    float past = vxd_mulf(VXD_CAST_PAST_EXIT, ray->inverse_length);

    VXD_UNROLL
    for (int axis = 0; axis < 3; axis++) {
        float direction = ray->direction[axis];
        float border = (float)(ray->block[axis] + (direction > 0 ? 1 : 0));

        to_border[axis] =
            direction != 0
                ? vxd_mulf(vxd_subf(vxd_mulf(border, edge), call->offset[axis]),
                           ray->inverse[axis])
                : 3e38f;
    }
    for (; *n_steps < VXD_CAST_MAX_STEPS; ++*n_steps) {
        int axis = to_border[1] < to_border[0] ? 1 : 0;

        axis = to_border[2] < (axis == 1 ? to_border[1] : to_border[0]) ? 2 : axis;
        VXD_UNROLL
        for (int each = 0; each < 3; each++) { /* constant indices keep it in registers */
            if (each == axis) {
                float by = vxd_mulf(edge, ray->inverse[each]);

                t = to_border[each] > t ? to_border[each] : t;
                ray->block[each] += ray->direction[each] > 0 ? 1 : -1;
                to_border[each] = vxd_addf(to_border[each], by > 0 ? by : -by);
            }
        }
        if (!(t <= t_end)) {
            break;
        }
        ray->entry = vxd_cast_find(call, ray->block[0], ray->block[1], ray->block[2]);
        if (ray->entry != VXD_NO_ENTRY) {
            break;
        }
    }
    return vxd_addf(t, past);
}

/* Whether all positions of a ray up to a depth are near enough to be rounded. */
VXD_HD bool vxd_cast_is_near(const struct vxd_cast_call *call,
                             const struct vxd_cast_ray *ray, float t_end)
{
    bool is_near = true;

    VXD_UNROLL
    for (int axis = 0; axis < 3; axis++) {
        float end = vxd_cast_position(call, ray, axis, t_end);

        is_near = is_near && end > -VXD_CAST_FAR && end < VXD_CAST_FAR;
    }
    return is_near;
}

/* What a sample means for the march. */
enum vxd_cast_what {
    VXD_CAST_GO,
    VXD_CAST_IS_NEAR, /* the surface is: a trilinear sample is due */
    VXD_CAST_HIT,
    VXD_CAST_BEHIND /* a surface seen from behind */
};

VXD_HD enum vxd_cast_what vxd_cast_what_of(const struct vxd_cast_call *call, float last_d,
                                           float d)
{
    return d <= 0 && last_d > 0                         ? VXD_CAST_HIT
           : d > 0 && last_d < 0 && !call->passes_backs ? VXD_CAST_BEHIND
                                                        : VXD_CAST_GO;
}

/* The next depth after a sample: a part of its distance. */
VXD_HD float vxd_cast_next(const struct vxd_cast_call *call,
                           const struct vxd_cast_ray *ray, float t, float d)
{
    float voxels = vxd_mulf(vxd_mulf(d > 0 ? d : -d, call->mu_voxels), VXD_CAST_PART);

    voxels = voxels > VXD_CAST_LEAST ? voxels : VXD_CAST_LEAST;
    return vxd_addf(t, vxd_mulf(voxels, ray->inverse_length));
}

/* Walks on from an unknown voxel, a voxel at a time, in the block of the last sample. Returns the
 * depth of the first sample that is known or in another block, or the one after so many. The loads
 * wait for nothing but their positions, so that rays through much unknown space are not slow. */
VXD_HD float vxd_cast_pass_unknown(const struct vxd_cast_call *call,
                                   const struct vxd_cast_ray *ray, float t)
{
    const struct vxd_volume_view *view = &call->view;
    float at[VXD_CAST_BATCH + 1];
    bool stops[VXD_CAST_BATCH];

    at[0] = vxd_addf(t, ray->inverse_length);
    VXD_UNROLL
    for (int i = 0; i < VXD_CAST_BATCH; i++) {
        int32_t x = vxd_cast_floor(vxd_cast_position(call, ray, 0, at[i]));
        int32_t y = vxd_cast_floor(vxd_cast_position(call, ray, 1, at[i]));
        int32_t z = vxd_cast_floor(vxd_cast_position(call, ray, 2, at[i]));
        float weight = vxd_volume_weight(
            view, vxd_voxel_row(view, ray->entry, vxd_voxel_index(view, x, y, z)));

        stops[i] = x >> view->shift != ray->block[0] ||
                   y >> view->shift != ray->block[1] ||
                   z >> view->shift != ray->block[2] ||
                   (weight > 0 && weight >= call->weight_threshold);
        at[i + 1] = vxd_addf(at[i], ray->inverse_length);
    }
    t = at[VXD_CAST_BATCH];
    VXD_UNROLL
    for (int i = VXD_CAST_BATCH - 1; i >= 0; i--) {
        t = stops[i] ? at[i] : t;
    }
    return t;
}

/* ---- What a pixel shows ---- */

VXD_HD void vxd_cast_aim(const struct vxd_cast_call *call, int u, int v,
                         struct vxd_cast_ray *ray)
{
    float x;
    float y;
    float z = 1;
    float squares = 0;

    if (call->beams != NULL) {
        const float *row = call->beams + 2 * (size_t)v;
        const float *column = call->beams + 2 * ((size_t)call->camera.height + (size_t)u);

        x = vxd_mulf(row[0], column[0]);
        y = vxd_mulf(row[0], column[1]);
        z = row[1];
    } else {
        vxd_camera_ray(&call->camera, (float)u, (float)v, &x, &y);
    }
    VXD_UNROLL
    for (int axis = 0; axis < 3; axis++) {
        const float *r = &call->to_voxels[3 * (size_t)axis];
        float d =
            vxd_addf(vxd_addf(vxd_mulf(r[0], x), vxd_mulf(r[1], y)), vxd_mulf(r[2], z));

        ray->direction[axis] = d;
        ray->inverse[axis] = vxd_divf(1.0f, d);
        squares = vxd_addf(squares, vxd_mulf(d, d));
        ray->block[axis] = INT32_MIN;
    }
    ray->inverse_length = vxd_divf(1.0f, vxd_volume_sqrtf(squares));
    ray->entry = VXD_NO_ENTRY;
}

/* Unit gradient of the trilinear distance in a cell. */
VXD_HD void vxd_cast_gradient(const float d[8], const float f[3], float normal[3])
{
    float squares = 0;
    float inverse;

    VXD_UNROLL
    for (int axis = 0; axis < 3; axis++) {
        int bit = 1 << axis;
        int first = axis == 0 ? 2 : 1; /* bits of the other two axes */
        int second = axis == 2 ? 2 : 4;
        int a = axis == 0 ? 1 : 0;
        int b = axis == 2 ? 1 : 2;
        float low = vxd_cast_mix(vxd_subf(d[bit], d[0]),
                                 vxd_subf(d[bit | first], d[first]), f[a]);
        float high =
            vxd_cast_mix(vxd_subf(d[bit | second], d[second]),
                         vxd_subf(d[bit | first | second], d[first | second]), f[a]);

        normal[axis] = vxd_cast_mix(low, high, f[b]);
        squares = vxd_addf(squares, vxd_mulf(normal[axis], normal[axis]));
    }
    inverse = squares > 0 ? vxd_divf(1.0f, vxd_volume_sqrtf(squares)) : 0;
    VXD_UNROLL
    for (int axis = 0; axis < 3; axis++) {
        normal[axis] = vxd_mulf(normal[axis], inverse);
    }
}

/* Trilinear colour of the voxels that have one. */
VXD_HD void vxd_cast_colour(const struct vxd_cast_call *call,
                            const struct vxd_cast_cell *cell, uint8_t rgb[3])
{
    float sum[3] = {0, 0, 0};
    float total = 0;

    VXD_UNROLL
    for (int corner = 0; corner < 8; corner++) {
        const uint16_t *voxel = call->view.colours + 4 * cell->rows[corner];
        float part = voxel[3] != 0 ? 1.0f : 0.0f;

        VXD_UNROLL
        for (int axis = 0; axis < 3; axis++) {
            float f = cell->f[axis];

            part = vxd_mulf(part, (corner >> axis & 1) != 0 ? f : vxd_subf(1.0f, f));
        }
        VXD_UNROLL
        for (int c = 0; c < 3; c++) {
            sum[c] = vxd_addf(sum[c], vxd_mulf(part, (float)voxel[c]));
        }
        total = vxd_addf(total, part);
    }
    VXD_UNROLL
    for (int c = 0; c < 3; c++) {
        rgb[c] = total > 0 ? vxd_colour_byte((uint32_t)vxd_divf(sum[c], total)) : 0;
    }
}

/* What a ray has found: the samples before and behind the surface, later their crossing. */
struct vxd_cast_hit {
    float t[2];
    float d[2];
    float normal[3];
    uint8_t rgb[3];
};

/* Where the distance is 0 between the two samples, if it is linear. */
VXD_HD float vxd_cast_crossing(const struct vxd_cast_hit *hit)
{
    float part = vxd_divf(hit->d[0], vxd_subf(hit->d[0], hit->d[1]));

    return vxd_addf(hit->t[0], vxd_mulf(vxd_subf(hit->t[1], hit->t[0]), part));
}

/* Walks on from depth *t until the surface is near or between the last two samples, by the nearest
 * voxels' distances. VXD_CAST_BEHIND: the ray ends without a hit. */
VXD_HD enum vxd_cast_what vxd_cast_approach(const struct vxd_cast_call *call,
                                            struct vxd_cast_ray *ray,
                                            struct vxd_cast_hit *hit, float t_end,
                                            int *n_steps)
{
    enum vxd_cast_what what = VXD_CAST_GO;
    float t = hit->t[1];
    float d = 0;

    while (what == VXD_CAST_GO) {
        enum vxd_cast_sample sample;
        float p[3];

        if (!(t <= t_end) || (*n_steps)++ >= VXD_CAST_MAX_STEPS) {
            return VXD_CAST_BEHIND;
        }
        VXD_UNROLL
        for (int axis = 0; axis < 3; axis++) {
            p[axis] = vxd_cast_position(call, ray, axis, t);
        }
        sample = vxd_cast_nearest(call, ray, p, &d);
        if (sample == VXD_CAST_UNALLOCATED) { /* the ray's block is the sample's */
            t = vxd_cast_skip(call, ray, t, t_end, n_steps);
            hit->d[0] = 0;
        } else if (sample == VXD_CAST_UNKNOWN) {
            t = vxd_cast_pass_unknown(call, ray, t);
            *n_steps += VXD_CAST_BATCH;
            hit->d[0] = 0;
        } else if (vxd_cast_is_near_surface(call, d)) {
            what = VXD_CAST_IS_NEAR;
        } else {
            what = vxd_cast_what_of(call, hit->d[0], d);
            if (what == VXD_CAST_GO) {
                hit->t[0] = t;
                hit->d[0] = d;
                t = vxd_cast_next(call, ray, t, d);
            }
        }
    }
    hit->t[1] = t;
    hit->d[1] = d;
    return what;
}

/* Writes the normal and the colour of a cell. */
VXD_HD void vxd_cast_shade(const struct vxd_cast_call *call,
                           const struct vxd_cast_cell *cell, struct vxd_cast_hit *hit)
{
    if (call->normal != NULL) {
        vxd_cast_gradient(cell->d, cell->f, hit->normal);
    }
    if (call->colour != NULL) {
        vxd_cast_colour(call, cell, hit->rgb);
    }
}

/* Returns the depth of the first surface between two depths, or 0. Near a surface samples are
 * trilinear where that is known; between a sample in front of it and one behind, the crossing is
 * taken as linear, then as linear once more in the part that holds it; normal and colour are those
 * of the cell there, zero where it is not all known.
 *
 * All trilinear samples are taken at one place in the loop, so that rays of a warp take them
 * together, whichever of them a ray needs, and the code stays small. */
VXD_HD float vxd_cast_march(const struct vxd_cast_call *call, struct vxd_cast_ray *ray,
                            float t_begin, float t_end, struct vxd_cast_hit *hit)
{
    enum {
        MARCH,
        CROSS,
        SHADE
    } phase = MARCH;
    float t = 0;
    int n_steps = 0;

    hit->t[1] = t_begin;
    for (;;) {
        enum vxd_cast_what what = VXD_CAST_GO;
        struct vxd_cast_cell cell;
        float p[3];
        bool is_known;
        float d;

        if (phase == MARCH) {
            what = vxd_cast_approach(call, ray, hit, t_end, &n_steps);
            if (what == VXD_CAST_BEHIND) {
                return 0;
            }
            t = hit->t[1];
        }
        VXD_UNROLL
        for (int axis = 0; axis < 3; axis++) {
            p[axis] = vxd_cast_position(call, ray, axis, t);
        }
        is_known = vxd_cast_cell_at(call, ray, p, &cell);
        d = is_known ? vxd_cast_mix8(cell.d, cell.f) : hit->d[1];
        if (phase == SHADE) {
            if (is_known) {
                vxd_cast_shade(call, &cell, hit);
            }
            return t;
        }
        if (phase == CROSS) {
            if (is_known) {
                if (d > 0) { /* constant indices keep them in registers */
                    hit->t[0] = t;
                    hit->d[0] = d;
                } else {
                    hit->t[1] = t;
                    hit->d[1] = d;
                }
                t = vxd_cast_crossing(hit);
            }
            if (call->normal == NULL && call->colour == NULL) {
                return t;
            }
            phase = SHADE;
            continue;
        }
        if (what == VXD_CAST_IS_NEAR) {
            hit->d[1] = d;
            what = vxd_cast_what_of(call, hit->d[0], d);
        }
        if (what == VXD_CAST_BEHIND) {
            return 0;
        }
        if (what == VXD_CAST_HIT) {
            t = vxd_cast_crossing(hit);
            phase = CROSS;
        } else {
            hit->t[0] = t;
            hit->d[0] = d;
            hit->t[1] = vxd_cast_next(call, ray, t, d);
        }
    }
}

/* Writes the label and the weight of the voxel that a hit at depth t is in; t = 0: of no hit. */
VXD_HD void vxd_cast_note(const struct vxd_cast_call *call, struct vxd_cast_ray *ray,
                          float t, size_t pixel)
{
    int32_t entry = VXD_NO_ENTRY;
    size_t row = 0;

    if (t > 0) {
        int32_t x = vxd_cast_floor(vxd_cast_position(call, ray, 0, t));
        int32_t y = vxd_cast_floor(vxd_cast_position(call, ray, 1, t));
        int32_t z = vxd_cast_floor(vxd_cast_position(call, ray, 2, t));

        entry = vxd_cast_entry(call, ray, x, y, z);
        row = entry != VXD_NO_ENTRY ? vxd_voxel_row(&call->view, entry,
                                                    vxd_voxel_index(&call->view, x, y, z))
                                    : 0;
    }
    if (call->label != NULL) {
        call->label[pixel] =
            (uint8_t)(entry != VXD_NO_ENTRY ? vxd_volume_label(&call->view, row) : 0);
    }
    if (call->weight != NULL) {
        call->weight[pixel] =
            entry != VXD_NO_ENTRY ? vxd_volume_weight(&call->view, row) : 0;
    }
}

/* The depths that the range image allows a pixel; false: none. */
VXD_HD bool vxd_cast_range(const struct vxd_cast_call *call, int u, int v, float *from,
                           float *to)
{
    *from = call->depth_min;
    *to = call->depth_max;
    if (call->range_min != NULL) {
        int tile = v / VXD_CAST_TILE * call->tiles_x + u / VXD_CAST_TILE;
        float least = vxd_float_of_bits(call->range_min[tile]);
        float most = vxd_float_of_bits(call->range_max[tile]);

        *from = least > *from ? least : *from;
        *to = most < *to ? most : *to;
    }
    return *from <= *to;
}

/* Writes what a pixel shows; t = 0: nothing. */
VXD_HD void vxd_cast_write(const struct vxd_cast_call *call, struct vxd_cast_ray *ray,
                           const struct vxd_cast_hit *hit, float t, size_t pixel)
{
    if (call->depth != NULL) {
        call->depth[pixel] = t;
    }
    if (call->mask != NULL) {
        call->mask[pixel] = t > 0 ? 1 : 0;
    }
    if (call->label != NULL || call->weight != NULL) {
        vxd_cast_note(call, ray, t, pixel);
    }
    VXD_UNROLL
    for (int axis = 0; axis < 3; axis++) {
        size_t at = 3 * pixel + (size_t)axis;

        if (call->vertex != NULL) {
            float metres = vxd_mulf(ray->direction[axis], call->view.voxel_size);

            call->vertex[at] = t > 0 ? vxd_addf(call->at[axis], vxd_mulf(metres, t)) : 0;
        }
        if (call->normal != NULL) {
            call->normal[at] = hit->normal[axis];
        }
        if (call->colour != NULL) {
            call->colour[at] = hit->rgb[axis];
        }
    }
}

VXD_HD void vxd_cast_pixel(const struct vxd_cast_call *call, int u, int v)
{
    size_t pixel = (size_t)v * (size_t)call->camera.width + (size_t)u;
    struct vxd_cast_ray ray = {{0, 0, 0}, {0, 0, 0}, 0, {0, 0, 0}, VXD_NO_ENTRY};
    struct vxd_cast_hit hit = {{0, 0}, {0, 0}, {0, 0, 0}, {0, 0, 0}};
    float from;
    float to;
    float t = 0;

    if (vxd_cast_range(call, u, v, &from, &to)) {
        vxd_cast_aim(call, u, v, &ray);
        t = vxd_cast_is_near(call, &ray, to) ? vxd_cast_march(call, &ray, from, to, &hit)
                                             : 0;
    }
    vxd_cast_write(call, &ray, &hit, t, pixel);
}

#endif
