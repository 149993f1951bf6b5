// SPDX-License-Identifier: Apache-2.0
/* How far the rays of a tile of 8 x 8 pixels cannot hit anything: a beam.
 *
 * Of each axis the beam knows the least and the greatest origin and inverse of its rays. Rounding
 * keeps order, so the t at which any of its rays crosses a plane lies between two floats, exactly,
 * and a cube that no t of the beam visits is visited by none of its rays. The beam goes through the
 * tree depth first, its near octants first, and keeps the earliest t at which a ray could enter a
 * cube that has an occupied voxel; cubes that are entered later are skipped, those that are smaller
 * than the tile there are not looked into.
 *
 * A ray that begins at that t, rather than at its origin, comes to the same crossings from there on
 * (vxd_render_enter), so pictures are the same bit for bit.
 *
 * Source: Laine and Karras, Efficient Sparse Voxel Octrees, 2010 (beam optimization). Theirs takes
 * four rays through the tile's corners and may miss what lies between them; this bound holds. */
#ifndef VXD_GPU_RENDER_BEAM_MATH_H
#define VXD_GPU_RENDER_BEAM_MATH_H

#include "gpu/render/shade_math.h"

/* Mirrored. */
struct vxd_render_beam {
    /* Of each axis the greatest origin and the least inverse: at planes ahead not after any ray. */
    struct vxd_render_ray first;
    /* The least origin and the greatest inverse: not before any ray. */
    struct vxd_render_ray last;
    /* Of the tile at t, voxels: base + t * slope. */
    float width_base, width_slope;
};

/* Whether a ray's origin on an axis is beyond another's. */
VXD_HD bool vxd_render_is_beyond(const struct vxd_render_ray *a,
                                 const struct vxd_render_ray *b, int axis)
{
    return (a->cell[axis] > b->cell[axis]) |
           ((a->cell[axis] == b->cell[axis]) & (a->offset[axis] > b->offset[axis]));
}

/* Whether beams bound the rays of tiles: those of planes, which spread evenly. With a limit of detail
 * what is hit depends on where a ray comes from. */
VXD_HD bool vxd_render_has_beams(const struct vxd_render_params *params)
{
    return params->kind < VXD_RENDER_EQUIRECTANGULAR && params->detail_base <= 0 &&
           params->detail_slope <= 0;
}

/* The ray through a corner of the tile at pixel (x, y). */
VXD_HD struct vxd_render_ray vxd_render_corner_ray(const struct vxd_render_params *params,
                                                   int depth, uint32_t x, uint32_t y,
                                                   uint32_t corner)
{
    float at[2] = {vxd_render_float(x + (corner & 1u) * VXD_RENDER_BEAM),
                   vxd_render_float(y + (corner >> 1) * VXD_RENDER_BEAM)};
    struct vxd_render_origin origin;
    float direction[3];

    vxd_render_direction(params, x, y, at, direction);
    vxd_render_origin_of(params, at, &origin);
    return vxd_render_ray_of(&origin, direction, depth);
}

/* Widens a beam so that it encloses a ray that is mirrored as it is. */
VXD_HD void vxd_render_enclose(struct vxd_render_beam *beam,
                               const struct vxd_render_ray *ray)
{
    for (int axis = 0; axis < 3; axis++) {
        float least = beam->first.inverse[axis];
        float most = beam->last.inverse[axis];

        if (vxd_render_is_beyond(ray, &beam->first, axis)) {
            beam->first.cell[axis] = ray->cell[axis];
            beam->first.offset[axis] = ray->offset[axis];
        }
        if (vxd_render_is_beyond(&beam->last, ray, axis)) {
            beam->last.cell[axis] = ray->cell[axis];
            beam->last.offset[axis] = ray->offset[axis];
        }
        beam->first.inverse[axis] =
            ray->inverse[axis] < least ? ray->inverse[axis] : least;
        beam->last.inverse[axis] = ray->inverse[axis] > most ? ray->inverse[axis] : most;
    }
}

/* The beam of the tile at pixel (x, y), for pinhole and orthographic cameras; false: it has rays
 * that are mirrored differently. Directions and origins grow or shrink with the position in the
 * picture on each axis, so those at the tile's corners enclose all. */
VXD_HD bool vxd_render_beam_of(const struct vxd_render_params *params, int depth,
                               uint32_t x, uint32_t y, struct vxd_render_beam *beam)
{
    float wide = 0;

    beam->first = vxd_render_corner_ray(params, depth, x, y, 0);
    beam->last = beam->first;
    for (uint32_t corner = 1; corner < 4; corner++) {
        struct vxd_render_ray ray = vxd_render_corner_ray(params, depth, x, y, corner);

        if (ray.flip != beam->first.flip) {
            return false;
        }
        vxd_render_enclose(beam, &ray);
    }
    for (int axis = 0; axis < 3; axis++) {
        float size = params->direction_x[axis];

        size = size < 0 ? -size : size;
        wide = size > wide ? size : wide;
    }
    wide = vxd_mulf(wide, VXD_RENDER_BEAM);
    beam->width_base = params->kind == VXD_RENDER_ORTHOGRAPHIC ? wide : 0.0f;
    beam->width_slope = params->kind == VXD_RENDER_ORTHOGRAPHIC ? 0.0f : wide;
    return true;
}

