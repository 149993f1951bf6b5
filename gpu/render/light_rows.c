// SPDX-License-Identifier: Apache-2.0
/* Pictures of smooth surfaces, which something else has found: sky, sun and ambient light as in
 * pictures of scenes, alone or put into one, on the host. */
#include "gpu/render/shade_math.h"

/* What a table's index of a height is. */
static struct vxd_render_light height_colour(const struct vxd_render_plan *plan, float z)
{
    const struct vxd_render_params *params = &plan->params;
    const float *rgb;
    float at = (z - params->ramp_low) * params->ramp_scale;

    at = at > 0 ? at : 0.0f;
    at = at < VXD_RENDER_RAMP_COLOURS - 1 ? at : VXD_RENDER_RAMP_COLOURS - 1;
    rgb = vxd_render_host_ramp(plan) + 3 * (size_t)at;
    return (struct vxd_render_light){{rgb[0], rgb[1], rgb[2]}};
}

static struct vxd_render_light albedo_of(const struct vxd_render_plan *plan,
                                         const struct vxd_render_seen *seen, size_t i)
{
    struct vxd_render_light light = vxd_render_unnamed(0);

    if (plan->mode == VXD_RENDER_HEIGHT) {
        return height_colour(plan, seen->places[3 * i + 2]);
    }
    if (plan->mode == VXD_RENDER_LABEL) {
        uint32_t label = seen->labels[i];
        const float *rgb = vxd_render_host_palette(plan) + 3 * (size_t)label;

        return label < plan->params.n_palette
                   ? (struct vxd_render_light){{rgb[0], rgb[1], rgb[2]}}
                   : vxd_render_unnamed(label);
    }
    for (size_t k = 0; seen->colours != NULL && k < 3; k++) {
        float stored = (float)seen->colours[3 * i + k] / 255.0f;

        light.rgb[k] = stored * stored;
    }
    return light;
}

static uint32_t lit_pixel(const struct vxd_render_plan *plan,
                          const struct vxd_render_seen *seen, size_t i)
{
    const struct vxd_render_params *params = &plan->params;
    const float *normal = seen->normals + 3 * i;
    struct vxd_render_light light = albedo_of(plan, seen, i);
    float cosine = normal[0] * params->sun[0] + normal[1] * params->sun[1] +
                   normal[2] * params->sun[2];

    if (plan->mode != VXD_RENDER_LABEL) {
        light = vxd_render_lit(light, params->ambient * (0.75f + 0.25f * normal[2]),
                               params->sun_light * (cosine > 0 ? cosine : 0.0f));
    }
    return vxd_render_pack(light, 1, 1);
}

static uint32_t normal_pixel(const float normal[3])
{
    uint32_t pixel = 0;

    for (int k = 0; k < 3; k++) {
        pixel |= (uint32_t)(normal[k] * 127.0f + 128.0f) << (8 * k);
    }
    return pixel;
}

static uint32_t sky_pixel(const struct vxd_render_params *params, uint32_t x, uint32_t y)
{
    const float at[2] = {(float)x + 0.5f, (float)y + 0.5f};
    float direction[3];

    vxd_render_direction(params, x, y, at, direction);
    return vxd_render_pack(vxd_render_sky(params, direction), 1, 0);
}

void vxd_render_light_rows(const struct vxd_render_plan *plan,
                           const struct vxd_render_seen *seen, uint32_t first, uint32_t n,
                           uint8_t *rgb)
{
    const uint32_t width = plan->params.width;
    struct vxd_render_params params = plan->params;

    params.columns = plan->columns;
    params.rows = plan->rows;
    for (uint32_t y = first; y < first + n; y++) {
        for (uint32_t x = 0; x < width; x++) {
            size_t i = (size_t)y * width + x;
            bool is_seen = seen->depths[i] > 0;
            uint32_t pixel = plan->mode == VXD_RENDER_NORMAL
                                 ? (is_seen ? normal_pixel(seen->normals + 3 * i) : 0)
                             : is_seen ? lit_pixel(plan, seen, i)
                                       : sky_pixel(&params, x, y);

            for (int k = 0; k < 3; k++) {
                *rgb++ = (uint8_t)(pixel >> (8 * k));
            }
        }
    }
}

/* The bytes of a normal in 127ths, from those of its picture. */
static uint32_t signed_normal(const float normal[3])
{
    uint32_t bytes = normal_pixel(normal);
    uint32_t pixel = 0;

    for (int k = 0; k < 3; k++) {
        pixel |= (((bytes >> (8 * k)) - 128u) & 0xffu) << (8 * k);
    }
    return pixel;
}

void vxd_render_compose_rows(const struct vxd_render_plan *plan,
                             const struct vxd_render_seen *seen, uint32_t first,
                             uint32_t n, float *depths, uint32_t *pixels)
{
    const size_t width = plan->params.width;
    const size_t end = (first + n) * width;

    for (size_t i = first * width; i < end; i++) {
        if (!(seen->depths[i] > 0 && seen->depths[i] < depths[i])) {
            continue;
        }
        depths[i] = seen->depths[i];
        if (plan->mode == VXD_RENDER_NORMAL) {
            pixels[i] = signed_normal(seen->normals + 3 * i);
        } else if (plan->mode != VXD_RENDER_DEPTH) {
            pixels[i] = lit_pixel(plan, seen, i);
        }
    }
}
