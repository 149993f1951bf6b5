// SPDX-License-Identifier: Apache-2.0
/* From pixels to rays, from hits to colours, and from those to pixels: light, occlusion, paths. */
#ifndef VXD_GPU_RENDER_SHADE_MATH_H
#define VXD_GPU_RENDER_SHADE_MATH_H

#include "gpu/render/render_backends.h"
#include "gpu/render/trace_math.h"

/* --- from pixels to rays ----------------------------------------------------------------- */

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

/* --- the colour of what was hit: palettes, textures, variation --------------------------- */

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

/* --- light, occlusion, paths ------------------------------------------------------------- */

/* A surface point that light comes to: what rays from it begin with. */
struct vxd_render_surface {
    struct vxd_render_origin origin;
    int axis;     /* of the normal */
    bool is_up;   /* the normal points upwards on it */
    float detail; /* cubes below this size are one voxel to rays from here */
};

VXD_HD bool vxd_render_is_colour(enum vxd_render_mode mode)
{
    return mode >= VXD_RENDER_COLOUR;
}

/* Whether the face that a ray came in by has a normal towards higher numbers. */
VXD_HD bool vxd_render_faces_up(const float direction[3], int axis)
{
    return axis == 0 ? direction[0] < 0 : axis == 1 ? direction[1] < 0 : direction[2] < 0;
}

/* The point where a ray hit a face; not of a hit from inside. */
VXD_HD void vxd_render_surface_of(const struct vxd_render_origin *origin,
                                  const float direction[3],
                                  const struct vxd_render_hit *hit,
                                  struct vxd_render_surface *surface)
{
    int32_t side = (int32_t)1 << hit->height;
    float length = vxd_render_float((uint32_t)side);

    surface->axis = hit->axis;
    surface->is_up = vxd_render_faces_up(direction, hit->axis);
    surface->detail = hit->height > 0 ? vxd_mulf(length, 1.5f) : 0.0f;
    for (int axis = 0; axis < 3; axis++) {
        int32_t voxel = hit->voxel[axis];
        float from = vxd_addf(origin->offset[axis], vxd_mulf(hit->t, direction[axis]));
        float inside = vxd_subf(from, (float)(voxel - origin->cell[axis]));
        bool is_face = axis == hit->axis;

        inside = inside > 0 ? inside : 0.0f;
        inside = inside < length ? inside : length;
        surface->origin.cell[axis] = is_face && surface->is_up ? voxel + side : voxel;
        surface->origin.offset[axis] = is_face ? 0.0f : inside;
    }
}

/* Sky towards a direction of any length: from the horizon to the zenith, or to the ground. */
VXD_HD struct vxd_render_light vxd_render_sky(const struct vxd_render_params *params,
                                              const float direction[3])
{
    float square = vxd_addf(vxd_addf(vxd_mulf(direction[0], direction[0]),
                                     vxd_mulf(direction[1], direction[1])),
                            vxd_mulf(direction[2], direction[2]));
    float up = vxd_divf(direction[2], vxd_render_sqrt(square));
    struct vxd_render_light light;
    bool is_ground;

    is_ground = up < 0;
    up = is_ground ? -up : up;
    up = up < 1 ? vxd_render_sqrt(up) : 1.0f;
    for (int i = 0; i < 3; i++) {
        float end = is_ground ? params->sky_ground[i] : params->sky_zenith[i];

        light.rgb[i] = vxd_addf(params->sky_horizon[i],
                                vxd_mulf(up, vxd_subf(end, params->sky_horizon[i])));
    }
    return light;
}

/* Cosine of the angle between a surface's normal and the sun; at most 0: it is turned away. */
VXD_HD float vxd_render_sun_cosine(const struct vxd_render_params *params,
                                   const struct vxd_render_surface *surface)
{
    float along = surface->axis == 0   ? params->sun[0]
                  : surface->axis == 1 ? params->sun[1]
                                       : params->sun[2];

    return surface->is_up ? along : -along;
}

/* The box that a picture is clipped to; NULL: it is not. */
VXD_HD const struct vxd_render_clip *
vxd_render_clip_of(const struct vxd_render_params *params)
{
    return params->has_clip ? &params->clip : NULL;
}

VXD_HD struct vxd_render_limit
vxd_render_limit_from(const struct vxd_render_params *params,
                      const struct vxd_render_surface *surface, float most)
{
    struct vxd_render_limit limit = {0, most, surface->detail, 0,
                                     vxd_render_clip_of(params)};

    return limit;
}

