// SPDX-License-Identifier: Apache-2.0
/* A ray through a tree, in single precision; the rule stands at the head of render.h.
 *
 * Axes of negative direction are mirrored at the scene's middle, so that everything goes
 * upwards: voxel v is side - 1 - v there and plane k is side - k. A plane's t needs a difference
 * of whole numbers below 2^24, which is exact, so t is off by three roundings of itself, however
 * large the scene.
 *
 * A cube is entered by the last crossing (t, axis). Which of its octants the ray is in then is
 * known from the three middle planes: those that come no later than that crossing lie behind. The
 * cube is left by the first of the three planes ahead. The highest bit that changes in the
 * place says how far up the tree to go. */
#ifndef VXD_GPU_RENDER_TRACE_MATH_H
#define VXD_GPU_RENDER_TRACE_MATH_H

#include "gpu/svdag/node/node_math.h"

enum {
    VXD_RENDER_START = 3, /* axis of no crossing: later than any crossing at t = 0 */
    VXD_RENDER_NODES = VXD_SVDAG_MAX_DEPTH - VXD_SVDAG_LEAF_HEIGHT
};

/* Where rays begin: a voxel, and the offset from its low corner. */
struct vxd_render_origin {
    int32_t cell[3];
    float offset[3];
};

/* Mirrored. */
struct vxd_render_ray {
    float cell[3]; /* whole numbers */
    float offset[3];
    float inverse[3]; /* t a voxel of the axis: above 0 and finite */
    int flip;         /* the mirrored axes, as an octant: x*4 + y*2 + z */
};

/* How far a ray is: in the cube around `place`, mirrored, since its crossing (t, axis). */
struct vxd_render_walk {
    uint32_t place[3];
    float t;
    int axis;
};

/* A box of voxels, half open: what is outside is not there. */
struct vxd_render_clip {
    uint32_t low[3], high[3];
};

/* A limit to what is looked at. */
struct vxd_render_limit {
    float least;                        /* nothing is hit before this t, as is known */
    float most;                         /* crossings after this t are none */
    float detail_base, detail_slope;    /* as in struct vxd_render_params */
    const struct vxd_render_clip *clip; /* NULL: all is there */
};

struct vxd_render_hit {
    float t;
    int axis;         /* of the face it came in by; VXD_RENDER_START: it began inside */
    int32_t voxel[3]; /* low corner of the cube that was hit, of the scene */
    int height;       /* its side is 2^height; 0 without a limit of detail */
    uint32_t value;   /* material */
};

VXD_HD float vxd_render_sqrt(float a)
{
#if defined(__CUDA_ARCH__)
    return __fsqrt_rn(a);
#else
    return sqrtf(a);
#endif
}

/* Exact for k < 2^23. Devices convert integers at an eighth of the rate at which they add. */
VXD_HD float vxd_render_float(uint32_t k)
{
#if defined(__CUDA_ARCH__)
    return __fsub_rn(__uint_as_float(0x4b000000u | k), 8388608.0f);
#else
    return (float)(int32_t)k;
#endif
}

VXD_HD int vxd_render_bits(uint32_t v)
{
#if defined(__CUDA_ARCH__)
    return 32 - __clz((int)v);
#else
    return 32 - __builtin_clz(v);
#endif
}

/* Whether scenes do not track free space and pictures have no limit of detail, as a .cu says that
 * defines VXD_RENDER_PLAIN: then nothing is compiled that would take registers for either. */
VXD_HD bool vxd_render_is_plain(void)
{
#if defined(VXD_RENDER_PLAIN)
    return true;
#else
    return false;
#endif
}

/* How many bits of eight or fewer are 1. */
VXD_HD int vxd_render_ones(uint32_t v)
{
#if defined(__CUDA_ARCH__)
    return __popc(v);
#else
    return vxd_svdag_popc(v);
#endif
}

VXD_HD struct vxd_render_ray vxd_render_ray_of(const struct vxd_render_origin *origin,
                                               const float direction[3], int depth)
{
    struct vxd_render_ray ray;

    ray.flip = 0;
    for (int axis = 0; axis < 3; axis++) {
        float d = direction[axis];
        bool is_down = d < 0;
        float size = is_down ? -d : d;
        int32_t cell = origin->cell[axis];

        ray.flip |= is_down ? 4 >> axis : 0;
        ray.cell[axis] = (float)(is_down ? ((int32_t)1 << depth) - cell : cell);
        ray.offset[axis] = is_down ? -origin->offset[axis] : origin->offset[axis];
        ray.inverse[axis] = vxd_divf(1.0f, size > 0x1p-60f ? size : 0x1p-60f);
    }
    return ray;
}

