// SPDX-License-Identifier: Apache-2.0
/* Which voxel a point is in and which voxels its ray visits, the same on every backend.
 * Doubles, rounded once in each operation, give the times at which a ray crosses planes;
 * everything after that is integers. (Divisions and roots of doubles round once on every
 * backend.) */
#ifndef VXD_GPU_SVDAG_SCAN_CARVE_MATH_H
#define VXD_GPU_SVDAG_SCAN_CARVE_MATH_H

#include "gpu/core/core_math.h"
#include "gpu/svdag/scan/scan.h"

/* Positions and bases beyond these lie outside every scene. Below them floor() fits an
 * int64. */
#define VXD_SVDAG_FAR 4398046511104.0 /* 2^42 */
#define VXD_SVDAG_MAX_BASE ((int64_t)1 << 40)

/* Times of a walk are fractions of the ray: VXD_SVDAG_WALK_ONE is its end. The low two
 * bits are the axis, so that no two times are equal. A crossing before
 * VXD_SVDAG_WALK_SAFE is of a plane that the ray does cross, whatever was rounded: an
 * error of 2^17 would need 2^14 steps on an axis, each off by four, and roundings of
 * 2^-52. */
#define VXD_SVDAG_WALK_ONE ((int64_t)1 << 60)
#define VXD_SVDAG_WALK_SAFE (VXD_SVDAG_WALK_ONE - ((int64_t)1 << 30))

enum vxd_svdag_point {
    VXD_SVDAG_POINT_HIT = 0,
    VXD_SVDAG_POINT_NON_FINITE,
    VXD_SVDAG_POINT_BEYOND, /* farther than the range, inside or outside the scene */
    VXD_SVDAG_POINT_OUTSIDE
};

/* A brick is 32^3 voxels. */
enum {
    VXD_SVDAG_BRICK_BITS = 15,   /* low bits of a voxel's code */
    VXD_SVDAG_BRICK_LEAVES = 512 /* words, in Morton order */
};

/* A walk along the ray from an origin to a point, from voxel to voxel across their
 * faces. */
struct vxd_svdag_walk {
    int64_t voxel[3]; /* current voxel */
    int64_t t[3];     /* time of the next plane crossing on each axis; INT64_MAX: never */
    int64_t dt[3];    /* time between two planes */
    uint32_t left[3]; /* planes left to cross */
    int8_t step[3];
};

VXD_HD uint64_t vxd_svdag_voxel_code(uint64_t x, uint64_t y, uint64_t z)
{
    return vxd_spread3(x) << 2 | vxd_spread3(y) << 1 | vxd_spread3(z);
}

VXD_HD bool vxd_svdag_is_inside(const int64_t voxel[3], int depth)
{
    int64_t side = (int64_t)1 << depth;

    return voxel[0] >= 0 && voxel[0] < side && voxel[1] >= 0 && voxel[1] < side &&
           voxel[2] >= 0 && voxel[2] < side;
}

VXD_HD double vxd_svdag_walk_square(const double from[3], const double to[3])
{
    double square = 0;

    for (int a = 0; a < 3; a++) {
        double d = vxd_addd(to[a], -from[a]);

        square = vxd_addd(square, vxd_muld(d, d));
    }
    return square;
}

/* Classifies a point, and gives its voxel where it hits one.
 * in/out  end  the point; becomes the end of its ray, at the range if the point is beyond it */
VXD_HD enum vxd_svdag_point vxd_svdag_point_of(const double origin[3], double max_range,
                                               const int64_t base[3], int depth,
                                               double end[3], int64_t voxel[3])
{
    double square;

    for (int a = 0; a < 3; a++) {
        if (!isfinite(end[a])) {
            return VXD_SVDAG_POINT_NON_FINITE;
        }
    }
    square = vxd_svdag_walk_square(origin, end);
    if (max_range > 0 && square > vxd_muld(max_range, max_range)) {
        double scale = max_range / sqrt(square);

        for (int a = 0; a < 3; a++) {
            end[a] = vxd_addd(origin[a], vxd_muld(vxd_addd(end[a], -origin[a]), scale));
        }
        return VXD_SVDAG_POINT_BEYOND;
    }
    for (int a = 0; a < 3; a++) {
        if (fabs(end[a]) > VXD_SVDAG_FAR) {
            return VXD_SVDAG_POINT_OUTSIDE;
        }
        voxel[a] = (int64_t)floor(end[a]) + base[a];
    }
    return vxd_svdag_is_inside(voxel, depth) ? VXD_SVDAG_POINT_HIT
                                             : VXD_SVDAG_POINT_OUTSIDE;
}