/* Whether nothing stands between a surface and infinity, or a distance in a direction. */
VXD_HD bool vxd_render_is_open(const struct vxd_render_call *call,
                               const struct vxd_render_surface *surface,
                               const float direction[3], float most, uint32_t *nodes,
                               int stride)
{
    struct vxd_render_limit limit = vxd_render_limit_from(&call->params, surface, most);
    struct vxd_render_ray ray =
        vxd_render_ray_of(&surface->origin, direction, call->view.depth);

    return !vxd_render_trace(&call->view, call->root, &ray, &limit, nodes, stride, NULL);
}

/* A direction of the hemisphere over a surface, by the cosine of its angle to the normal. */
VXD_HD void vxd_render_scatter(const struct vxd_render_params *params,
                               const struct vxd_render_surface *surface,
                               struct vxd_render_pair pair, float direction[3])
{
    float square = vxd_render_unit(pair.u);
    float radius = vxd_render_sqrt(square);
    const float *angle = params->angles + 2 * (size_t)(pair.v >> 22);
    float up = vxd_render_sqrt(vxd_subf(1.0f, square));
    float a = vxd_mulf(radius, angle[0]);
    float b = vxd_mulf(radius, angle[1]);

    up = surface->is_up ? up : -up;
    direction[0] = surface->axis == 0 ? up : a;
    direction[1] = surface->axis == 1 ? up : surface->axis == 0 ? a : b;
    direction[2] = surface->axis == 2 ? up : b;
}

/* The open share of a surface's hemisphere. */
VXD_HD float vxd_render_openness(const struct vxd_render_call *call,
                                 const struct vxd_render_surface *surface, uint32_t key,
                                 uint32_t *nodes, int stride)
{
    const struct vxd_render_params *params = &call->params;
    uint32_t n_open = 0;

    for (uint32_t i = 0; i < params->ao_samples; i++) {
        float direction[3];

        vxd_render_scatter(params, surface, vxd_render_sample(key, i), direction);
        n_open +=
            vxd_render_is_open(call, surface, direction, params->ao_most, nodes, stride)
                ? 1
                : 0;
    }
    return vxd_divf((float)n_open, (float)params->ao_samples);
}

/* Light of the ambient sky on a face: upper ones get all of it, lower ones half. */
VXD_HD float vxd_render_ambient(const struct vxd_render_params *params,
                                const struct vxd_render_surface *surface)
{
    return surface->axis != 2 ? vxd_mulf(params->ambient, 0.75f)
           : surface->is_up   ? params->ambient
                              : vxd_mulf(params->ambient, 0.5f);
}

/* COLOUR and HEIGHT: a surface in ambient light and sun. */
VXD_HD struct vxd_render_light vxd_render_lit(struct vxd_render_light albedo,
                                              float ambient, float sun)
{
    struct vxd_render_light light;

    for (int i = 0; i < 3; i++) {
        light.rgb[i] = vxd_mulf(albedo.rgb[i], vxd_addf(ambient, sun));
    }
    return light;
}

VXD_HD void vxd_render_add(struct vxd_render_light *sum, struct vxd_render_light light)
{
    for (int i = 0; i < 3; i++) {
        sum->rgb[i] = vxd_addf(sum->rgb[i], light.rgb[i]);
    }
}

/* The bytes of a mean of n samples, of which n_hits hit something. */
VXD_HD uint32_t vxd_render_pack(struct vxd_render_light sum, uint32_t n, uint32_t n_hits)
{
    uint32_t pixel = n_hits > 0 ? 0xff000000u : 0;

    for (int i = 0; i < 3; i++) {
        float mean = n > 1 ? vxd_divf(sum.rgb[i], (float)n) : sum.rgb[i];
        float stored = vxd_render_sqrt(mean < 1 ? mean : 1.0f);

        pixel |= (uint32_t)vxd_addf(vxd_mulf(stored, 255.0f), 0.5f) << (8 * i);
    }
    return pixel;
}

