// SPDX-License-Identifier: Apache-2.0
/* Which voxels a ray visits, and the first occupied one of a tree.
 *
 * The rule. A direction d is scaled by a power of two, so that its largest component has
 * magnitude 1 to 2; length = sqrt(dx dx + dy dy + dz dz). Plane k of an axis is crossed at
 *     t = (k - origin) * (length / d),
 * voxels along the ray, in double, one rounding an operation; never where d is 0 or length / d
 * or t overflows. The ray begins in voxel floor(origin), wherever that is, and crosses the
 * planes ahead of it one by one in ascending t; at equal t those of x before those of y before
 * those of z. Crossing plane k upwards leads into voxel k, downwards into voxel k - 1. It
 * visits the voxels of the scene that it is in between two crossings, and enters each at the t
 * of the crossing that led there (0 where it begins), also where that takes no length.
 *
 * As the planes of an axis come in order, a ray is in a voxel after a crossing (t, axis)
 * exactly if the plane behind it on each axis was crossed before and the one ahead was not.
 * So whole cubes are left at once, by the first of the three planes ahead of the cube. Which
 * voxel of the cube's side it then is in, single precision tells: how far it is from the cube's
 * end on the other axes, in voxels, and how far off that may be. Where that is too near to a
 * plane to tell, and only there, the planes are asked: by halves, a bit a time. The voxels are
 * those that single steps would visit, to the bit.
 *
 * Axes of negative direction are mirrored at 0: voxel v is -1 - v there (the bits of v, turned
 * over) and plane k is -k, so that everything goes upwards; changes of sign round nothing.
 *
 * source  Amanatides and Woo, A Fast Voxel Traversal Algorithm, 1987 (the single steps);
 *         Laine and Karras, Efficient Sparse Voxel Octrees, 2010, section 2 (the mirror) */
#ifndef VXD_GPU_SVDAG_QUERY_RAY_MATH_H
#define VXD_GPU_SVDAG_QUERY_RAY_MATH_H

#include <string.h>

#include "gpu/svdag/node/node_math.h"
#include "gpu/svdag/query/query.h"

enum {
    VXD_SVDAG_RAY_START = -1 /* axis of no crossing */
};

/* No array of it is indexed by what only a running ray knows: devices keep it in registers. */
struct vxd_svdag_ray {
    double origin[3];  /* mirrored */
    double inverse[3]; /* voxels along the ray a voxel of the axis; infinite: never */
    float rate[3];     /* voxels of the axis a voxel along the ray, nearly; -1: none */
    float slack;       /* voxels by which doubles may be off on any axis */
    int flip;          /* the mirrored axes, as an octant: x*4 + y*2 + z */
    int axis;          /* of the last crossing, */
    double t;          /* which was then */
    double most;       /* crossings after this are none */
    int32_t place[3];  /* the mirrored voxel it is in */
};

/* Exact. Devices convert to double at a quarter of the rate at which they add. */
VXD_HD double vxd_svdag_ray_double(int32_t k)
{
#if defined(__CUDA_ARCH__)
    /* The low bits of 2^52 + 2^31 + k. */
    return __dadd_rn(__hiloint2double(0x43300000, k ^ (int)0x80000000),
                     -4503601774854144.0);
#else
    return (double)k;
#endif
}

/* How many bits a number has, which is not 0. */
VXD_HD int vxd_svdag_ray_bits(uint32_t v)
{
#if defined(__CUDA_ARCH__)
    return 32 - __clz((int)v);
#else
    return 32 - __builtin_clz(v);
#endif
}

/* How many of them are 1. */
VXD_HD int vxd_svdag_ray_ones(uint32_t v)
{
#if defined(__CUDA_ARCH__)
    return __popc(v);
#else
    return vxd_svdag_popc(v);
#endif
}

VXD_HD bool vxd_svdag_ray_is_down(const struct vxd_svdag_ray *ray, int axis)
{
    return (ray->flip >> (2 - axis) & 1) != 0;
}

