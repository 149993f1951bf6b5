// SPDX-License-Identifier: Apache-2.0
/* Which blocks a tile of a picture may show and between which depths, and the order in which rays
 * come through blocks; the same bits on both backends. */
#ifndef VXD_GPU_VOLUME_VOLUME_RANGE_MATH_H
#define VXD_GPU_VOLUME_VOLUME_RANGE_MATH_H

#include "gpu/volume/volume_math.h"

/* Pixels a side of a tile of the range image. */
#define VXD_CAST_TILE VXD_VOLUME_CAST_ROWS

/* Blocks that the list of a tile has space for. */
#define VXD_CAST_LISTED 128

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
    float mu_voxels; /* the truncation */

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
    /* The entries of the blocks that each tile may show, VXD_CAST_LISTED of them at most, and how
     * many they are; NULL: rays look blocks up. */
    int32_t *lists;
    uint32_t *list_sizes;

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

/* A corner of a block as the camera sees it. */
struct vxd_cast_corner {
    float z; /* depth, metres */
    float u; /* pixels */
    float v;
};

/* Half a voxel: what is nearer to the camera's plane has no place in the image. */
VXD_HD float vxd_cast_nearest_depth(const struct vxd_cast_call *call)
{
    return vxd_mulf(call->view.voxel_size, 0.5f);
}

VXD_HD struct vxd_cast_corner vxd_cast_corner(const struct vxd_cast_call *call,
                                              const int32_t key[3], int corner)
{
    float least = vxd_cast_nearest_depth(call);
    struct vxd_cast_corner seen;
    float p[3];
    float at[3];
    float inverse;

    VXD_UNROLL
    for (int axis = 0; axis < 3; axis++) {
        int32_t blocks = key[axis] - call->base[axis] + (corner >> axis & 1);

        p[axis] =
            vxd_mulf(vxd_subf((float)(blocks * call->view.edge), call->offset[axis]),
                     call->view.voxel_size);
    }
    VXD_UNROLL
    for (int axis = 0; axis < 3; axis++) {
        const float *r = &call->to_camera[3 * (size_t)axis];

        at[axis] = vxd_addf(vxd_addf(vxd_mulf(r[0], p[0]), vxd_mulf(r[1], p[1])),
                            vxd_mulf(r[2], p[2]));
    }
    inverse = vxd_divf(1.0f, at[2] > least ? at[2] : least);
    seen.z = at[2];
    seen.u =
        vxd_addf(vxd_mulf(call->camera.fx, vxd_mulf(at[0], inverse)), call->camera.cx);
    seen.v =
        vxd_addf(vxd_mulf(call->camera.fy, vxd_mulf(at[1], inverse)), call->camera.cy);
    return seen;
}

/* Widens a range of each component by a corner's. */
VXD_HD void vxd_cast_widen(struct vxd_cast_corner *low, struct vxd_cast_corner *high,
                           const struct vxd_cast_corner *by)
{
    low->z = by->z < low->z ? by->z : low->z;
    low->u = by->u < low->u ? by->u : low->u;
    low->v = by->v < low->v ? by->v : low->v;
    high->z = by->z > high->z ? by->z : high->z;
    high->u = by->u > high->u ? by->u : high->u;
    high->v = by->v > high->v ? by->v : high->v;
}

/* The box of the corners from the least and the greatest value of each component. Returns false
 * where the block is outside of the depths; half a voxel more is taken, so that no sample within
 * the depths is in a block without a box. A block that reaches behind the camera covers the whole
 * image. */
VXD_HD bool vxd_cast_box_of(const struct vxd_cast_call *call,
                            const struct vxd_cast_corner *low,
                            const struct vxd_cast_corner *high, struct vxd_cast_box *box)
{
    float least = vxd_cast_nearest_depth(call);

    if (high->z < vxd_subf(call->depth_min, least) ||
        low->z > vxd_addf(call->depth_max, least) || high->z <= least) {
        return false;
    }
    if (low->z <= least) {
        *box = (struct vxd_cast_box){
            0, call->tiles_x - 1, 0, call->tiles_y - 1, least, high->z};
        return true;
    }
    box->z_min = low->z;
    box->z_max = high->z;
    box->first_x = vxd_cast_tile(vxd_subf(low->u, 1.0f), call->tiles_x);
    box->last_x = vxd_cast_tile(vxd_addf(high->u, 1.0f), call->tiles_x);
    box->first_y = vxd_cast_tile(vxd_subf(low->v, 1.0f), call->tiles_y);
    box->last_y = vxd_cast_tile(vxd_addf(high->v, 1.0f), call->tiles_y);
    box->first_x = box->first_x > 0 ? box->first_x : 0;
    box->first_y = box->first_y > 0 ? box->first_y : 0;
    box->last_x = box->last_x < call->tiles_x ? box->last_x : call->tiles_x - 1;
    box->last_y = box->last_y < call->tiles_y ? box->last_y : call->tiles_y - 1;
    return true;
}

