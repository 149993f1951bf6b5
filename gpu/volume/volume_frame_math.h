// SPDX-License-Identifier: Apache-2.0
/* Arithmetic of one frame, the same bits on both backends: depth of a pixel, the blocks along its
 * ray, and what a voxel observes. */
#ifndef VXD_GPU_VOLUME_VOLUME_FRAME_MATH_H
#define VXD_GPU_VOLUME_VOLUME_FRAME_MATH_H

#include "gpu/deform/deform_math.h"
#include "gpu/volume/volume_math.h"

/* Blocks along one pixel's ray; a camera whose rays are longer drops the pixel. */
#define VXD_RAY_MAX_BLOCKS 512

/* Bounds of a position in blocks that is rounded to an int. */
#define VXD_RAY_FAR 4194304.0f

/* A frame as backends use it, made by vxd_frame_form_init (host). */
struct vxd_frame_form {
    struct vxd_camera_form camera;
    struct vxd_camera_form colour_camera; /* where has_colour_camera is set */
    const void *depth;
    const uint8_t *mask;
    const uint8_t *colour;
    const uint8_t *labels;
    int is_u16;
    int has_colour_camera;
    float depth_scale;
    float depth_min;
    float depth_max;

    /* Camera to blocks: position = base + offset + rotation * (x, y, z). */
    int32_t base[3];
    float offset[3];
    float to_blocks[9]; /* rotation / size of a block */
    float truncation;   /* metres */

    /* Voxels to the camera, in double: camera = to_camera * (centre - camera_at), with lengths in
     * metres from the volume's origin. */
    double to_camera[9];
    double camera_at[3];
    double voxel_size;

    /* Depth camera to colour camera. */
    float to_colour[9];
    float colour_shift[3];

    int is_inverse_z2;
    float weight;

    /* The control grid. T_grid_map takes metres from the volume's origin. */
    int is_deformed;
    struct vxd_deform_view deform;
    struct vxd_deform_pose T_grid_camera;
    struct vxd_deform_pose T_camera_grid;
    struct vxd_deform_pose T_grid_map;
};

/* Depth of a pixel in metres; 0 where there is none. */
VXD_HD float vxd_frame_depth_of(const struct vxd_frame_form *frame, float raw)
{
    float z = vxd_divf(raw, frame->depth_scale);

    return z >= frame->depth_min && z <= frame->depth_max && z > 0 ? z : 0;
}

VXD_HD float vxd_frame_raw_u16(uint16_t raw)
{
    return raw == 65535 ? 0 : (float)raw;
}

VXD_HD float vxd_frame_depth(const struct vxd_frame_form *frame, size_t pixel)
{
    float raw = frame->is_u16 != 0
                    ? vxd_frame_raw_u16(((const uint16_t *)frame->depth)[pixel])
                    : ((const float *)frame->depth)[pixel];
    float z = vxd_frame_depth_of(frame, raw);

    return frame->mask != NULL && frame->mask[pixel] == 0 ? 0 : z;
}

/* Direction of a camera ray in blocks a metre of depth. */
VXD_HD float vxd_frame_direction(const struct vxd_frame_form *frame, int axis, float x,
                                 float y)
{
    const float *r = &frame->to_blocks[3 * (size_t)axis];

    return vxd_addf(vxd_addf(vxd_mulf(r[0], x), vxd_mulf(r[1], y)), r[2]);
}

/* Position in blocks, less the base, at a depth along a direction. */
VXD_HD float vxd_frame_position(const struct vxd_frame_form *frame, int axis,
                                float direction, float z)
{
    float at = vxd_addf(frame->offset[axis], vxd_mulf(direction, z));

    at = at > -VXD_RAY_FAR ? at : -VXD_RAY_FAR; /* NaN, too */
    return at < VXD_RAY_FAR ? at : VXD_RAY_FAR;
}

/* The depths between which a pixel's ray touches blocks. */
VXD_HD float vxd_frame_near(const struct vxd_frame_form *frame, float z)
{
    float near_z = vxd_subf(z, frame->truncation);

    return near_z > 0 ? near_z : 0;
}