/* Sort keys of points. The key of a point that hits is the code of its voxel. A point
 * that only has a ray has a higher key, by the end of its ray moved into the scene, so
 * that consecutive rays have similar directions. All others have the highest key. */
VXD_HD uint64_t vxd_svdag_key_flag(int depth)
{
    return (uint64_t)1 << (3 * depth);
}

VXD_HD uint64_t vxd_svdag_no_key(int depth)
{
    return (vxd_svdag_key_flag(depth) << 1) - 1;
}

/* Where the ray of point i starts. */
VXD_HD void vxd_svdag_scan_origin(const struct vxd_svdag_scan *scan, uint64_t i,
                                  double origin[3])
{
    for (int a = 0; a < 3; a++) {
        origin[a] = scan->origins != NULL ? (double)scan->origins[3 * i + (uint64_t)a]
                                          : scan->origin[a];
    }
}

/* Classifies point i of a scan and gives its key. */
VXD_HD enum vxd_svdag_point vxd_svdag_scan_key(const struct vxd_svdag_scan *scan,
                                               int depth, uint64_t i, uint64_t *key)
{
    const double side = (double)((int64_t)1 << depth);
    enum vxd_svdag_point point;
    int64_t voxel[3];
    uint64_t v[3];
    double origin[3];
    double end[3];

    vxd_svdag_scan_origin(scan, i, origin);
    for (int a = 0; a < 3; a++) {
        /* A point whose origin is not finite is not finite either. */
        end[a] =
            isfinite(origin[a]) ? (double)scan->points[3 * i + (uint64_t)a] : origin[a];
    }
    point = vxd_svdag_point_of(origin, scan->max_range, scan->base, depth, end, voxel);
    if (point == VXD_SVDAG_POINT_HIT && i >= scan->n - scan->n_rays_only) {
        point = VXD_SVDAG_POINT_BEYOND;
    }
    if (point == VXD_SVDAG_POINT_HIT) {
        *key = vxd_svdag_voxel_code((uint64_t)voxel[0], (uint64_t)voxel[1],
                                    (uint64_t)voxel[2]);
        return point;
    }
    if (!scan->carve || point == VXD_SVDAG_POINT_NON_FINITE) {
        *key = vxd_svdag_no_key(depth);
        return point;
    }
    for (int a = 0; a < 3; a++) {
        double at = vxd_addd(floor(end[a]), (double)scan->base[a]);

        v[a] = at > 0 ? (uint64_t)(at < side ? at : side - 1) : 0;
    }
    *key = vxd_svdag_key_flag(depth) | vxd_svdag_voxel_code(v[0], v[1], v[2]) >> 1;
    return point;
}

/* The same for voxel i of a list of indices. */
VXD_HD enum vxd_svdag_point vxd_svdag_voxel_key(const int32_t *voxels, int depth,
                                                uint64_t i, uint64_t *key)
{
    const int32_t *v = voxels + 3 * i;
    const int64_t voxel[3] = {v[0], v[1], v[2]};

    if (!vxd_svdag_is_inside(voxel, depth)) {
        *key = vxd_svdag_no_key(depth);
        return VXD_SVDAG_POINT_OUTSIDE;
    }
    *key =
        vxd_svdag_voxel_code((uint64_t)voxel[0], (uint64_t)voxel[1], (uint64_t)voxel[2]);
    return VXD_SVDAG_POINT_HIT;
}

/* The cell of 1/VXD_SVDAG_UNIT voxel that a position is in, and its middle. The middle is in
 * the same voxel, and exact as a double wherever a ray is cast. */
VXD_HD double vxd_svdag_cell_of(double at)
{
    return floor(vxd_muld(at, (double)VXD_SVDAG_UNIT));
}

VXD_HD double vxd_svdag_cell_middle(double cell)
{
    return vxd_muld(vxd_addd(cell, 0.5), 1.0 / VXD_SVDAG_UNIT);
}

/* The cells of a ray's ends. */
struct vxd_svdag_ray {
    double origin[3]; /* where it starts: exact, or a middle */
    double end[3];    /* a middle */
    double from[3];   /* the cell that a point's own ray starts in */
    double to[3];     /* the cell that it ends in */
};