/* When it crosses plane k of an axis. */
VXD_HD double vxd_svdag_ray_plane(const struct vxd_svdag_ray *ray, int axis, int32_t k)
{
    return vxd_muld(vxd_addd(vxd_svdag_ray_double(k), -ray->origin[axis]),
                    ray->inverse[axis]);
}

/* Whether it crosses plane k of an axis before the crossing (t, by) of another axis. */
VXD_HD bool vxd_svdag_ray_passed(const struct vxd_svdag_ray *ray, int axis, int32_t k,
                                 double t, int by)
{
    double at = vxd_svdag_ray_plane(ray, axis, k);

    return (at < t) | ((at == t) & (axis < by));
}

/* Whether a number is infinite, of either sign, by its bits: GCC 13.3 takes a quotient whose
 * divisor is above 0 for finite at -O3, though it may overflow, and leaves the comparison out. */
VXD_HD bool vxd_svdag_ray_is_infinite(double number)
{
    uint64_t bits;

    memcpy(&bits, &number, sizeof bits);
    return bits << 1 == UINT64_C(0x7ff) << 53;
}

/* Makes a ray; false where something is not finite or has no direction. A NULL range is
 * none. */
VXD_HD bool vxd_svdag_ray_init(struct vxd_svdag_ray *ray, const double origin[3],
                               const double direction[3], const double *max_range)
{
    double d[3] = {direction[0], direction[1], direction[2]};
    double from[3] = {origin[0], origin[1], origin[2]};
    double most = max_range != NULL ? *max_range : (double)INFINITY;
    double largest = fmax(fmax(fabs(d[0]), fabs(d[1])), fabs(d[2]));
    double length;
    bool is_good = (largest > 0) & (most >= 0);

    /* Without branches, so that nothing is read only once something else was looked at. */
    for (int axis = 0; axis < 3; axis++) {
        is_good = is_good & (fabs(d[axis]) < (double)INFINITY) &
                  (fabs(from[axis]) < (double)INFINITY);
    }
    if (!is_good) {
        return false;
    }
    /* Elsewhere the scale is lost in the quotients, so that it need not be applied. */
    if (largest < 0x1p-400 || largest > 0x1p400) {
        int exponent = ilogb(largest);

        for (int axis = 0; axis < 3; axis++) {
            d[axis] = scalbn(d[axis], -exponent);
        }
    }
    length = sqrt(vxd_addd(vxd_addd(vxd_muld(d[0], d[0]), vxd_muld(d[1], d[1])),
                           vxd_muld(d[2], d[2])));
    ray->most = most;
    ray->flip = 0;
    for (int axis = 0; axis < 3; axis++) {
        double size = fabs(d[axis]);
        double inverse = size > 0 ? length / size : (double)INFINITY;
        /* Of an axis whose planes are never crossed none is at 0 voxels and infinitely far. */
        bool is_endless = vxd_svdag_ray_is_infinite(inverse);
        bool is_down = d[axis] < 0 && !is_endless;

        ray->flip |= is_down ? 4 >> axis : 0;
        ray->origin[axis] = is_down ? -from[axis] : from[axis];
        ray->inverse[axis] = inverse;
        ray->rate[axis] = is_endless ? -1.0f : 1.0f / (float)inverse;
    }
    return true;
}

/* The mirrored voxel where it begins, or the scene's first on the axis where that is before it:
 * planes up to there lie behind. Of a ray that is in the scene. */
VXD_HD int32_t vxd_svdag_ray_first(const struct vxd_svdag_ray *ray, int axis, int depth)
{
    bool is_down = vxd_svdag_ray_is_down(ray, axis);
    double side = (double)((int32_t)1 << depth);
    double voxel = is_down ? -1 - floor(-ray->origin[axis]) : floor(ray->origin[axis]);

    return (int32_t)fmax(voxel, is_down ? -side : 0.0);
}

