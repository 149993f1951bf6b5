// SPDX-License-Identifier: Apache-2.0
/* CPU backend of pictures: tiles of 8 x 8 pixels on the pool. Rays from the eye, and those from
 * surfaces to the sun, go through the tree as packets (packet_cpu.c); the others one by one. Those
 * from the eye begin where their tile's beam ends. */
#include "gpu/render/beam_math.h"
#include "gpu/render/packet_cpu.h"

/* Light of the tile's samples, pixel by pixel. */
struct tile {
    const struct vxd_render_call *call;
    uint32_t x, y; /* its low corner in the picture */
    float start;   /* no ray from the eye hits anything before this t */
    uint32_t n_hits[VXD_RENDER_PACKET];
    struct vxd_render_light light[VXD_RENDER_PACKET];
    struct vxd_render_packet rays;
    struct vxd_render_packet shadows;
    struct vxd_render_surface surfaces[VXD_RENDER_PACKET];
};

static void set_rays(struct tile *tile, uint64_t active, uint32_t sample)
{
    const struct vxd_render_params *params = &tile->call->params;

    tile->rays.limit.least = tile->start;
    tile->rays.limit.most = (float)INFINITY;
    tile->rays.limit.detail_base = params->detail_base;
    tile->rays.limit.detail_slope = params->detail_slope;
    tile->rays.limit.clip = vxd_render_clip_of(params);
    vxd_render_packet_begin(&tile->rays);
    for (; active != 0; active &= active - 1) {
        int i = vxd_svdag_low_bit(active);
        uint32_t x = tile->x + (uint32_t)i % VXD_RENDER_TILE;
        uint32_t y = tile->y + (uint32_t)i / VXD_RENDER_TILE;
        struct vxd_render_origin origin;
        float direction[3];
        float at[2];

        vxd_render_place_sample(params, x, y, sample, at);
        vxd_render_direction(params, x, y, at, direction);
        vxd_render_origin_of(params, at, &origin);
        vxd_render_packet_add(&tile->rays, i, &origin, direction, tile->call->view.depth);
    }
}

/* Which of the surfaces that were hit the sun reaches. */
static uint64_t find_sunny(struct tile *tile, uint64_t outside)
{
    const struct vxd_render_call *call = tile->call;
    uint64_t turned = 0;
    uint64_t all = outside;

    if (!call->params.has_shadows || call->mode == VXD_RENDER_AO ||
        call->mode == VXD_RENDER_LABEL) {
        return outside;
    }
    vxd_render_packet_begin(&tile->shadows);
    tile->shadows.limit.least = 0;
    tile->shadows.limit.most = (float)INFINITY;
    tile->shadows.limit.detail_base = 0;
    tile->shadows.limit.detail_slope = 0;
    tile->shadows.limit.clip = vxd_render_clip_of(&call->params);
    for (; outside != 0; outside &= outside - 1) {
        int i = vxd_svdag_low_bit(outside);
        const struct vxd_render_surface *surface = &tile->surfaces[i];

        if (vxd_render_sun_cosine(&call->params, surface) > 0) {
            if (surface->detail > 0) {
                uint32_t nodes[VXD_RENDER_NODES];

                turned |= vxd_render_is_open(call, surface, call->params.sun,
                                             (float)INFINITY, nodes, 1)
                              ? 0
                              : (uint64_t)1 << i;
            } else {
                vxd_render_packet_add(&tile->shadows, i, &surface->origin,
                                      call->params.sun, call->view.depth);
            }
        }
    }
    return all & ~turned &
           ~vxd_render_packet_trace(&call->view, call->root, &tile->shadows, false);
}

static void add_light(struct tile *tile, uint64_t active, uint64_t hits, uint32_t sample)
{
    const struct vxd_render_call *call = tile->call;
    uint64_t outside = 0;
    uint64_t sunny;
    uint32_t nodes[VXD_RENDER_NODES];

    for (uint64_t rest = hits; rest != 0; rest &= rest - 1) {
        int i = vxd_svdag_low_bit(rest);

        if (tile->rays.hits[i].axis != VXD_RENDER_START) {
            vxd_render_surface_of(&tile->rays.origins[i], tile->rays.directions[i],
                                  &tile->rays.hits[i], &tile->surfaces[i]);
            outside |= (uint64_t)1 << i;
        }
    }
    sunny = find_sunny(tile, outside);
    for (; active != 0; active &= active - 1) {
        int i = vxd_svdag_low_bit(active);
        uint32_t x = tile->x + (uint32_t)i % VXD_RENDER_TILE;
        uint32_t y = tile->y + (uint32_t)i / VXD_RENDER_TILE;

        if ((hits >> i & 1) == 0) {
            vxd_render_add(&tile->light[i],
                           vxd_render_sky(&call->params, tile->rays.directions[i]));
            continue;
        }
        tile->n_hits[i]++;
        vxd_render_add(
            &tile->light[i],
            vxd_render_shade(call, call->mode, &tile->rays.hits[i], &tile->surfaces[i],
                             (sunny >> i & 1) != 0,
                             vxd_render_key(&call->params, x, y, 1u + (sample & 31u)),
                             nodes, 1));
    }
}

