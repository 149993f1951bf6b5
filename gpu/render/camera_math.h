// SPDX-License-Identifier: Apache-2.0
/* From pixels to rays. */
#ifndef VXD_GPU_RENDER_CAMERA_MATH_H
#define VXD_GPU_RENDER_CAMERA_MATH_H

#include "gpu/render/render_backends.h"
#include "gpu/render/trace_math.h"

/* All bits are of equal quality (lowbias32 of Wellons's hash prospector). */
VXD_HD uint32_t vxd_render_hash(uint32_t a)
{
    a = (a ^ a >> 16) * 0x21f0aaadu;
    a = (a ^ a >> 15) * 0xd35a2d97u;
    return a ^ a >> 15;
}

/* A number in [0, 1) of the upper 24 bits, exactly. */
VXD_HD float vxd_render_unit(uint32_t bits)
{
    return vxd_mulf((float)(bits >> 8), 0x1p-24f);
}

/* Two numbers of a sequence of samples that cover the unit square evenly (Roberts's R2, moved by
 * the key): sample i of a key. */
struct vxd_render_pair {
    uint32_t u, v;
};

VXD_HD struct vxd_render_pair vxd_render_sample(uint32_t key, uint32_t i)
{
    struct vxd_render_pair pair;

    pair.u = vxd_render_hash(key) + i * 0xc13fa9a9u;
    pair.v = vxd_render_hash(key ^ 0x9e3779b9u) + i * 0x91e10da5u;
    return pair;
}

/* What the samples of a pixel, and of a bounce of its paths, are keyed by. */
VXD_HD uint32_t vxd_render_key(const struct vxd_render_params *params, uint32_t x,
                               uint32_t y, uint32_t bounce)
{
    return vxd_render_hash(params->seed ^
                           vxd_render_hash((y * params->width + x) * 64u + bounce));
}

/* Where in a pixel a sample's ray goes through: the centre where there is one. */
VXD_HD void vxd_render_place_sample(const struct vxd_render_params *params, uint32_t x,
                                    uint32_t y, uint32_t i, float at[2])
{
    if (params->samples > 1) {
        struct vxd_render_pair pair =
            vxd_render_sample(vxd_render_key(params, x, y, 0), i);

        at[0] = vxd_addf((float)x, vxd_render_unit(pair.u));
        at[1] = vxd_addf((float)y, vxd_render_unit(pair.v));
    } else {
        at[0] = vxd_addf((float)x, 0.5f);
        at[1] = vxd_addf((float)y, 0.5f);
    }
}

/* The direction of a pixel on a sphere, and of a picture position on a plane. */
VXD_HD void vxd_render_direction(const struct vxd_render_params *params, uint32_t x,
                                 uint32_t y, const float at[2], float direction[3])
{
    if (params->kind >= VXD_RENDER_EQUIRECTANGULAR) {
        const float *column = params->columns + 2 * (size_t)x;
        const float *row = params->rows + 2 * (size_t)y;
        float ahead = vxd_mulf(row[0], column[0]);
        float right = vxd_mulf(row[0], column[1]);

        for (int axis = 0; axis < 3; axis++) {
            direction[axis] =
                vxd_addf(vxd_addf(vxd_mulf(ahead, params->direction[axis]),
                                  vxd_mulf(right, params->direction_x[axis])),
                         vxd_mulf(row[1], params->direction_y[axis]));
        }
        return;
    }
    for (int axis = 0; axis < 3; axis++) {
        direction[axis] =
            params->kind == VXD_RENDER_ORTHOGRAPHIC
                ? params->direction[axis]
                : vxd_addf(vxd_addf(params->direction[axis],
                                    vxd_mulf(at[0], params->direction_x[axis])),
                           vxd_mulf(at[1], params->direction_y[axis]));
    }
}

VXD_HD void vxd_render_origin_of(const struct vxd_render_params *params,
                                 const float at[2], struct vxd_render_origin *origin)
{
    for (int axis = 0; axis < 3; axis++) {
        if (params->kind == VXD_RENDER_ORTHOGRAPHIC) {
            double p = vxd_addd(
                vxd_addd(params->origin[axis], vxd_muld(at[0], params->origin_x[axis])),
                vxd_muld(at[1], params->origin_y[axis]));
            double cell = floor(p);

            origin->cell[axis] = (int32_t)cell;
            origin->offset[axis] = (float)vxd_addd(p, -cell);
        } else {
            origin->cell[axis] = params->eye_cell[axis];
            origin->offset[axis] = params->eye_offset[axis];
        }
    }
}

#endif