/* Puts a ray into the voxel in which it is after its last crossing, of the cube of side 2^height
 * around its place; on that crossing's axis it is in the first one, as no plane behind that of
 * the crossing was passed. */
VXD_HD void vxd_svdag_ray_settle(struct vxd_svdag_ray *ray, int height, int depth)
{
    int32_t mask = (int32_t)(((uint32_t)1 << height) - 1);

    for (int axis = 0; axis < 3; axis++) {
        int32_t first = vxd_svdag_ray_first(ray, axis, depth);
        int32_t at = ray->place[axis] & ~mask;

        for (int32_t bit = (int32_t)1 << height >> 1; bit != 0; bit >>= 1) {
            int32_t half = at | bit;
            bool is_past = (half <= first) |
                           vxd_svdag_ray_passed(ray, axis, half, ray->t, ray->axis);

            at = is_past ? half : at;
        }
        ray->place[axis] = at;
    }
}

/* Puts the ray into the first voxel of a scene that it visits; false: there is none. */
VXD_HD bool vxd_svdag_ray_enter(struct vxd_svdag_ray *ray, int depth)
{
    int32_t side = (int32_t)1 << depth;
    double farthest = 0;

    ray->t = 0;
    ray->axis = VXD_SVDAG_RAY_START;
    for (int axis = 0; axis < 3; axis++) {
        /* By the scene's own voxels: a plane belongs to the voxel above it. */
        bool is_down = vxd_svdag_ray_is_down(ray, axis);
        double voxel = floor(is_down ? -ray->origin[axis] : ray->origin[axis]);
        bool is_below = voxel < 0;
        bool is_above = voxel >= (double)side;

        if (is_down ? is_below : is_above) {
            return false;
        }
        if (is_below || is_above) {
            double t = vxd_svdag_ray_plane(ray, axis, is_down ? -side : 0);

            /* The last of the planes that it has to cross; among equals the later axis. */
            if (!(t < (double)INFINITY)) {
                return false;
            }
            if (ray->axis == VXD_SVDAG_RAY_START || t >= ray->t) {
                ray->t = t;
                ray->axis = axis;
            }
        } else {
            ray->place[axis] = is_down ? -1 - (int32_t)voxel : (int32_t)voxel;
        }
        farthest = fmax(farthest, fabs(ray->origin[axis]));
    }
    /* Times are of two roundings each: four of 2^-53 of what lies between a plane and the
     * origin. */
    ray->slack = (float)((farthest + (double)side) * 0x1p-49);
    if (ray->axis == VXD_SVDAG_RAY_START) {
        return true;
    }
    for (int axis = 0; axis < 3; axis++) {
        ray->place[axis] = vxd_svdag_ray_is_down(ray, axis) ? -side : 0;
        if (vxd_svdag_ray_passed(ray, axis, ray->place[axis] + side, ray->t, ray->axis)) {
            return false;
        }
    }
    vxd_svdag_ray_settle(ray, depth, depth);
    return ray->t <= ray->most;
}

/* Whole voxels of a distance, and what is left of one. Of 2^22 voxels or more, and of what is
 * not finite, *rest is such that nobody takes it for the middle of a voxel. */
VXD_HD int32_t vxd_svdag_ray_whole(float distance, float *rest)
{
#if defined(__CUDA_ARCH__)
    float shifted = __fadd_rz(distance, 8388608.0f); /* its low bits are the whole */

    *rest = distance - (shifted - 8388608.0f);
    return __float_as_int(shifted);
#else
    int32_t whole = distance >= 0 && distance < 0x1p22f ? (int32_t)distance : 0;

    *rest = whole != 0 || distance < 1 ? distance - (float)whole : 0.0f;
    return whole;
#endif
}

/* Leaves the cube of side 2^height around the ray's place. Returns which bits of the place
 * changed, on any axis: the highest is that of the height at which it went on, 2^depth or more
 * where it left the scene; 0 where it comes to an end in the cube. Where *is_sure is false, the
 * low `height` bits of the place are still to be settled. */