/* All modes of colours but PATH. */
static void draw_lit(struct tile *tile, uint64_t active)
{
    uint32_t samples = tile->call->params.samples;

    memset(tile->n_hits, 0, sizeof tile->n_hits);
    memset(tile->light, 0, sizeof tile->light);
    for (uint32_t sample = 0; sample < samples; sample++) {
        uint64_t hits;

        set_rays(tile, active, sample);
        hits = vxd_render_packet_trace(&tile->call->view, tile->call->root, &tile->rays,
                                       true);
        add_light(tile, active, hits, sample);
    }
}

static uint32_t pixel_of(struct tile *tile, int i, uint64_t hits)
{
    const struct vxd_render_call *call = tile->call;
    uint32_t nodes[VXD_RENDER_NODES];

    if (call->mode == VXD_RENDER_PATH) {
        return vxd_render_pixel(call, call->mode, tile->x + (uint32_t)i % VXD_RENDER_TILE,
                                tile->y + (uint32_t)i / VXD_RENDER_TILE, nodes, 1);
    }
    if (vxd_render_is_colour(call->mode)) {
        return vxd_render_pack(tile->light[i], call->params.samples, tile->n_hits[i]);
    }
    return vxd_render_fact(call, call->mode,
                           (hits >> i & 1) != 0 ? &tile->rays.hits[i] : NULL,
                           tile->rays.directions[i]);
}

/* The tile's pixels that the part has. */
static uint64_t active_of(const struct tile *tile)
{
    const struct vxd_render_rect *part = &tile->call->part;
    uint32_t n_x = part->x + part->width - tile->x;
    uint32_t n_y = part->y + part->height - tile->y;
    uint64_t active = 0;

    for (uint32_t y = 0; y < VXD_RENDER_TILE && y < n_y; y++) {
        active |= (uint64_t)(n_x < VXD_RENDER_TILE ? (1u << n_x) - 1 : 0xffu)
                  << (VXD_RENDER_TILE * y);
    }
    return active;
}

static void draw_tile(struct tile *tile)
{
    const struct vxd_render_call *call = tile->call;
    uint64_t active = active_of(tile);
    uint64_t hits = 0;
    uint32_t nodes[2 * VXD_RENDER_NODES];

    tile->start = call->mode != VXD_RENDER_PATH && vxd_render_has_beams(&call->params)
                      ? vxd_render_tile_start(call, tile->x, tile->y, nodes, 1)
                      : 0;
    if (!vxd_render_is_colour(call->mode)) {
        set_rays(tile, active, 0);
        hits = vxd_render_packet_trace(&call->view, call->root, &tile->rays, true);
    } else if (call->mode != VXD_RENDER_PATH) {
        draw_lit(tile, active);
    }
    for (; active != 0; active &= active - 1) {
        int i = vxd_svdag_low_bit(active);
        size_t x = tile->x + (uint32_t)i % VXD_RENDER_TILE;
        size_t y = tile->y + (uint32_t)i / VXD_RENDER_TILE;

        call->pixels[y * call->params.width + x] = pixel_of(tile, i, hits);
    }
}

static void draw_piece(void *context, size_t begin, size_t end)
{
    const struct vxd_render_call *call = context;
    size_t n_x = (call->part.width - 1) / VXD_RENDER_TILE + 1;
    /* Lanes of a packet without a ray are computed and not used. */
    struct tile tile = {.call = call};

    for (size_t i = begin; i < end; i++) {
        tile.x = call->part.x + (uint32_t)(i % n_x) * VXD_RENDER_TILE;
        tile.y = call->part.y + (uint32_t)(i / n_x) * VXD_RENDER_TILE;
        draw_tile(&tile);
    }
}

static enum vxd_status draw_job(struct vxd_pool *pool, const void *context,
                                struct vxd_err *err)
{
    struct vxd_render_call call = *(const struct vxd_render_call *)context;
    size_t n_x = (call.part.width - 1) / VXD_RENDER_TILE + 1;
    size_t n_y = (call.part.height - 1) / VXD_RENDER_TILE + 1;

    (void)err;
    vxd_parallel_for(pool, n_x * n_y, 1, draw_piece, &call);
    return VXD_OK;
}

enum vxd_status vxd_render_draw_cpu(struct vxd_queue *queue,
                                    const struct vxd_render_call *call,
                                    struct vxd_err *err)
{
    return vxd_queue_push(queue, draw_job, call, sizeof *call, err);
}
