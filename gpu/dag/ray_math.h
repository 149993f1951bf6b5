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
 * So whole cubes are left at once, by the first of the three planes ahead of the cube; and in
 * which half of a cube the ray then is, on each axis, the plane between the halves tells: going
 * down the tree, a bit a level, as far as it is gone down. The voxels are those that single
 * steps would visit, to the bit.
 *
 * Axes of negative direction are mirrored at 0: voxel v is -1 - v there (the bits of v, turned
 * over) and plane k is -k, so that everything goes upwards; changes of sign round nothing.
 *
 * source  Amanatides and Woo, A Fast Voxel Traversal Algorithm, 1987 (the single steps);
 *         Laine and Karras, Efficient Sparse Voxel Octrees, 2010, section 2 (the mirror) */
#ifndef VXD_GPU_DAG_RAY_MATH_H
#define VXD_GPU_DAG_RAY_MATH_H

#include "gpu/dag/dag_math.h"
#include "gpu/dag/query.h"

enum {
    VXD_DAG_RAY_START = -1 /* axis of no crossing */
};

/* No array of it is indexed by what only a running ray knows: devices keep it in registers. */
struct vxd_dag_ray {
    double origin[3];  /* mirrored */
    double inverse[3]; /* voxels along the ray a voxel of the axis; infinite: never */
    int32_t begin[3];  /* mirrored voxel where it begins, the scene's first on the axis if
                        * before it: planes up to there lie behind */
    int flip;          /* the mirrored axes, as an octant: x*4 + y*2 + z */
    double most;       /* crossings after this are none */
    /* The mirrored voxel it is in, but for the low n_open bits: they are 0 and not known. */
    int32_t place[3];
    int n_open;
    double t; /* since this crossing */
    int axis;
};

/* Exact. Devices convert to double at a quarter of the rate at which they add. */
VXD_HD double vxd_dag_ray_double(int32_t k)
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
VXD_HD int vxd_dag_ray_bits(uint32_t v)
{
#if defined(__CUDA_ARCH__)
    return 32 - __clz((int)v);
#else
    return 32 - __builtin_clz(v);
#endif
}

VXD_HD bool vxd_dag_ray_is_down(const struct vxd_dag_ray *ray, int axis)
{
    return (ray->flip >> (2 - axis) & 1) != 0;
}

/* When it crosses plane k of an axis. */
VXD_HD double vxd_dag_ray_plane(const struct vxd_dag_ray *ray, int axis, int32_t k)
{
    return vxd_muld(vxd_addd(vxd_dag_ray_double(k), -ray->origin[axis]),
                    ray->inverse[axis]);
}

/* Whether it crosses plane k of an axis before the crossing (t, by) of another axis. */
VXD_HD bool vxd_dag_ray_passed(const struct vxd_dag_ray *ray, int axis, int32_t k,
                               double t, int by)
{
    double at = vxd_dag_ray_plane(ray, axis, k);

    return (at < t) | ((at == t) & (axis < by));
}

/* Makes a ray; false where something is not finite or has no direction. A NULL range is
 * none. */