VXD_HD uint32_t vxd_svdag_ray_leave(struct vxd_svdag_ray *ray, int height, bool *is_sure)
{
    int32_t mask = (int32_t)(((uint32_t)1 << height) - 1);
    uint32_t changed = 0;
    double at[3];
    double t;
    int by;

    for (int axis = 0; axis < 3; axis++) {
        at[axis] = vxd_svdag_ray_plane(ray, axis, (ray->place[axis] | mask) + 1);
    }
    t = at[1] < at[0] ? at[1] : at[0];
    by = at[1] < at[0] ? 1 : 0;
    by = at[2] < t ? 2 : by;
    t = at[2] < t ? at[2] : t;
    *is_sure = true;
    for (int axis = 0; axis < 3; axis++) {
        int32_t from = ray->place[axis];
        int32_t last = from | mask;
        float left = (float)(at[axis] - t) * ray->rate[axis];
        float rest;
        int32_t to = last - (vxd_svdag_ray_whole(left, &rest) & mask);
        /* Three roundings of 2^-24 each are less than 2^-21. Not of what is not finite. */
        bool is_clear = fabsf(rest - 0.5f) + (left * 0x1p-21f + ray->slack) < 0.5f;
        bool stays = ray->rate[axis] < 0;

        to = axis == by ? last + 1 : stays ? from : to;
        *is_sure = *is_sure & (is_clear | stays | (axis == by));
        changed |= (uint32_t)(from ^ to);
        ray->place[axis] = to;
    }
    *is_sure = *is_sure | (height == 0);
    ray->t = t;
    ray->axis = by;
    return ((t < (double)INFINITY) & (t <= ray->most)) ? changed : 0;
}

/* Octant of the cube around the ray's place, of the scene and not of the mirrored one. */
VXD_HD int vxd_svdag_ray_octant(const struct vxd_svdag_ray *ray, int height)
{
    return ray->flip ^ vxd_svdag_octant((uint32_t)ray->place[0], (uint32_t)ray->place[1],
                                        (uint32_t)ray->place[2], height);
}

/* Of the eight voxels of an octant of a leaf those that are set, or 0 where none of them is
 * occupied, as far as is known at once. Where values have 4 bits and may be FREE, *nibbles
 * are theirs. */
VXD_HD uint32_t vxd_svdag_ray_octet(const struct vxd_svdag_view *view,
                                    const struct vxd_svdag_item *leaf, int octant,
                                    uint32_t *nibbles)
{
    uint32_t low = leaf->words[0];
    uint32_t high = leaf->words[1];
    uint32_t half = octant < 4 ? low : high;
    int shift = (octant & 3) * 8;
    uint32_t set = half >> shift & 0xffu;

    if (set == 0 || view->free_value < 0) {
        return set;
    }
    if (view->value_bits == 1) {
        return set & ~(leaf->rest[octant >> 2] >> shift);
    }
    if (view->value_bits == 4) {
        int n = vxd_svdag_ray_ones(set);
        int rank = (octant < 4 ? 0 : vxd_svdag_ray_ones(low)) +
                   vxd_svdag_ray_ones(half & ((1u << shift) - 1));
        uint32_t free = (uint32_t)view->free_value * 0x11111111u;

        *nibbles = vxd_svdag_leaf_nibbles(leaf, rank, n);
        return (*nibbles ^ free) << (32 - 4 * n) == 0 ? 0 : set;
    }
    return vxd_svdag_is_uniform(leaf->rest[0]) &&
                   vxd_svdag_uniform_value(leaf->rest[0]) == (uint32_t)view->free_value
               ? 0
               : set;
}

/* Height of a cube of a leaf around the ray's place in which nothing is occupied; -1: its voxel
 * is, by *value. */