/* ---- Rays and blocks ---- */

/* A block that a tile may show: its place relative to the camera's block, and its entry. */
struct vxd_cast_listed {
    int32_t at[3];
    int32_t entry;
};

/* A ray, and the block that its last sample was in. */
struct vxd_cast_ray {
    float direction[3]; /* voxels a metre of depth */
    float inverse[3];   /* 1 / direction */
    float inverse_length;
    int32_t block[3];
    int32_t entry;

    /* The tile's blocks, those with fewer steps from the camera's block first; NULL: none. */
    const struct vxd_cast_listed *listed;
    int n_listed;
    int next; /* the first of them that is no fewer steps away than the last block looked up */
};

/* Steps over faces from the camera's block to another. Along a ray they only grow, whatever its
 * direction, so that one order is front to back for all rays of a picture. */
VXD_HD uint32_t vxd_cast_steps(const int32_t at[3])
{
    uint32_t n = 0;

    VXD_UNROLL
    for (int axis = 0; axis < 3; axis++) {
        n += (uint32_t)(at[axis] < 0 ? -at[axis] : at[axis]);
    }
    return n;
}

/* The depth at which a ray enters the block at a place on an axis, or leaves it. */
VXD_HD float vxd_cast_border(const struct vxd_cast_call *call,
                             const struct vxd_cast_ray *ray, int axis, int32_t at,
                             bool is_exit)
{
    float border = (float)(at + ((ray->direction[axis] > 0) == is_exit ? 1 : 0));

    return vxd_mulf(
        vxd_subf(vxd_mulf(border, (float)call->view.edge), call->offset[axis]),
        ray->inverse[axis]);
}

/* The entry of a block among those of the tile. */
VXD_HD int32_t vxd_cast_find_listed(struct vxd_cast_ray *ray, const int32_t at[3])
{
    uint32_t steps = vxd_cast_steps(at);

    if (ray->next > 0 && vxd_cast_steps(ray->listed[ray->next - 1].at) >= steps) {
        ray->next = 0; /* a trilinear sample had looked at a block that lies ahead */
    }
    for (int i = ray->next; i < ray->n_listed; i++) {
        const struct vxd_cast_listed *listed = &ray->listed[i];
        uint32_t its_steps = vxd_cast_steps(listed->at);

        if (its_steps > steps) {
            break;
        }
        if (its_steps < steps) {
            ray->next = i + 1;
        } else if (listed->at[0] == at[0] && listed->at[1] == at[1] &&
                   listed->at[2] == at[2]) {
            return listed->entry;
        }
    }
    return VXD_NO_ENTRY;
}

/* Whether a walk from block to block along a ray, which starts in the ray's block, comes through a
 * block of the tile's list; then *t is where it enters. It does if no border that it leaves the
 * block by comes before one that it enters by; of borders at one depth the walk takes those of the
 * first axis first. */
VXD_HD bool vxd_cast_comes_through(const struct vxd_cast_call *call,
                                   const struct vxd_cast_ray *ray,
                                   const struct vxd_cast_listed *listed, float *t)
{
    float entries[3];
    float exits[3];
    float last = *t;
    bool comes = true;

    VXD_UNROLL
    for (int axis = 0; axis < 3; axis++) {
        float direction = ray->direction[axis];
        int32_t steps = listed->at[axis] - ray->block[axis];

        steps = direction > 0 ? steps : -steps;
        comes = comes && steps >= 0 && (direction != 0 || steps == 0);
        entries[axis] = steps > 0
                            ? vxd_cast_border(call, ray, axis, listed->at[axis], false)
                            : -3e38f;
        exits[axis] = direction != 0
                          ? vxd_cast_border(call, ray, axis, listed->at[axis], true)
                          : 3e38f;
        last = entries[axis] > last ? entries[axis] : last;
    }
    VXD_UNROLL
    for (int in = 0; in < 3; in++) {
        VXD_UNROLL
        for (int out = 0; out < 3; out++) {
            comes = comes && (in == out || entries[in] < exits[out] ||
                              (entries[in] == exits[out] && in < out));
        }
    }
    *t = comes ? last : *t;
    return comes;
}

#endif