VXD_HD float vxd_frame_far(const struct vxd_frame_form *frame, float z)
{
    return vxd_addf(z, frame->truncation);
}

/* How far the control grid moves what a pixel at (x, y) * z shows, in blocks. The few centimetres
 * before and behind the surface are moved as far. */
VXD_HD void vxd_frame_shift(const struct vxd_frame_form *frame,
                            struct vxd_deform_cell *cell, float x, float y, float z,
                            float shift[3])
{
    const double p[3] = {vxd_muld((double)x, (double)z), vxd_muld((double)y, (double)z),
                         (double)z};
    double at[3];
    double moved[3];
    double by[3];

    vxd_deform_move(&frame->T_grid_camera, p, at);
    (void)vxd_deform_point(&frame->deform, cell, at, moved);
    for (int axis = 0; axis < 3; axis++) {
        moved[axis] = vxd_addd(moved[axis], -at[axis]);
    }
    vxd_deform_rotate(&frame->T_camera_grid, moved, by);
    for (int axis = 0; axis < 3; axis++) {
        const float *r = &frame->to_blocks[3 * (size_t)axis];

        shift[axis] =
            vxd_addf(vxd_addf(vxd_mulf(r[0], (float)by[0]), vxd_mulf(r[1], (float)by[1])),
                     vxd_mulf(r[2], (float)by[2]));
    }
}

/* Position in blocks of a shifted ray, as vxd_frame_position. */
VXD_HD float vxd_frame_shifted(float position, float shift)
{
    float at = vxd_addf(position, shift);

    at = at > -VXD_RAY_FAR ? at : -VXD_RAY_FAR;
    return at < VXD_RAY_FAR ? at : VXD_RAY_FAR;
}

/* Whether a walk is short enough and within the range of keys, which the box of its ends shows.
 * Pixels whose walk is not are dropped. */
VXD_HD bool vxd_frame_keeps(const struct vxd_frame_form *frame,
                            const int32_t from_cell[3], const int32_t to_cell[3])
{
    int32_t from[3];
    int32_t to[3];
    int32_t n = 0;

    for (int axis = 0; axis < 3; axis++) {
        int32_t d = to_cell[axis] - from_cell[axis];

        from[axis] = frame->base[axis] + from_cell[axis];
        to[axis] = frame->base[axis] + to_cell[axis];
        n += d > 0 ? d : -d;
    }
    return n < VXD_RAY_MAX_BLOCKS && vxd_block_in_range(from) && vxd_block_in_range(to);
}

/* ---- What a voxel observes ---- */

/* Centre of a block's first voxel in the camera's frame, metres. */
VXD_HD void vxd_frame_block_at(const struct vxd_frame_form *frame, const int32_t key[3],
                               int edge, double at[3])
{
    double p[3];

    for (int axis = 0; axis < 3; axis++) {
        double voxel = vxd_addd((double)key[axis] * edge, 0.5); /* exact */

        p[axis] = vxd_addd(vxd_muld(voxel, frame->voxel_size), -frame->camera_at[axis]);
    }
    for (int axis = 0; axis < 3; axis++) {
        const double *r = &frame->to_camera[3 * (size_t)axis];

        at[axis] = vxd_addd(vxd_addd(vxd_muld(r[0], p[0]), vxd_muld(r[1], p[1])),
                            vxd_muld(r[2], p[2]));
    }
}

/* Component `axis` of the first voxel of row (y, z) of a block, rounded to float32 once, so that
 * the depth of a voxel is known to the last bit that its measurement has. */
VXD_HD float vxd_frame_row_at(const struct vxd_frame_form *frame, const double at[3],
                              int axis, int y, int z)
{
    double by_y = vxd_muld(frame->to_camera[3 * axis + 1], frame->voxel_size);
    double by_z = vxd_muld(frame->to_camera[3 * axis + 2], frame->voxel_size);

    return (float)vxd_addd(vxd_addd(at[axis], vxd_muld(by_y, (double)y)),
                           vxd_muld(by_z, (double)z));
}

/* Step of a component from a voxel to the next in its row. */
VXD_HD float vxd_frame_row_step(const struct vxd_frame_form *frame, int axis)
{
    return (float)vxd_muld(frame->to_camera[3 * (size_t)axis], frame->voxel_size);
}