/* What a pixel is in the modes that have no light; hit NULL: there is nothing. */
VXD_HD uint32_t vxd_render_fact(const struct vxd_render_call *call,
                                enum vxd_render_mode mode,
                                const struct vxd_render_hit *hit,
                                const float direction[3])
{
    if (mode == VXD_RENDER_DEPTH) {
        return hit != NULL ? vxd_float_bits(vxd_mulf(hit->t, call->params.voxel_size_m))
                           : 0x7f800000u;
    }
    if (mode == VXD_RENDER_MATERIAL) {
        return hit != NULL ? hit->value : UINT32_MAX;
    }
    if (hit == NULL || hit->axis == VXD_RENDER_START) {
        return 0;
    }
    return (vxd_render_faces_up(direction, hit->axis) ? 1u : 0xffu) << (8 * hit->axis);
}

/* COLOUR, HEIGHT and AO: light from a hit; `is_sunny`: the sun reaches it, as far as it is known
 * to be turned to it. */
VXD_HD struct vxd_render_light vxd_render_shade(const struct vxd_render_call *call,
                                                enum vxd_render_mode mode,
                                                const struct vxd_render_hit *hit,
                                                const struct vxd_render_surface *surface,
                                                bool is_sunny, uint32_t key,
                                                uint32_t *nodes, int stride)
{
    const struct vxd_render_params *params = &call->params;
    struct vxd_render_light light = {{1.0f, 1.0f, 1.0f}};
    bool is_inside = hit->axis == VXD_RENDER_START;
    float open = 1.0f;
    float cosine = 0;

    if (mode != VXD_RENDER_AO) {
        light = vxd_render_albedo(call, mode, hit);
    }
    if (mode == VXD_RENDER_LABEL) {
        return light;
    }
    if (is_inside) {
        return vxd_render_lit(light, mode == VXD_RENDER_AO ? 0 : params->ambient, 0);
    }
    if (params->ao_samples > 0) {
        open = vxd_render_openness(call, surface, key, nodes, stride);
    }
    if (mode == VXD_RENDER_AO) {
        return vxd_render_lit(light, open, 0);
    }
    if (is_sunny) {
        cosine = vxd_render_sun_cosine(params, surface);
        cosine = cosine > 0 ? cosine : 0.0f;
    }
    return vxd_render_lit(light, vxd_mulf(vxd_render_ambient(params, surface), open),
                          vxd_mulf(params->sun_light, cosine));
}

/* PATH: light along a path whose first ray hit something. */
VXD_HD struct vxd_render_light vxd_render_path(const struct vxd_render_call *call,
                                               uint32_t x, uint32_t y, uint32_t sample,
                                               struct vxd_render_hit hit,
                                               struct vxd_render_surface surface,
                                               uint32_t *nodes, int stride)
{
    const struct vxd_render_params *params = &call->params;
    struct vxd_render_light sum = {{0, 0, 0}};
    struct vxd_render_light share = {{1.0f, 1.0f, 1.0f}};

    for (uint32_t bounce = 1;; bounce++) {
        struct vxd_render_light albedo = vxd_render_albedo(call, VXD_RENDER_PATH, &hit);
        float cosine = vxd_render_sun_cosine(params, &surface);
        struct vxd_render_limit limit =
            vxd_render_limit_from(params, &surface, (float)INFINITY);
        struct vxd_render_ray ray;
        float direction[3];

        for (int i = 0; i < 3; i++) {
            share.rgb[i] = vxd_mulf(share.rgb[i], albedo.rgb[i]);
        }
        if (cosine > 0 && params->sun_light > 0 &&
            vxd_render_is_open(call, &surface, params->sun, (float)INFINITY, nodes,
                               stride)) {
            vxd_render_add(&sum,
                           vxd_render_lit(share, vxd_mulf(params->sun_light, cosine), 0));
        }
        vxd_render_scatter(
            params, &surface,
            vxd_render_sample(vxd_render_key(params, x, y, bounce), sample), direction);
        ray = vxd_render_ray_of(&surface.origin, direction, call->view.depth);
        if (!vxd_render_trace(&call->view, call->root, &ray, &limit, nodes, stride,
                              &hit)) {
            struct vxd_render_light sky = vxd_render_sky(params, direction);

            for (int i = 0; i < 3; i++) {
                sky.rgb[i] = vxd_mulf(sky.rgb[i], share.rgb[i]);
            }
            vxd_render_add(&sum, vxd_render_lit(sky, params->sky_light, 0));
            return sum;
        }
        if (bounce == params->bounces || hit.axis == VXD_RENDER_START) {
            return sum;
        }
        {
            struct vxd_render_surface next;

            vxd_render_surface_of(&surface.origin, direction, &hit, &next);
            surface = next;
        }
    }
}