/* When it crosses plane k of an axis. */
VXD_HD float vxd_render_plane(const struct vxd_render_ray *ray, int axis, uint32_t k)
{
    return vxd_mulf(
        vxd_subf(vxd_subf(vxd_render_float(k), ray->cell[axis]), ray->offset[axis]),
        ray->inverse[axis]);
}

VXD_HD bool vxd_render_is_before(float t, int axis, float than, int than_axis)
{
    return (t < than) | ((t == than) & (axis < than_axis));
}

/* Enters the cube of side 2^height whose low corner is the walk's place, no earlier than by the
 * crossing that the walk has; false: the ray does not visit it from there on. */
VXD_HD bool vxd_render_enter(const struct vxd_render_ray *ray, int height,
                             struct vxd_render_walk *walk)
{
    uint32_t side = (uint32_t)1 << height;
    bool is_in = true;

    for (int axis = 0; axis < 3; axis++) {
        float t = vxd_render_plane(ray, axis, walk->place[axis]);
        bool is_later = vxd_render_is_before(walk->t, walk->axis, t, axis);

        walk->t = is_later ? t : walk->t;
        walk->axis = is_later ? axis : walk->axis;
    }
    for (int axis = 0; axis < 3; axis++) {
        is_in &= vxd_render_is_before(
            walk->t, walk->axis, vxd_render_plane(ray, axis, walk->place[axis] + side),
            axis);
    }
    return is_in;
}

/* Goes from a cube of this height into the octant that the ray is in; returns it, mirrored. */
VXD_HD int vxd_render_expand(const struct vxd_render_ray *ray, int height,
                             struct vxd_render_walk *walk)
{
    uint32_t half = (uint32_t)1 << (height - 1);
    int octant = 0;

    for (int axis = 0; axis < 3; axis++) {
        float t = vxd_render_plane(ray, axis, walk->place[axis] | half);
        bool is_behind = (t < walk->t) | ((t == walk->t) & (axis <= walk->axis));

        walk->place[axis] |= is_behind ? half : 0;
        octant |= is_behind ? 4 >> axis : 0;
    }
    return octant;
}

/* The octant, mirrored, that the walk's place is in, of a cube of this height. */
VXD_HD int vxd_render_octant(const struct vxd_render_walk *walk, int height)
{
    return vxd_svdag_octant(walk->place[0], walk->place[1], walk->place[2], height);
}

/* Leaves the cube of this height around the place, whose lower bits are 0. Returns the bits of
 * the place that changed. */
VXD_HD uint32_t vxd_render_leave(const struct vxd_render_ray *ray, int height,
                                 struct vxd_render_walk *walk)
{
    uint32_t side = (uint32_t)1 << height;
    float at[3];
    uint32_t changed = 0;

    for (int axis = 0; axis < 3; axis++) {
        at[axis] = vxd_render_plane(ray, axis, walk->place[axis] + side);
    }
    walk->axis = at[1] < at[0] ? 1 : 0;
    walk->t = at[1] < at[0] ? at[1] : at[0];
    walk->axis = at[2] < walk->t ? 2 : walk->axis;
    walk->t = at[2] < walk->t ? at[2] : walk->t;
    for (int axis = 0; axis < 3; axis++) {
        uint32_t next = walk->place[axis] + (walk->axis == axis ? side : 0);

        changed |= next ^ walk->place[axis];
        walk->place[axis] = next;
    }
    return changed;
}

VXD_HD void vxd_render_truncate(struct vxd_render_walk *walk, int height)
{
    uint32_t mask = ~(((uint32_t)1 << height) - 1);

    for (int axis = 0; axis < 3; axis++) {
        walk->place[axis] &= mask;
    }
}

/* Through a leaf whose low corner is the place, with the mask of its occupied voxels. True: the
 * place is an occupied voxel. False: it is beyond the leaf, and *changed is set. */
VXD_HD bool vxd_render_leaf(const struct vxd_render_ray *ray, uint64_t occupied,
                            struct vxd_render_walk *walk, uint32_t *changed)
{
    int octant = vxd_render_expand(ray, 2, walk);

    for (;;) {
        uint32_t octet = (uint32_t)(occupied >> (8 * (octant ^ ray->flip))) & 0xffu;

        if (octet == 0) {
            *changed = vxd_render_leave(ray, 1, walk);
        } else {
            int voxel = vxd_render_expand(ray, 1, walk);

            for (;;) {
                if ((octet >> (voxel ^ ray->flip) & 1u) != 0) {
                    return true;
                }
                *changed = vxd_render_leave(ray, 0, walk);
                if (*changed > 1) {
                    break;
                }
                voxel = vxd_render_octant(walk, 1);
            }
        }
        if (*changed > 3) {
            return false;
        }
        vxd_render_truncate(walk, 1);
        octant = vxd_render_octant(walk, 2);
    }
}