/* Where the camera sees the centre of a block's corner voxel k (as corners of cells) through the
 * control grid, metres in its frame. */
VXD_HD void vxd_frame_corner_at(const struct vxd_frame_form *frame, const int32_t key[3],
                                int edge, int k, struct vxd_deform_cell *cell,
                                double out[3])
{
    double p[3];
    double at[3];
    double back[3];

    for (int axis = 0; axis < 3; axis++) {
        double voxel = (double)key[axis] * edge + 0.5; /* exact */

        voxel = vxd_addd(voxel, (k >> (2 - axis) & 1) != 0 ? edge - 1 : 0);
        p[axis] = vxd_muld(voxel, frame->voxel_size);
    }
    vxd_deform_move(&frame->T_grid_map, p, at);
    (void)vxd_deform_inverse(&frame->deform, cell, at, back);
    vxd_deform_move(&frame->T_camera_grid, back, out);
}

VXD_HD double vxd_frame_between(double from, double to, double part)
{
    return vxd_addd(from, vxd_muld(vxd_addd(to, -from), part));
}

/* As vxd_frame_row_at and vxd_frame_row_step of a block whose corners are at `corners`. */
VXD_HD void vxd_frame_bent_row(const double corners[8][3], int edge, int axis, int y,
                               int z, float *first, float *step)
{
    double part = 1.0 / (edge - 1);
    double ty = vxd_muld((double)y, part);
    double tz = vxd_muld((double)z, part);
    double from =
        vxd_frame_between(vxd_frame_between(corners[0][axis], corners[1][axis], tz),
                          vxd_frame_between(corners[2][axis], corners[3][axis], tz), ty);
    double to =
        vxd_frame_between(vxd_frame_between(corners[4][axis], corners[5][axis], tz),
                          vxd_frame_between(corners[6][axis], corners[7][axis], tz), ty);

    *first = (float)from;
    *step = (float)vxd_muld(vxd_addd(to, -from), part);
}

/* Weight of an observation at a depth. */
VXD_HD float vxd_frame_weight(const struct vxd_frame_form *frame, float depth,
                              float max_weight, int is_compact)
{
    float weight = frame->is_inverse_z2 != 0
                       ? vxd_divf(frame->weight, vxd_mulf(depth, depth))
                       : frame->weight;
    float whole;

    weight = weight < max_weight ? weight : max_weight;
    whole = (float)(int32_t)vxd_addf(weight, 0.5f);
    whole = whole > 1 ? whole : 1;
    return is_compact != 0 ? whole : weight;
}

/* The pixel of the colour image that a point in the depth camera's frame has; -1: none. */
VXD_HD int32_t vxd_frame_colour_pixel(const struct vxd_frame_form *frame, float x,
                                      float y, float z)
{
    float p[3];

    for (int axis = 0; axis < 3; axis++) {
        const float *r = &frame->to_colour[3 * (size_t)axis];

        p[axis] = vxd_addf(
            vxd_addf(vxd_addf(vxd_mulf(r[0], x), vxd_mulf(r[1], y)), vxd_mulf(r[2], z)),
            frame->colour_shift[axis]);
    }
    return vxd_camera_pixel(&frame->colour_camera, p[0], p[1], p[2]);
}

/* Averages a pixel's colour into a voxel's, whose fourth component is its weight. */
VXD_HD void vxd_frame_mix_colour(uint16_t voxel[4], const uint8_t *rgb, float max_weight)
{
    float weight = (float)voxel[3];
    float part = vxd_divf(1.0f, vxd_addf(weight, 1.0f));
    float sum = vxd_weight_sum(weight, 1.0f, max_weight);

    for (int c = 0; c < 3; c++) {
        float old = (float)voxel[c];
        float now = (float)((uint32_t)rgb[c] << 8);

        voxel[c] = (uint16_t)(int32_t)vxd_addf(
            vxd_addf(old, vxd_mulf(vxd_subf(now, old), part)), 0.5f);
    }
    voxel[3] = (uint16_t)(int32_t)sum;
}

#endif