/* Light of a sample that hit something. */
VXD_HD struct vxd_render_light
vxd_render_sample_light(const struct vxd_render_call *call, enum vxd_render_mode mode,
                        uint32_t x, uint32_t y, uint32_t sample,
                        const struct vxd_render_origin *origin, const float direction[3],
                        const struct vxd_render_hit *hit, uint32_t *nodes, int stride)
{
    const struct vxd_render_params *params = &call->params;
    struct vxd_render_surface surface = {{{0, 0, 0}, {0, 0, 0}}, 0, false, 0};
    bool is_inside = hit->axis == VXD_RENDER_START;
    bool is_sunny = !is_inside;

    if (!is_inside) {
        vxd_render_surface_of(origin, direction, hit, &surface);
    }
    if (mode == VXD_RENDER_PATH) {
        struct vxd_render_light none = {{0, 0, 0}};

        return is_inside
                   ? none
                   : vxd_render_path(call, x, y, sample, *hit, surface, nodes, stride);
    }
    if (mode != VXD_RENDER_AO && mode != VXD_RENDER_LABEL && is_sunny &&
        params->has_shadows && vxd_render_sun_cosine(params, &surface) > 0) {
        is_sunny = vxd_render_is_open(call, &surface, params->sun, (float)INFINITY, nodes,
                                      stride);
    }
    return vxd_render_shade(call, mode, hit, &surface, is_sunny,
                            vxd_render_key(params, x, y, 1u + (sample & 31u)), nodes,
                            stride);
}

/* Before which t the rays of a pixel hit nothing, as its tile's beam found. */
VXD_HD float vxd_render_start_of(const struct vxd_render_call *call, uint32_t x,
                                 uint32_t y)
{
    uint32_t n_x = (call->params.width - 1) / VXD_RENDER_BEAM + 1;

    return call->starts != NULL
               ? call->starts[(size_t)(y / VXD_RENDER_BEAM) * n_x + x / VXD_RENDER_BEAM]
               : 0.0f;
}

/* One ray of a pixel; true: it hit something. */
VXD_HD bool vxd_render_first_hit(const struct vxd_render_call *call, uint32_t x,
                                 uint32_t y, uint32_t sample,
                                 struct vxd_render_origin *origin, float direction[3],
                                 uint32_t *nodes, int stride, struct vxd_render_hit *hit)
{
    const struct vxd_render_params *params = &call->params;
    struct vxd_render_limit limit = {vxd_render_start_of(call, x, y), (float)INFINITY,
                                     params->detail_base, params->detail_slope,
                                     vxd_render_clip_of(params)};
    struct vxd_render_ray ray;
    float at[2];

    vxd_render_place_sample(params, x, y, sample, at);
    vxd_render_direction(params, x, y, at, direction);
    vxd_render_origin_of(params, at, origin);
    ray = vxd_render_ray_of(origin, direction, call->view.depth);
    return vxd_render_trace(&call->view, call->root, &ray, &limit, nodes, stride, hit);
}

/* A whole pixel, ray by ray. */
VXD_HD uint32_t vxd_render_pixel(const struct vxd_render_call *call,
                                 enum vxd_render_mode mode, uint32_t x, uint32_t y,
                                 uint32_t *nodes, int stride)
{
    struct vxd_render_light sum = {{0, 0, 0}};
    struct vxd_render_origin origin;
    struct vxd_render_hit hit;
    float direction[3];
    uint32_t n_hits = 0;

    if (!vxd_render_is_colour(mode)) {
        bool is_hit =
            vxd_render_first_hit(call, x, y, 0, &origin, direction, nodes, stride, &hit);

        return vxd_render_fact(call, mode, is_hit ? &hit : NULL, direction);
    }
    for (uint32_t i = 0; i < call->params.samples; i++) {
        if (vxd_render_first_hit(call, x, y, i, &origin, direction, nodes, stride,
                                 &hit)) {
            n_hits++;
            vxd_render_add(&sum, vxd_render_sample_light(call, mode, x, y, i, &origin,
                                                         direction, &hit, nodes, stride));
        } else {
            vxd_render_add(&sum, vxd_render_sky(&call->params, direction));
        }
    }
    return vxd_render_pack(sum, call->params.samples, n_hits);
}

#endif
