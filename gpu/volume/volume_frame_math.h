// SPDX-License-Identifier: Apache-2.0
/* Arithmetic of one frame, the same bits on both backends: depth of a pixel, the blocks along its
 * ray, and what a voxel observes. */
#ifndef VXD_GPU_VOLUME_VOLUME_FRAME_MATH_H
#define VXD_GPU_VOLUME_VOLUME_FRAME_MATH_H

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