VXD_HD int vxd_svdag_ray_leaf(const struct vxd_svdag_view *view, uint32_t ref,
                              const struct vxd_svdag_ray *ray, uint32_t *value)
{
    struct vxd_svdag_item leaf = vxd_svdag_leaf_item(view, ref);
    int octant = vxd_svdag_ray_octant(ray, VXD_SVDAG_LEAF_HEIGHT);
    uint32_t nibbles = 0;
    uint32_t octet = vxd_svdag_ray_octet(view, &leaf, octant, &nibbles);
    int inner = vxd_svdag_ray_octant(ray, 1);

    if (octet == 0) {
        return 1;
    }
    if ((octet >> inner & 1u) == 0) {
        return 0;
    }
    *value = view->value_bits == 4 && view->free_value >= 0
                 ? nibbles >> 4 * vxd_svdag_ray_ones(octet & ((1u << inner) - 1)) & 15u
                 : vxd_svdag_item_value(view, &leaf, octant << 3 | inner);
    return (int)*value == view->free_value ? 0 : -1;
}

/* Tells of a hit in the ray's voxel. */
VXD_HD void vxd_svdag_ray_report(const struct vxd_svdag_ray *ray, uint32_t value,
                                 struct vxd_svdag_hit *hit)
{
    /* A zero of either sign comes out as 0. */
    hit->distance = vxd_addd(ray->t, 0.0);
    for (int axis = 0; axis < 3; axis++) {
        hit->voxel[axis] =
            vxd_svdag_ray_is_down(ray, axis) ? -1 - ray->place[axis] : ray->place[axis];
    }
    hit->value = (uint16_t)value;
    if (ray->axis != VXD_SVDAG_RAY_START) {
        int face = ray->axis + 1;

        hit->normal = (int8_t)(vxd_svdag_ray_is_down(ray, ray->axis) ? face : -face);
    }
}

/* Where a ray stands in a tree: what it knows of the cube around its voxel. The inner nodes
 * above are kept in an array of the caller's, that of height h at (h - 3) * stride. */
struct vxd_svdag_ray_tree_cube {
    uint32_t ref;
    int height;
};

enum {
    VXD_SVDAG_RAY_NODES = VXD_SVDAG_MAX_DEPTH - VXD_SVDAG_LEAF_HEIGHT
};

VXD_HD int vxd_svdag_ray_node(int height, int stride)
{
    return (height - VXD_SVDAG_LEAF_HEIGHT - 1) * stride;
}

/* Whether there is a lower cube around the ray's voxel than the cube's. */
VXD_HD bool vxd_svdag_ray_can_descend(const struct vxd_svdag_ray_tree_cube *tree_cube)
{
    return tree_cube->height > VXD_SVDAG_LEAF_HEIGHT && vxd_svdag_is_node(tree_cube->ref);
}

/* Child of an inner node, of which the first word was read. */
VXD_HD uint32_t vxd_svdag_ray_child(const struct vxd_svdag_view *view, uint32_t ref,
                                    const uint32_t *words, uint32_t head, int octant)
{
    int i = 1 + vxd_svdag_ray_ones(head & ((1u << octant) - 1));
    struct vxd_svdag_item item;

    if ((head >> octant & 1u) == 0) {
        return VXD_SVDAG_EMPTY;
    }
    if (!vxd_svdag_reads_split(view)) {
        return words[i];
    }
    item = vxd_svdag_item_at(view, ref, 1 + vxd_svdag_ray_ones(head & 0xffu));
    return vxd_svdag_item_word(&item, i);
}

/* To the next lower cube, of a cube that has one; where nothing below is occupied, the cube
 * becomes empty. */