VXD_HD bool vxd_dag_ray_init(struct vxd_dag_ray *ray, const double origin[3],
                             const double direction[3], const double *max_range)
{
    double d[3] = {direction[0], direction[1], direction[2]};
    double largest = fmax(fmax(fabs(d[0]), fabs(d[1])), fabs(d[2]));
    double length;

    for (int axis = 0; axis < 3; axis++) {
        if (!isfinite(d[axis]) || !isfinite(origin[axis])) {
            return false;
        }
    }
    if (largest == 0 || (max_range != NULL && !(*max_range >= 0))) {
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
    ray->most = max_range != NULL ? *max_range : (double)INFINITY;
    ray->flip = 0;
    for (int axis = 0; axis < 3; axis++) {
        double size = fabs(d[axis]);
        double inverse = size > 0 ? length / size : (double)INFINITY;
        /* Of an axis whose planes are never crossed none is at 0 voxels and infinitely far. */
        bool is_down = d[axis] < 0 && inverse < (double)INFINITY;

        ray->flip |= is_down ? 4 >> axis : 0;
        ray->origin[axis] = is_down ? -origin[axis] : origin[axis];
        ray->inverse[axis] = inverse;
    }
    return true;
}

/* Puts the ray into the first voxel of a scene that it visits; false: there is none. */
VXD_HD bool vxd_dag_ray_enter(struct vxd_dag_ray *ray, int depth)
{
    int32_t side = (int32_t)1 << depth;
    bool is_start;

    ray->t = 0;
    ray->axis = VXD_DAG_RAY_START;
    for (int axis = 0; axis < 3; axis++) {
        /* By the scene's own voxels: a plane belongs to the voxel above it. */
        bool is_down = vxd_dag_ray_is_down(ray, axis);
        double voxel = floor(is_down ? -ray->origin[axis] : ray->origin[axis]);
        bool is_below = voxel < 0;
        bool is_above = voxel >= (double)side;

        if (is_down ? is_below : is_above) {
            return false;
        }
        if (is_below || is_above) {
            double t;

            ray->begin[axis] = is_down ? -side : 0;
            t = vxd_dag_ray_plane(ray, axis, ray->begin[axis]);
            /* The last of the planes that it has to cross; among equals the later axis. */
            if (!(t < (double)INFINITY)) {
                return false;
            }
            if (ray->axis == VXD_DAG_RAY_START || t >= ray->t) {
                ray->t = t;
                ray->axis = axis;
            }
        } else {
            ray->begin[axis] = is_down ? -1 - (int32_t)voxel : (int32_t)voxel;
        }
    }
    is_start = ray->axis == VXD_DAG_RAY_START;
    ray->n_open = is_start ? 0 : depth;
    for (int axis = 0; axis < 3; axis++) {
        int32_t first = vxd_dag_ray_is_down(ray, axis) ? -side : 0;

        ray->place[axis] = is_start ? ray->begin[axis] : first;
        if (!is_start && vxd_dag_ray_passed(ray, axis, first + side, ray->t, ray->axis)) {
            return false;
        }
    }
    return ray->t <= ray->most;
}

/* Leaves the cube of side 2^height around the ray's place, of which the bits above are known.
 * Returns which bits of the place changed, on any axis: the highest is that of the height at
 * which it went on, 2^depth or more where it left the scene; 0 where it comes to an end in the
 * cube. */
VXD_HD uint32_t vxd_dag_ray_leave(struct vxd_dag_ray *ray, int height)
{
    int32_t mask = (int32_t)(((uint32_t)1 << height) - 1);
    double x = vxd_dag_ray_plane(ray, 0, (ray->place[0] | mask) + 1);
    double y = vxd_dag_ray_plane(ray, 1, (ray->place[1] | mask) + 1);
    double z = vxd_dag_ray_plane(ray, 2, (ray->place[2] | mask) + 1);
    double t = y < x ? y : x;
    int by = y < x ? 1 : 0;
    uint32_t changed = 0;

    by = z < t ? 2 : by;
    t = z < t ? z : t;
    if (!(t < (double)INFINITY) || t > ray->most) {
        return 0;
    }
    for (int axis = 0; axis < 3; axis++) {
        int32_t from = ray->place[axis];
        int32_t to = axis == by ? (from | mask) + 1 : from & ~mask;

        changed |= (uint32_t)(from ^ to);
        ray->place[axis] = to;
    }
    ray->n_open = height;
    ray->t = t;
    ray->axis = by;
    return changed;
}

/* Makes the highest open bit known. On the axis of the last crossing it is 0: no plane behind
 * that one was passed, so that all axes are told alike. */
VXD_HD void vxd_dag_ray_settle(struct vxd_dag_ray *ray)
{
    int32_t bit = (int32_t)1 << --ray->n_open;

    for (int axis = 0; axis < 3; axis++) {
        int32_t half = ray->place[axis] | bit;
        bool is_past = (half <= ray->begin[axis]) |
                       vxd_dag_ray_passed(ray, axis, half, ray->t, ray->axis);

        ray->place[axis] = is_past ? half : ray->place[axis];
    }
}

/* To the next voxel of the scene, of which all is known then; false: there is none. */
VXD_HD bool vxd_dag_ray_next(struct vxd_dag_ray *ray, int depth)
{
    uint32_t changed;

    while (ray->n_open > 0) {
        vxd_dag_ray_settle(ray);
    }
    changed = vxd_dag_ray_leave(ray, 0);
    return changed != 0 && changed >> depth == 0;
}

/* Octant, of the scene and not of the mirrored one, at a height: makes it known. */
VXD_HD int vxd_dag_ray_octant(struct vxd_dag_ray *ray, int height)
{
    if (ray->n_open == height) {
        vxd_dag_ray_settle(ray);
    }
    return ray->flip ^ vxd_dag_octant((uint32_t)ray->place[0], (uint32_t)ray->place[1],
                                      (uint32_t)ray->place[2], height);
}

/* Height of an empty cube of a leaf around the ray's place; -1: its voxel is occupied, by
 * *value. */
VXD_HD int vxd_dag_ray_leaf(const struct vxd_dag_view *view, uint32_t ref,
                            struct vxd_dag_ray *ray, uint32_t *value)
{
    struct vxd_dag_item leaf = vxd_dag_leaf_item(view, ref);
    uint64_t mask = vxd_dag_leaf_mask(leaf.words);
    int bit = vxd_dag_ray_octant(ray, VXD_DAG_LEAF_HEIGHT) << 3;

    if ((mask >> bit & 0xff) == 0) {
        return 1;
    }
    bit |= vxd_dag_ray_octant(ray, 1);
    if ((mask >> bit & 1) == 0) {
        return 0;
    }
    *value = vxd_dag_item_value(view, &leaf, bit);
    return (int)*value == view->free_value ? 0 : -1;
}

/* Tells of a hit in the ray's voxel; makes all of its place known. */
VXD_HD void vxd_dag_ray_report(struct vxd_dag_ray *ray, uint32_t value,
                               struct vxd_dag_hit *hit)
{
    while (ray->n_open > 0) {
        vxd_dag_ray_settle(ray);
    }
    /* A zero of either sign comes out as 0. */
    hit->distance = vxd_addd(ray->t, 0.0);
    for (int axis = 0; axis < 3; axis++) {
        hit->voxel[axis] =
            vxd_dag_ray_is_down(ray, axis) ? -1 - ray->place[axis] : ray->place[axis];
    }
    hit->value = (uint16_t)value;
    if (ray->axis != VXD_DAG_RAY_START) {
        int face = ray->axis + 1;

        hit->normal = (int8_t)(vxd_dag_ray_is_down(ray, ray->axis) ? face : -face);
    }
}

/* Where a ray stands in a tree: what it knows of the cube around its voxel. The inner nodes
 * above are kept in an array of the caller's, that of height h at (h - 3) * stride. */
struct vxd_dag_ray_spot {
    uint32_t ref;
    int height;
};

enum {
    VXD_DAG_RAY_NODES = VXD_DAG_MAX_DEPTH - VXD_DAG_LEAF_HEIGHT
};

VXD_HD int vxd_dag_ray_node(int height, int stride)
{
    return (height - VXD_DAG_LEAF_HEIGHT - 1) * stride;
}

enum vxd_dag_ray_end {
    VXD_DAG_RAY_ON,
    VXD_DAG_RAY_HIT, /* *value is the voxel's */
    VXD_DAG_RAY_OVER /* out of the scene, or no crossing left within the range */
};

/* Goes down to the ray's voxel, and on past the empty cube around it. Each step takes the ray
 * on by a voxel or more. Goes up no farther than it must. */
VXD_HD enum vxd_dag_ray_end vxd_dag_ray_step(const struct vxd_dag_view *view,
                                             struct vxd_dag_ray *ray,
                                             struct vxd_dag_ray_spot *spot,
                                             uint32_t *nodes, int stride, uint32_t *value)
{
    int height;
    uint32_t changed;

    while (spot->height > VXD_DAG_LEAF_HEIGHT && vxd_dag_is_node(spot->ref)) {
        if ((vxd_dag_words(view, spot->ref)[0] & VXD_DAG_HAS_OCCUPIED) == 0) {
            spot->ref = VXD_DAG_EMPTY; /* to a ray */
            break;
        }
        nodes[vxd_dag_ray_node(spot->height, stride)] = spot->ref;
        spot->ref =
            vxd_dag_child_of(view, spot->ref, vxd_dag_ray_octant(ray, spot->height));
        spot->height--;
    }
    height = spot->height;
    if (vxd_dag_is_node(spot->ref)) {
        height = vxd_dag_ray_leaf(view, spot->ref, ray, value);
        if (height < 0) {
            return VXD_DAG_RAY_HIT;
        }
    } else if (vxd_dag_uniform_state(view, spot->ref) == VXD_DAG_OCCUPIED) {
        *value = vxd_dag_uniform_value(spot->ref);
        return VXD_DAG_RAY_HIT;
    }
    changed = vxd_dag_ray_leave(ray, height);
    if (changed == 0 || changed >> view->depth != 0) {
        return VXD_DAG_RAY_OVER;
    }
    if (changed >> spot->height != 0) {
        spot->height = vxd_dag_ray_bits(changed);
        spot->ref = nodes[vxd_dag_ray_node(spot->height, stride)];
    }
    return VXD_DAG_RAY_ON;
}

/* Makes a ray and puts it into the scene, *hit telling of none. False where it hits nothing, as
 * *hit says. */
VXD_HD bool vxd_dag_ray_begin(const struct vxd_dag_view *view, const double origin[3],
                              const double direction[3], const double *max_range,
                              struct vxd_dag_ray *ray, struct vxd_dag_hit *hit)
{
    struct vxd_dag_hit none = {-1.0, {-1, -1, -1}, 0, 0, 0};

    *hit = none;
    if (!vxd_dag_ray_init(ray, origin, direction, max_range)) {
        hit->bad = 1;
        return false;
    }
    return vxd_dag_ray_enter(ray, view->depth);
}

VXD_HD void vxd_dag_ray_cast(const struct vxd_dag_view *view, uint32_t root,
                             const double origin[3], const double direction[3],
                             const double *max_range, struct vxd_dag_hit *hit)
{
    uint32_t nodes[VXD_DAG_RAY_NODES];
    struct vxd_dag_ray_spot spot = {root, view->depth};
    enum vxd_dag_ray_end end = VXD_DAG_RAY_ON;
    struct vxd_dag_ray ray;
    uint32_t value = 0;

    if (!vxd_dag_ray_begin(view, origin, direction, max_range, &ray, hit)) {
        return;
    }
    while (end == VXD_DAG_RAY_ON) {
        end = vxd_dag_ray_step(view, &ray, &spot, nodes, 1, &value);
    }
    if (end == VXD_DAG_RAY_HIT) {
        vxd_dag_ray_report(&ray, value, hit);
    }
}

#endif
