// SPDX-License-Identifier: Apache-2.0
/* From hits to pixels: light, occlusion, paths. */
#ifndef VXD_GPU_RENDER_SHADE_MATH_H
#define VXD_GPU_RENDER_SHADE_MATH_H

#include "gpu/render/materials_math.h"

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
    struct vxd_render_limit limit = {most, surface->detail, 0,
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

/* One ray of a pixel; true: it hit something. */
VXD_HD bool vxd_render_first_hit(const struct vxd_render_call *call, uint32_t x,
                                 uint32_t y, uint32_t sample,
                                 struct vxd_render_origin *origin, float direction[3],
                                 uint32_t *nodes, int stride, struct vxd_render_hit *hit)
{
    const struct vxd_render_params *params = &call->params;
    struct vxd_render_limit limit = {(float)INFINITY, params->detail_base,
                                     params->detail_slope, vxd_render_clip_of(params)};
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
