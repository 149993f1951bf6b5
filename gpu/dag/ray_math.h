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
 * So whole cubes are left at once, by the first of the three planes ahead of the cube; and
 * where in the next cube the ray then is, is told bit by bit on the way down, by the time of
 * each half's plane, so far down as anything is looked at. The voxels are those that single
 * steps would visit, to the bit.
 *
 * Axes of negative direction are mirrored, plane k of a mirrored axis being plane side - k of
 * the scene, so that everything goes upwards; changes of sign round nothing.
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

struct vxd_dag_ray {
    double origin[3];  /* mirrored */
    double inverse[3]; /* voxels along the ray a voxel of the axis; infinite: parallel */
    int32_t offset[3]; /* plane k of the mirrored axis lies at k + offset */
    uint32_t flip[3];  /* voxel v of the scene is v ^ flip of the mirrored one */
    uint32_t side;
    uint32_t begin[3]; /* where it begins, 0 if outside: planes up to there lie behind */
    double most;       /* crossings after this are none */
    /* The mirrored voxel it is in, but for the low n_open bits: they are 0 and not known. */
    uint32_t place[3];
    int n_open;
    double t; /* since this crossing */
    int axis;
};

/* When it crosses plane k of an axis. */
VXD_HD double vxd_dag_ray_plane(const struct vxd_dag_ray *ray, int axis, int32_t k)
{
    return vxd_muld(vxd_addd((double)(k + ray->offset[axis]), -ray->origin[axis]),
                    ray->inverse[axis]);
}

/* Whether it crosses plane k of an axis before the crossing (t, by) of another axis. */
VXD_HD bool vxd_dag_ray_passed(const struct vxd_dag_ray *ray, int axis, int32_t k,
                               double t, int by)
{
    double at = vxd_dag_ray_plane(ray, axis, k);

    return (at < t) | ((at == t) & (axis < by));
}

/* Makes a ray of the scene; false where something is not finite or has no direction. A NULL
 * range is none. */
VXD_HD bool vxd_dag_ray_init(struct vxd_dag_ray *ray, int depth, const double origin[3],
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
    ray->side = 1u << depth;
    ray->most = max_range != NULL ? *max_range : (double)INFINITY;
    for (int axis = 0; axis < 3; axis++) {
        bool is_down = d[axis] < 0;
        double size = fabs(d[axis]);

        ray->origin[axis] = is_down ? -origin[axis] : origin[axis];
        ray->inverse[axis] = size > 0 ? length / size : (double)INFINITY;
        ray->offset[axis] = is_down ? -(int32_t)ray->side : 0;
        ray->flip[axis] = is_down ? ray->side - 1 : 0;
    }
    return true;
}

/* Puts the ray into the first voxel of the scene that it visits; false: there is none. */
VXD_HD bool vxd_dag_ray_enter(struct vxd_dag_ray *ray, int depth)
{
    ray->t = 0;
    ray->axis = VXD_DAG_RAY_START;
    for (int axis = 0; axis < 3; axis++) {
        /* By the scene's own voxels: a plane belongs to the voxel above it. */
        bool is_down = ray->flip[axis] != 0;
        double voxel = floor(is_down ? -ray->origin[axis] : ray->origin[axis]);
        bool is_below = voxel < 0;
        bool is_above = voxel >= (double)ray->side;

        ray->begin[axis] = 0;
        if (is_down ? is_below : is_above) {
            return false;
        }
        if (is_below || is_above) {
            double t = vxd_dag_ray_plane(ray, axis, 0);

            /* The last of the planes that it has to cross; among equals the later axis. */
            if (!(t < (double)INFINITY)) {
                return false;
            }
            if (ray->axis == VXD_DAG_RAY_START || t >= ray->t) {
                ray->t = t;
                ray->axis = axis;
            }
        } else {
            ray->begin[axis] = (uint32_t)(int32_t)voxel ^ ray->flip[axis];
        }
    }
    for (int axis = 0; axis < 3; axis++) {
        bool is_start = ray->axis == VXD_DAG_RAY_START;

        ray->place[axis] = is_start ? ray->begin[axis] : 0;
        ray->n_open = is_start ? 0 : depth;
        if (!is_start &&
            vxd_dag_ray_passed(ray, axis, (int32_t)ray->side, ray->t, ray->axis)) {
            return false;
        }
    }
    return ray->t <= ray->most;
}