/* Gives the ray of point i, which has one. */
VXD_HD void vxd_svdag_scan_ray(const struct vxd_svdag_scan *scan, int depth, uint64_t i,
                               struct vxd_svdag_ray *ray)
{
    int64_t voxel[3];

    vxd_svdag_scan_origin(scan, i, ray->origin);
    for (int a = 0; a < 3; a++) {
        ray->end[a] = (double)scan->points[3 * i + (uint64_t)a];
    }
    (void)vxd_svdag_point_of(ray->origin, scan->max_range, scan->base, depth, ray->end,
                             voxel);
    for (int a = 0; a < 3; a++) {
        ray->from[a] = vxd_svdag_cell_of(ray->origin[a]);
        ray->to[a] = vxd_svdag_cell_of(ray->end[a]);
        ray->end[a] = vxd_svdag_cell_middle(ray->to[a]);
        if (scan->origins != NULL) {
            ray->origin[a] = vxd_svdag_cell_middle(ray->from[a]);
        }
    }
}

/* Writes the cells of ray k of those that are cast; false where one is too far away. `origins`
 * may be NULL. */
VXD_HD bool vxd_svdag_put_ray(const struct vxd_svdag_ray *ray, uint64_t k, int32_t *ends,
                              int32_t *origins)
{
    for (int a = 0; a < 3; a++) {
        const double most = (double)VXD_SVDAG_MAX_RAY_CELL;

        if (!(fabs(ray->to[a]) < most) ||
            (origins != NULL && !(fabs(ray->from[a]) < most))) {
            return false;
        }
        ends[3 * k + (uint64_t)a] = (int32_t)ray->to[a];
        if (origins != NULL) {
            origins[3 * k + (uint64_t)a] = (int32_t)ray->from[a];
        }
    }
    return true;
}

/* A fraction of the ray, 0 to 1, as a time of axis 0. */
VXD_HD int64_t vxd_svdag_walk_time(double fraction)
{
    return (int64_t)vxd_muld(fraction, (double)VXD_SVDAG_WALK_ONE) & ~(int64_t)3;
}

/* Starts a walk in the origin's voxel. False where the ray is not cast, because it is
 * longer than VXD_SVDAG_MAX_RAY_VOXELS, or far from every scene. */
VXD_HD bool vxd_svdag_walk_begin(struct vxd_svdag_walk *walk, const double origin[3],
                                 const double end[3])
{
    const double longest = VXD_SVDAG_MAX_RAY_VOXELS;

    if (!(vxd_svdag_walk_square(origin, end) <= longest * longest)) {
        return false;
    }
    for (int a = 0; a < 3; a++) {
        double from = floor(origin[a]);
        double to = floor(end[a]);
        double length = fabs(vxd_addd(end[a], -origin[a]));
        /* Distance to the first plane: at most `length`, as that plane lies in
         * between. */
        double first = to > from ? vxd_addd(vxd_addd(from, 1.0), -origin[a])
                                 : vxd_addd(origin[a], -from);

        if (fabs(from) > VXD_SVDAG_FAR || fabs(to) > VXD_SVDAG_FAR) {
            return false;
        }
        walk->voxel[a] = (int64_t)from;
        walk->left[a] = (uint32_t)fabs(to - from);
        walk->step[a] = to > from ? 1 : -1;
        walk->t[a] = walk->left[a] == 0
                         ? INT64_MAX
                         : vxd_svdag_walk_time(first / length) | (int64_t)a;
        walk->dt[a] = walk->left[a] < 2 ? 2 * VXD_SVDAG_WALK_ONE
                                        : vxd_svdag_walk_time(1.0 / length);
    }
    return true;
}

/* Steps to the next voxel; false at the end, which is always the point's voxel. Where
 * planes of several axes are crossed at the same time x comes first, then y. */
VXD_HD bool vxd_svdag_walk_next(struct vxd_svdag_walk *walk)
{
    int64_t t = walk->t[0] < walk->t[1] ? walk->t[0] : walk->t[1];

    t = t < walk->t[2] ? t : walk->t[2];
    if (t == INT64_MAX) {
        return false;
    }
    for (int a = 0; a < 3;
         a++) { /* no dynamic index, so that the arrays stay in registers */
        if (a == (int)(t & 3)) {
            walk->voxel[a] += walk->step[a];
            walk->left[a]--;
            walk->t[a] = walk->left[a] == 0 ? INT64_MAX : walk->t[a] + walk->dt[a];
        }
    }
    return true;
}

#endif