VXD_HD void vxd_svdag_ray_descend(const struct vxd_svdag_view *view,
                                  const struct vxd_svdag_ray *ray,
                                  struct vxd_svdag_ray_tree_cube *tree_cube,
                                  uint32_t *nodes, int stride)
{
    const uint32_t *words = vxd_svdag_words(view, tree_cube->ref);
    uint32_t head = words[0]; /* once: it is what a ray waits for most */
    uint32_t child;

    if ((head & VXD_SVDAG_HAS_OCCUPIED) == 0) {
        tree_cube->ref = VXD_SVDAG_EMPTY; /* to a ray */
        return;
    }
    child = vxd_svdag_ray_child(view, tree_cube->ref, words, head,
                                vxd_svdag_ray_octant(ray, tree_cube->height));
    nodes[vxd_svdag_ray_node(tree_cube->height, stride)] = tree_cube->ref;
    tree_cube->ref = child;
    tree_cube->height--;
}

/* Height of the cube around the ray's voxel in which nothing is occupied, of a cube that has
 * none lower; -1: the voxel is, by *value. */
VXD_HD int vxd_svdag_ray_visit(const struct vxd_svdag_view *view,
                               const struct vxd_svdag_ray *ray,
                               const struct vxd_svdag_ray_tree_cube *tree_cube,
                               uint32_t *value)
{
    if (vxd_svdag_is_node(tree_cube->ref)) {
        return vxd_svdag_ray_leaf(view, tree_cube->ref, ray, value);
    }
    if (vxd_svdag_uniform_state(view, tree_cube->ref) == VXD_SVDAG_OCCUPIED) {
        *value = vxd_svdag_uniform_value(tree_cube->ref);
        return -1;
    }
    return tree_cube->height;
}

/* The cube of a ray after it left a cube: up no farther than it must. False where it is over. */
VXD_HD bool vxd_svdag_ray_ascend(const struct vxd_svdag_view *view, uint32_t changed,
                                 struct vxd_svdag_ray_tree_cube *tree_cube,
                                 const uint32_t *nodes, int stride)
{
    if (changed == 0 || changed >> view->depth != 0) {
        return false;
    }
    if (changed >> tree_cube->height != 0) {
        tree_cube->height = vxd_svdag_ray_bits(changed);
        tree_cube->ref = nodes[vxd_svdag_ray_node(tree_cube->height, stride)];
    }
    return true;
}

/* Makes a ray and puts it into the scene, *hit telling of none. False where it hits nothing, as
 * *hit says. */
VXD_HD bool vxd_svdag_ray_begin(const struct vxd_svdag_view *view, const double origin[3],
                                const double direction[3], const double *max_range,
                                struct vxd_svdag_ray *ray, struct vxd_svdag_hit *hit)
{
    struct vxd_svdag_hit none = {-1.0, {-1, -1, -1}, 0, 0, 0};

    *hit = none;
    if (!vxd_svdag_ray_init(ray, origin, direction, max_range)) {
        hit->bad = 1;
        return false;
    }
    return vxd_svdag_ray_enter(ray, view->depth);
}

VXD_HD void vxd_svdag_ray_cast(const struct vxd_svdag_view *view, uint32_t root,
                               const double origin[3], const double direction[3],
                               const double *max_range, struct vxd_svdag_hit *hit)
{
    uint32_t nodes[VXD_SVDAG_RAY_NODES];
    struct vxd_svdag_ray_tree_cube tree_cube = {root, view->depth};
    struct vxd_svdag_ray ray;
    bool is_on = vxd_svdag_ray_begin(view, origin, direction, max_range, &ray, hit);

    while (is_on) {
        uint32_t value = 0;
        bool is_sure;
        int height;

        while (vxd_svdag_ray_can_descend(&tree_cube)) {
            vxd_svdag_ray_descend(view, &ray, &tree_cube, nodes, 1);
        }
        height = vxd_svdag_ray_visit(view, &ray, &tree_cube, &value);
        if (height < 0) {
            vxd_svdag_ray_report(&ray, value, hit);
            return;
        }
        is_on = vxd_svdag_ray_ascend(view, vxd_svdag_ray_leave(&ray, height, &is_sure),
                                     &tree_cube, nodes, 1);
        if (!is_sure) {
            vxd_svdag_ray_settle(&ray, height, view->depth);
        }
    }
}

#endif