/* Leaves the cube of side 2^height around the ray's place, of which the bits above are known;
 * false where it comes to an end or out of the scene. */
VXD_HD bool vxd_dag_ray_leave(struct vxd_dag_ray *ray, int height)
{
    uint32_t mask = ((uint32_t)1 << height) - 1;
    uint32_t next[3] = {(ray->place[0] | mask) + 1, (ray->place[1] | mask) + 1,
                        (ray->place[2] | mask) + 1};
    double x = vxd_dag_ray_plane(ray, 0, (int32_t)next[0]);
    double y = vxd_dag_ray_plane(ray, 1, (int32_t)next[1]);
    double z = vxd_dag_ray_plane(ray, 2, (int32_t)next[2]);
    double t = y < x ? y : x;
    int by = y < x;

    by = z < t ? 2 : by;
    t = z < t ? z : t;
    if (!(t < (double)INFINITY) || t > ray->most) {
        return false;
    }
    ray->place[0] &= ~mask;
    ray->place[1] &= ~mask;
    ray->place[2] &= ~mask;
    ray->place[by] = next[by];
    ray->n_open = height;
    ray->t = t;
    ray->axis = by;
    return ray->place[by] < ray->side;
}

/* Makes the highest open bit known. On the axis of the last crossing it is 0: no plane behind
 * that one was passed, so that all axes are told alike. */
VXD_HD void vxd_dag_ray_settle(struct vxd_dag_ray *ray)
{
    uint32_t bit = (uint32_t)1 << --ray->n_open;

    for (int axis = 0; axis < 3; axis++) {
        uint32_t half = ray->place[axis] | bit;
        bool is_past = (half <= ray->begin[axis]) |
                       vxd_dag_ray_passed(ray, axis, (int32_t)half, ray->t, ray->axis);

        ray->place[axis] = is_past ? half : ray->place[axis];
    }
}

/* Bits up to the highest one set, of a number that is not 0. */
VXD_HD int vxd_dag_ray_bits(uint32_t v)
{
#if defined(__CUDA_ARCH__)
    return 32 - __clz((int)v);
#else
    return 32 - __builtin_clz(v);
#endif
}

VXD_HD int vxd_dag_ray_leaf_bit(const struct vxd_dag_ray *ray)
{
    return vxd_dag_leaf_bit(ray->place[0] ^ ray->flip[0], ray->place[1] ^ ray->flip[1],
                            ray->place[2] ^ ray->flip[2]);
}

enum vxd_dag_ray_end {
    VXD_DAG_RAY_HIT,
    VXD_DAG_RAY_OUT, /* of the leaf, maybe of the scene */
    VXD_DAG_RAY_OVER /* no crossing left within the range */
};

/* Single steps in a leaf. */
VXD_HD enum vxd_dag_ray_end vxd_dag_ray_walk_leaf(const struct vxd_dag_view *view,
                                                  const uint32_t *leaf,
                                                  struct vxd_dag_ray *ray,
                                                  uint32_t *value)
{
    uint64_t mask = vxd_dag_leaf_mask(leaf);
    double next[3];

    while (ray->n_open > 0) {
        vxd_dag_ray_settle(ray);
    }
    for (int axis = 0; axis < 3; axis++) {
        next[axis] = vxd_dag_ray_plane(ray, axis, (int32_t)ray->place[axis] + 1);
    }
    for (;;) {
        int bit = vxd_dag_ray_leaf_bit(ray);
        int by = next[1] < next[0] ? 1 : 0;

        if ((mask >> bit & 1) != 0) {
            *value = vxd_dag_leaf_value(view, leaf, bit);
            if ((int)*value != view->free_value) {
                return VXD_DAG_RAY_HIT;
            }
        }
        by = next[2] < next[by] ? 2 : by;
        if (!(next[by] < (double)INFINITY) || next[by] > ray->most) {
            return VXD_DAG_RAY_OVER;
        }
        ray->t = next[by];
        ray->axis = by;
        ray->place[by]++;
        if ((ray->place[by] & 3u) == 0) {
            return VXD_DAG_RAY_OUT;
        }
        next[by] = vxd_dag_ray_plane(ray, by, (int32_t)ray->place[by] + 1);
    }
}