/* A mask of octants, mirrored. */
VXD_HD uint32_t vxd_render_mirror(uint32_t mask, int flip)
{
    mask = (flip & 1) != 0 ? (mask & 0x55u) << 1 | (mask >> 1 & 0x55u) : mask;
    mask = (flip & 2) != 0 ? (mask & 0x33u) << 2 | (mask >> 2 & 0x33u) : mask;
    return (flip & 4) != 0 ? (mask & 0x0fu) << 4 | (mask >> 4 & 0x0fu) : mask;
}

/* Which octants of an inner node, mirrored, have children that rays of the beam may visit. */
VXD_HD uint32_t vxd_render_beam_visits(const struct vxd_svdag_view *view,
                                       const struct vxd_render_beam *beam, uint32_t ref,
                                       int height, const uint32_t place[3])
{
    uint32_t head = vxd_svdag_words(view, ref)[0];
    uint32_t half = (uint32_t)1 << (height - 1);
    uint32_t present = vxd_render_mirror(head & 0xffu, beam->first.flip);
    float in[3][2];
    float out[3][2];
    uint32_t visits = 0;

    for (int axis = 0; axis < 3; axis++) {
        for (uint32_t k = 0; k < 2; k++) {
            in[axis][k] = vxd_render_plane(&beam->first, axis, place[axis] + k * half);
            out[axis][k] =
                vxd_render_plane(&beam->last, axis, place[axis] + (k + 1) * half);
        }
    }
    for (int octant = 0; octant < 8; octant++) {
        int x = octant >> 2;
        int y = octant >> 1 & 1;
        int z = octant & 1;
        float late = in[0][x] > in[1][y] ? in[0][x] : in[1][y];
        float soon = out[0][x] < out[1][y] ? out[0][x] : out[1][y];

        late = in[2][z] > late ? in[2][z] : late;
        late = late > 0 ? late : 0.0f;
        soon = out[2][z] < soon ? out[2][z] : soon;
        visits |= late <= soon ? 1u << octant : 0;
    }
    return (head & VXD_SVDAG_HAS_OCCUPIED) != 0 ? visits & present : 0;
}

/* The earliest t at which a ray of the beam may enter an octant of a node, and its low corner. */
VXD_HD float vxd_render_beam_enter(const struct vxd_render_beam *beam, int height,
                                   int octant, const uint32_t place[3], uint32_t low[3])
{
    float in = 0;

    for (int axis = 0; axis < 3; axis++) {
        float t;

        low[axis] = place[axis] | ((uint32_t)octant >> (2 - axis) & 1u) << (height - 1);
        t = vxd_render_plane(&beam->first, axis, low[axis]);
        in = t > in ? t : in;
    }
    return in;
}

/* Before which t no ray of the beam hits anything: 0 where that is not known, infinite where they
 * hit nothing at all. `nodes` holds two words for each height of inner nodes: the node, and what
 * of it is still to be visited. */
VXD_HD float vxd_render_beam_start(const struct vxd_svdag_view *view, uint32_t root,
                                   const struct vxd_render_beam *beam, uint32_t *nodes,
                                   int stride)
{
    uint32_t place[3] = {0, 0, 0};
    float best = (float)INFINITY;
    int height = view->depth;
    uint32_t ref = root;
    uint32_t rest;

    if (!vxd_svdag_is_node(root) || height <= VXD_SVDAG_LEAF_HEIGHT) {
        return 0;
    }
    rest = vxd_render_beam_visits(view, beam, ref, height, place);
    for (;;) {
        int level = 2 * (height - VXD_SVDAG_LEAF_HEIGHT - 1) * stride;
        uint32_t half = (uint32_t)1 << (height - 1);
        uint32_t low[3];
        uint32_t child;
        float in;
        int octant;

        if (rest == 0) {
            if (height == view->depth) {
                return best;
            }
            for (int axis = 0; axis < 3; axis++) {
                place[axis] &= ~((half << 2) - 1);
            }
            height++;
            ref = nodes[level + 2 * stride];
            rest = nodes[level + 3 * stride];
            continue;
        }
        octant = vxd_svdag_low_bit(rest);
        rest &= rest - 1;
        in = vxd_render_beam_enter(beam, height, octant, place, low);
        if (in >= best) {
            continue;
        }
        child = vxd_svdag_child_of(view, ref, octant ^ beam->first.flip);
        if (!vxd_svdag_is_node(child)) {
            best = vxd_svdag_uniform_state(view, child) == VXD_SVDAG_OCCUPIED ? in : best;
        } else if (height - 1 == VXD_SVDAG_LEAF_HEIGHT ||
                   vxd_render_float(half) <
                       vxd_addf(beam->width_base, vxd_mulf(in, beam->width_slope))) {
            best = in;
        } else {
            nodes[level] = ref;
            nodes[level + stride] = rest;
            ref = child;
            height--;
            for (int axis = 0; axis < 3; axis++) {
                place[axis] = low[axis];
            }
            rest = vxd_render_beam_visits(view, beam, ref, height, place);
        }
    }
}

/* Before which t the rays of the tile at pixel (x, y) hit nothing. Two words of nodes a height. */
VXD_HD float vxd_render_tile_start(const struct vxd_render_call *call, uint32_t x,
                                   uint32_t y, uint32_t *nodes, int stride)
{
    struct vxd_render_beam beam;

    return vxd_render_beam_of(&call->params, call->view.depth, x, y, &beam)
               ? vxd_render_beam_start(&call->view, call->root, &beam, nodes, stride)
               : 0.0f;
}

#endif
