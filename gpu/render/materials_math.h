// SPDX-License-Identifier: Apache-2.0
/* The colour of what was hit: palettes, by region and by version; textures; variation. */
#ifndef VXD_GPU_RENDER_MATERIALS_MATH_H
#define VXD_GPU_RENDER_MATERIALS_MATH_H

#include "gpu/render/camera_math.h"

struct vxd_render_light {
    float rgb[3];
};

/* A factor around 1, by voxel and by block of 4 voxels a side. */
VXD_HD float vxd_render_variation(const struct vxd_render_params *params,
                                  const int32_t voxel[3])
{
    uint32_t fine = vxd_render_hash((uint32_t)voxel[0] * 0x8da6b343u ^
                                    (uint32_t)voxel[1] * 0xd8163841u ^
                                    (uint32_t)voxel[2] * 0xcb1ab31fu);
    uint32_t coarse = vxd_render_hash((uint32_t)(voxel[0] >> 2) * 0x8da6b343u ^
                                      (uint32_t)(voxel[1] >> 2) * 0xd8163841u ^
                                      (uint32_t)(voxel[2] >> 2) * 0xcb1ab31fu);
    float sum = vxd_addf(vxd_render_unit(fine), vxd_render_unit(coarse));

    return vxd_addf(1.0f, vxd_mulf(params->variation, vxd_subf(sum, 1.0f)));
}

/* The colour of a material that the palette has not: stone for 0, others by their number. */
VXD_HD struct vxd_render_light vxd_render_unnamed(uint32_t value)
{
    struct vxd_render_light light;
    uint32_t bits = vxd_render_hash(value);

    light.rgb[0] = 0.55f;
    light.rgb[1] = 0.53f;
    light.rgb[2] = 0.49f;
    for (int i = 0; i < 3 && value > 0; i++) {
        light.rgb[i] = vxd_addf(0.08f, vxd_mulf(0.75f, vxd_render_unit(bits << (8 * i))));
    }
    return light;
}

/* The texel that a voxel's face shows. */
VXD_HD const float *vxd_render_texel(const struct vxd_render_materials *materials,
                                     const struct vxd_render_hit *hit)
{
    uint32_t number =
        hit->value < materials->n_texture_of ? materials->texture_of[hit->value] : 0;
    const uint32_t *texture;
    uint32_t u, v;

    if (number == 0) {
        return NULL;
    }
    texture = materials->textures + VXD_RENDER_TEXTURE_WORDS * (size_t)(number - 1);
    u = (uint32_t)hit->voxel[hit->axis == 0 ? 1 : 0] / texture[3] % texture[1];
    v = (uint32_t)hit->voxel[hit->axis <= 1 ? 2 : 1] / texture[3] % texture[2];
    return materials->texels +
           3 * ((size_t)texture[0] + (size_t)(texture[2] - 1 - v) * texture[1] + u);
}

/* The colour that the last region around a voxel gives its material. */
VXD_HD const float *vxd_render_region_colour(const struct vxd_render_materials *materials,
                                             const struct vxd_render_hit *hit)
{
    const float *rgb = NULL;

    for (uint32_t i = 0; i < materials->n_regions; i++) {
        const uint32_t *region = materials->regions + VXD_RENDER_REGION_WORDS * (size_t)i;
        bool is_in = hit->value < region[7];

        for (int axis = 0; axis < 3; axis++) {
            uint32_t at = (uint32_t)hit->voxel[axis];

            is_in &= (at >= region[axis]) & (at < region[3 + axis]);
        }
        rgb = is_in ? materials->region_colours + 3 * ((size_t)region[6] + hit->value)
                    : rgb;
    }
    return rgb;
}

/* The colour of the version that changed a voxel last; NULL where it is older than all. */
VXD_HD const float *vxd_render_age_colour(const struct vxd_render_call *call,
                                          const struct vxd_render_hit *hit)
{
    const struct vxd_render_materials *materials = &call->params.materials;
    uint32_t last = materials->n_roots - 1;
    uint32_t i = vxd_svdag_changed_answer(&call->view, materials->roots,
                                          materials->n_roots, hit->voxel);

    return i < last ? call->params.ramp +
                          3 * (size_t)((last - i) * (VXD_RENDER_RAMP_COLOURS - 1) / last)
                    : NULL;
}

/* The colour of what has one of its own; NULL where the palette gives it. */
VXD_SVDAG_RARE const float *vxd_render_own_colour(const struct vxd_render_call *call,
                                                  int mode,
                                                  const struct vxd_render_hit *hit)
{
    const float *rgb;

    if (mode == VXD_RENDER_AGE) {
        return vxd_render_age_colour(call, hit);
    }
    rgb = vxd_render_texel(&call->params.materials, hit);
    return rgb != NULL ? rgb : vxd_render_region_colour(&call->params.materials, hit);
}

/* Linear colour of what was hit. */
VXD_HD struct vxd_render_light vxd_render_albedo(const struct vxd_render_call *call,
                                                 enum vxd_render_mode mode,
                                                 const struct vxd_render_hit *hit)
{
    const struct vxd_render_params *params = &call->params;
    struct vxd_render_light light;
    const float *rgb = NULL;
    float factor = 1.0f;
    bool has_own = !vxd_render_is_plain() && vxd_render_has_materials(params);

    if (mode == VXD_RENDER_HEIGHT) {
        float z = vxd_addf((float)hit->voxel[2], 0.5f);
        float at = vxd_mulf(vxd_subf(z, params->ramp_low), params->ramp_scale);

        at = at > 0 ? at : 0.0f;
        at = at < VXD_RENDER_RAMP_COLOURS - 1 ? at : VXD_RENDER_RAMP_COLOURS - 1;
        rgb = params->ramp + 3 * (size_t)at;
    } else if (has_own) {
        rgb = vxd_render_own_colour(call, (int)mode, hit);
    }
    if (rgb == NULL && mode != VXD_RENDER_AGE && hit->value < params->n_palette) {
        rgb = params->palette + 3 * (size_t)hit->value;
    }
    if (params->variation > 0 && mode != VXD_RENDER_HEIGHT && mode != VXD_RENDER_AGE) {
        factor = vxd_render_variation(params, hit->voxel);
    }
    light = vxd_render_unnamed(mode == VXD_RENDER_AGE ? 0 : hit->value);
    for (int i = 0; i < 3; i++) {
        float c = vxd_mulf(rgb != NULL ? rgb[i] : light.rgb[i], factor);

        light.rgb[i] = c < 1 ? c : 1.0f;
    }
    return light;
}

#endif
