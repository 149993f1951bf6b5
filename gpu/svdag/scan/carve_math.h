// SPDX-License-Identifier: Apache-2.0
/* Where points fall and which voxels their rays visit, the same on every backend: doubles of
 * one rounding an operation make the times at which a ray crosses planes, and from there on
 * all is integers. (Divisions and roots of doubles round once everywhere.) */
#ifndef VXD_GPU_SVDAG_SCAN_CARVE_MATH_H
#define VXD_GPU_SVDAG_SCAN_CARVE_MATH_H

#include "gpu/core/core_math.h"
#include "gpu/svdag/scan/scan.h"

/* Positions and bases beyond these lie outside every scene, and floor to an int64. */
#define VXD_SVDAG_FAR 4398046511104.0 /* 2^42 */
#define VXD_SVDAG_MAX_BASE ((int64_t)1 << 40)

/* Times of a walk are parts of the whole way, VXD_SVDAG_WALK_ONE at its end; the low two bits
 * are the axis, so that no two are equal. Crossings before VXD_SVDAG_WALK_SAFE are of planes on
 * the way, whatever was rounded: it takes 2^14 steps of an axis, each off by four, and
 * roundings of 2^-52 to miss by 2^17. */
#define VXD_SVDAG_WALK_ONE ((int64_t)1 << 60)
#define VXD_SVDAG_WALK_SAFE (VXD_SVDAG_WALK_ONE - ((int64_t)1 << 30))

enum vxd_svdag_point {
    VXD_SVDAG_POINT_HIT = 0,
    VXD_SVDAG_POINT_NON_FINITE,
    VXD_SVDAG_POINT_BEYOND, /* farther than the range, in the scene or not */
    VXD_SVDAG_POINT_OUTSIDE
};

/* The way from an origin to a point, from voxel to voxel by their faces. */
struct vxd_svdag_walk {
    int64_t voxel[3]; /* where it is */
    int64_t t[3];     /* when it crosses the next plane of each axis, INT64_MAX: never */
    int64_t dt[3];    /* between planes */
    uint32_t left[3]; /* planes to cross */
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

/* What becomes of a point, and its voxel where it hits one.
 * in/out  end  where its ray ends: comes as the point, moved to the range if it is beyond */
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

/* Keys by which points are sorted: of one that hits the code of its voxel; of one that only
 * has a ray, a key above this: by its end, moved into the scene, so that rays in a row go the
 * same way; of others the highest key. */
VXD_HD uint64_t vxd_svdag_key_flag(int depth)
{
    return (uint64_t)1 << (3 * depth);
}

VXD_HD uint64_t vxd_svdag_no_key(int depth)
{
    return (vxd_svdag_key_flag(depth) << 1) - 1;
}

/* What becomes of point i of a scan, and its key. */
VXD_HD enum vxd_svdag_point vxd_svdag_scan_key(const struct vxd_svdag_scan *scan,
                                               int depth, uint64_t i, uint64_t *key)
{
    const double side = (double)((int64_t)1 << depth);
    enum vxd_svdag_point point;
    int64_t voxel[3];
    uint64_t v[3];
    double end[3];

    for (int a = 0; a < 3; a++) {
        end[a] = (double)scan->points[3 * i + (uint64_t)a];
    }
    point =
        vxd_svdag_point_of(scan->origin, scan->max_range, scan->base, depth, end, voxel);
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

/* The same of voxel i by index. */
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

/* A part of the way, 0 to 1, as a time of axis 0. */
VXD_HD int64_t vxd_svdag_walk_time(double part)
{
    return (int64_t)vxd_muld(part, (double)VXD_SVDAG_WALK_ONE) & ~(int64_t)3;
}

/* Starts a walk in the origin's voxel. False where there is none: it would be longer than
 * VXD_SVDAG_MAX_RAY_VOXELS, or is far from every scene. */
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
        double way = fabs(vxd_addd(end[a], -origin[a]));
        /* To the first plane: at most `way`, as that plane lies between. */
        double first = to > from ? vxd_addd(vxd_addd(from, 1.0), -origin[a])
                                 : vxd_addd(origin[a], -from);

        if (fabs(from) > VXD_SVDAG_FAR || fabs(to) > VXD_SVDAG_FAR) {
            return false;
        }
        walk->voxel[a] = (int64_t)from;
        walk->left[a] = (uint32_t)fabs(to - from);
        walk->step[a] = to > from ? 1 : -1;
        walk->t[a] = walk->left[a] == 0 ? INT64_MAX
                                        : vxd_svdag_walk_time(first / way) | (int64_t)a;
        walk->dt[a] =
            walk->left[a] < 2 ? 2 * VXD_SVDAG_WALK_ONE : vxd_svdag_walk_time(1.0 / way);
    }
    return true;
}

/* Goes on by one voxel; false at the end, which is always the point's voxel. Of planes that
 * are crossed at once x is first, then y. */
VXD_HD bool vxd_svdag_walk_next(struct vxd_svdag_walk *walk)
{
    int64_t t = walk->t[0] < walk->t[1] ? walk->t[0] : walk->t[1];

    t = t < walk->t[2] ? t : walk->t[2];
    if (t == INT64_MAX) {
        return false;
    }
    for (int a = 0; a < 3;
         a++) { /* without indices that only the walk knows: registers */
        if (a == (int)(t & 3)) {
            walk->voxel[a] += walk->step[a];
            walk->left[a]--;
            walk->t[a] = walk->left[a] == 0 ? INT64_MAX : walk->t[a] + walk->dt[a];
        }
    }
    return true;
}

#endif