/* Occupied voxels of a leaf. */
VXD_HD uint64_t vxd_render_leaf_mask(const struct vxd_svdag_view *view, uint32_t ref)
{
    struct vxd_svdag_item leaf = vxd_svdag_leaf_item(view, ref);

    return vxd_render_is_plain() ? vxd_svdag_leaf_mask(leaf.words)
                                 : vxd_svdag_item_occupied_called(view, &leaf);
}

/* The material of the first occupied voxel of a cube that has one. */
VXD_SVDAG_RARE uint32_t vxd_render_first_value(const struct vxd_svdag_view *view,
                                               uint32_t ref, int height)
{
    for (; height > VXD_SVDAG_LEAF_HEIGHT && vxd_svdag_is_node(ref); height--) {
        uint32_t child = VXD_SVDAG_EMPTY;

        for (int octant = 0; octant < 8; octant++) {
            struct vxd_svdag_position tree_cube = {vxd_svdag_child_of(view, ref, octant),
                                                   0, 0, 0, height - 1};

            if ((vxd_svdag_position_states(view, &tree_cube) & VXD_SVDAG_OCCUPIED) != 0) {
                child = tree_cube.ref;
                break;
            }
        }
        ref = child;
    }
    if (!vxd_svdag_is_node(ref)) {
        return vxd_svdag_uniform_value(ref);
    }
    return vxd_svdag_tree_cube_value(view, ref,
                                     vxd_svdag_low_bit(vxd_render_leaf_mask(view, ref)));
}

/* Reports a hit of the cube of this height around the place; `ref` is the leaf's or the
 * uniform one's, or with a limit of detail what stands in the cube. */
VXD_HD void vxd_render_report(const struct vxd_svdag_view *view,
                              const struct vxd_render_ray *ray,
                              const struct vxd_render_walk *walk, uint32_t ref,
                              int height, struct vxd_render_hit *hit)
{
    uint32_t last = ((uint32_t)1 << view->depth) - ((uint32_t)1 << height);
    uint32_t voxel[3];

    for (int axis = 0; axis < 3; axis++) {
        voxel[axis] = (ray->flip >> (2 - axis) & 1) != 0 ? last - walk->place[axis]
                                                         : walk->place[axis];
        hit->voxel[axis] = (int32_t)voxel[axis];
    }
    hit->t = walk->t;
    hit->axis = walk->axis;
    hit->height = height;
    hit->value = !vxd_svdag_is_node(ref) ? vxd_svdag_uniform_value(ref)
                 : height == 0 || vxd_render_is_plain()
                     ? vxd_svdag_tree_cube_value(
                           view, ref, vxd_svdag_leaf_bit(voxel[0], voxel[1], voxel[2]))
                     : vxd_render_first_value(view, ref, height);
}

/* Whether a cube of this height that is reached at t is to be taken as one voxel. */
VXD_HD bool vxd_render_is_small(const struct vxd_render_limit *limit, int height, float t)
{
    return !vxd_render_is_plain() &&
           vxd_render_float((uint32_t)1 << height) <
               vxd_addf(limit->detail_base, vxd_mulf(t, limit->detail_slope));
}

/* Height of the voxel, in a uniform region of a height, that a ray hits: 0, or the largest cube
 * that is to be taken as one. */
VXD_HD int vxd_render_settle(const struct vxd_render_ray *ray,
                             const struct vxd_render_limit *limit, int height,
                             struct vxd_render_walk *walk)
{
    while (height > 0 && !vxd_render_is_small(limit, height, walk->t)) {
        vxd_render_expand(ray, height, walk);
        height--;
    }
    return height;
}

/* Moves a walk that has entered the scene on to where the ray enters the clip box, and sets when it
 * leaves that; false: it does not visit it. */
VXD_HD bool vxd_render_cut(const struct vxd_render_ray *ray,
                           const struct vxd_render_clip *clip, int depth,
                           struct vxd_render_walk *walk, float *end)
{
    uint32_t side = (uint32_t)1 << depth;
    bool is_in = true;