VXD_HD void vxd_dag_ray_report(struct vxd_dag_ray *ray, uint32_t value,
                               struct vxd_dag_hit *hit)
{
    while (ray->n_open > 0) {
        vxd_dag_ray_settle(ray);
    }
    /* A zero of either sign comes out as 0. */
    hit->distance = vxd_addd(ray->t, 0.0);
    for (int axis = 0; axis < 3; axis++) {
        hit->voxel[axis] = (int32_t)(ray->place[axis] ^ ray->flip[axis]);
    }
    hit->value = (uint16_t)value;
    if (ray->axis != VXD_DAG_RAY_START) {
        int face = ray->axis + 1;

        hit->normal = (int8_t)(ray->flip[ray->axis] != 0 ? face : -face);
    }
}

/* The first occupied voxel of a root on a ray; what it is not told stays in *hit. Nodes above
 * the ray's voxel are kept by height, so that it goes up no farther than it must. */
VXD_HD bool vxd_dag_ray_trace(const struct vxd_dag_view *view, uint32_t root,
                              struct vxd_dag_ray *ray, struct vxd_dag_hit *hit)
{
    const uint32_t *nodes[VXD_DAG_MAX_DEPTH + 1];
    int flip = (ray->flip[0] != 0 ? 4 : 0) | (ray->flip[1] != 0 ? 2 : 0) |
               (ray->flip[2] != 0 ? 1 : 0);
    int height = view->depth;
    uint32_t ref = root;
    uint32_t value;

    for (;;) {
        uint32_t before[3] = {ray->place[0], ray->place[1], ray->place[2]};
        enum vxd_dag_ray_end end = VXD_DAG_RAY_OUT;

        while (height > VXD_DAG_LEAF_HEIGHT && vxd_dag_is_node(ref)) {
            const uint32_t *words = vxd_dag_words(view, ref);

            if ((words[0] & VXD_DAG_HAS_OCCUPIED) == 0) {
                ref = VXD_DAG_EMPTY; /* to a ray */
                break;
            }
            nodes[height] = words;
            if (ray->n_open == height) {
                vxd_dag_ray_settle(ray);
            }
            ref = vxd_dag_child(words, flip ^ vxd_dag_octant(ray->place[0], ray->place[1],
                                                             ray->place[2], height));
            height--;
        }
        if (vxd_dag_is_node(ref)) {
            end = vxd_dag_ray_walk_leaf(view, vxd_dag_words(view, ref), ray, &value);
        } else if (vxd_dag_uniform_state(view, ref) == VXD_DAG_OCCUPIED) {
            value = vxd_dag_uniform_value(ref);
            end = VXD_DAG_RAY_HIT;
        } else if (!vxd_dag_ray_leave(ray, height)) {
            return false;
        }
        if (end == VXD_DAG_RAY_HIT) {
            vxd_dag_ray_report(ray, value, hit);
            return true;
        }
        if (end == VXD_DAG_RAY_OVER || ray->place[ray->axis] >= ray->side) {
            return false;
        }
        /* The smallest cube around both voxels: they differ most on the axis it left by, as
         * on the others it stayed in the cube. */
        height = vxd_dag_ray_bits(before[ray->axis] ^ ray->place[ray->axis]);
        ref = vxd_dag_child(
            nodes[height],
            flip ^ vxd_dag_octant(ray->place[0], ray->place[1], ray->place[2], height));
        height--;
    }
}

VXD_HD void vxd_dag_ray_cast(const struct vxd_dag_view *view, uint32_t root,
                             const double origin[3], const double direction[3],
                             const double *max_range, struct vxd_dag_hit *hit)
{
    struct vxd_dag_hit none = {-1.0, {-1, -1, -1}, 0, 0, 0};
    struct vxd_dag_ray ray;

    *hit = none;
    if (!vxd_dag_ray_init(&ray, view->depth, origin, direction, max_range)) {
        hit->bad = 1;
    } else if (vxd_dag_ray_enter(&ray, view->depth)) {
        (void)vxd_dag_ray_trace(view, root, &ray, hit);
    }
}

#endif