    *end = (float)INFINITY;
    for (int axis = 0; axis < 3; axis++) {
        bool is_down = (ray->flip >> (2 - axis) & 1) != 0;
        uint32_t k = is_down ? side - clip->high[axis] : clip->low[axis];
        float t = vxd_render_plane(ray, axis, k);
        bool is_later = vxd_render_is_before(walk->t, walk->axis, t, axis);

        walk->t = is_later ? t : walk->t;
        walk->axis = is_later ? axis : walk->axis;
    }
    for (int axis = 0; axis < 3; axis++) {
        bool is_down = (ray->flip >> (2 - axis) & 1) != 0;
        uint32_t k = is_down ? side - clip->low[axis] : clip->high[axis];
        float t = vxd_render_plane(ray, axis, k);

        is_in &= vxd_render_is_before(walk->t, walk->axis, t, axis);
        *end = t < *end ? t : *end;
    }
    return is_in;
}

VXD_HD bool vxd_render_is_within(const struct vxd_render_limit *limit, float t, float end)
{
    return (t <= limit->most) & (vxd_render_is_plain() || t < end);
}

/* The first occupied voxel. The inner nodes above a cube are kept in an array of the caller's,
 * that of height h at (h - 3) * stride. Where hit is NULL only whether there is one counts. */
VXD_HD bool vxd_render_trace(const struct vxd_svdag_view *view, uint32_t root,
                             const struct vxd_render_ray *ray,
                             const struct vxd_render_limit *limit, uint32_t *nodes,
                             int stride, struct vxd_render_hit *hit)
{
    /* What is crossed at `least` itself lies ahead. */
    struct vxd_render_walk walk = {
        {0, 0, 0}, limit->least, limit->least > 0 ? -1 : VXD_RENDER_START};
    uint32_t ref = root;
    int height = view->depth;
    float end = (float)INFINITY; /* the ray leaves the clip box then */

    if (!vxd_render_enter(ray, height, &walk)) {
        return false;
    }
    if (!vxd_render_is_plain() && limit->clip != NULL &&
        !vxd_render_cut(ray, limit->clip, height, &walk, &end)) {
        return false;
    }
    for (;;) {
        uint32_t changed;
        int above;

        while (height > VXD_SVDAG_LEAF_HEIGHT && vxd_svdag_is_node(ref)) {
            const uint32_t *words = vxd_svdag_words(view, ref);
            uint32_t head = words[0];
            int level = (height - VXD_SVDAG_LEAF_HEIGHT - 1) * stride;
            int octant;

            if (!vxd_render_is_plain() && (head & VXD_SVDAG_HAS_OCCUPIED) == 0) {
                ref = VXD_SVDAG_EMPTY; /* to a ray */
                break;
            }
            if (vxd_render_is_small(limit, height, walk.t)) {
                if (hit != NULL) {
                    vxd_render_report(view, ray, &walk, ref, height, hit);
                }
                return vxd_render_is_within(limit, walk.t, end);
            }
            nodes[level] = ref;
            octant = vxd_render_expand(ray, height, &walk) ^ ray->flip;
            ref = (head >> octant & 1u) == 0 ? VXD_SVDAG_EMPTY
                  : vxd_svdag_reads_split(view)
                      ? vxd_svdag_child_of(view, ref, octant)
                      : words[1 + vxd_render_ones(head & ((1u << octant) - 1))];
            height--;
        }
        if (vxd_svdag_is_node(ref)) {
            uint64_t occupied = vxd_render_leaf_mask(view, ref);
            bool is_small = (occupied != 0) & vxd_render_is_small(limit, height, walk.t);

            if (is_small || vxd_render_leaf(ray, occupied, &walk, &changed)) {
                if (hit != NULL) {
                    vxd_render_report(view, ray, &walk, ref, is_small ? height : 0, hit);
                }
                return vxd_render_is_within(limit, walk.t, end);
            }
        } else if (vxd_render_is_plain()
                       ? ref != VXD_SVDAG_EMPTY
                       : vxd_svdag_uniform_state(view, ref) == VXD_SVDAG_OCCUPIED) {
            if (hit != NULL) {
                height = vxd_render_settle(ray, limit, height, &walk);
                vxd_render_report(view, ray, &walk, ref, height, hit);
            }
            return vxd_render_is_within(limit, walk.t, end);
        } else {
            changed = vxd_render_leave(ray, height, &walk);
        }
        if ((changed >> view->depth != 0) | !vxd_render_is_within(limit, walk.t, end)) {
            return false;
        }
        height = vxd_render_bits(changed);
        above = (height - VXD_SVDAG_LEAF_HEIGHT - 1) * stride;
        ref = nodes[above];
        height--;
        vxd_render_truncate(&walk, height);
        ref = vxd_svdag_child_of(view, ref,
                                 vxd_render_octant(&walk, height + 1) ^ ray->flip);
    }
}

#endif
