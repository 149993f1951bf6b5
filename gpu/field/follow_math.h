// SPDX-License-Identifier: Apache-2.0
/* A robot of spheres along trajectories, as both backends compile it. Of every pose bounds of the
 * clearance are found at once, from the field at the spheres' centres; poses that can have the
 * least clearance, or be in contact, are then searched. */
#ifndef VXD_GPU_FIELD_FOLLOW_MATH_H
#define VXD_GPU_FIELD_FOLLOW_MATH_H

#include "gpu/field/collide_math.h"

/* The distance from a point, in the field's frame, to the obstacles' surface, signed, at most the
 * reach of SURFACE. If that is above `limit`, it may be given as the reach. Points outside the box
 * are as far as can be. */
VXD_HD double vxd_field_surface(const struct vxd_field_view *field, const double p[3],
                                double limit)
{
    double reach = vxd_field_surface_reach(field);
    struct vxd_field_cube cube;
    double sign;
    int at[3];

    if (!vxd_field_is_inside(field, p, at)) {
        return reach;
    }
    sign = vxd_field_is_obstacle(field, at[0], at[1], at[2]) ? -1.0 : 1.0;
    /* Rounding must not leave out what is as far as the limit. */
    limit = limit + VXD_FIELD_SLACK;
    vxd_field_find_cube(field, p, at, sign < 0 ? INFINITY : vxd_field_square(limit),
                        &cube);
    return cube.is_found && cube.square <= vxd_field_square(reach)
               ? sign * vxd_field_sqrt(cube.square)
               : sign * reach;
}

/* Not above that distance, and found at once. */
VXD_HD double vxd_field_surface_bound(const struct vxd_field_view *field,
                                      const double p[3])
{
    double reach = vxd_field_surface_reach(field);
    double distance = reach;
    int at[3];

    if (vxd_field_is_inside(field, p, at)) {
        float x = vxd_field_slack_of(p[0], at[0]);
        float y = vxd_field_slack_of(p[1], at[1]);
        float z = vxd_field_slack_of(p[2], at[2]);

        distance = vxd_field_distance_at(field, at[0], at[1], at[2]) -
                   (double)sqrtf(x * x + y * y + z * z);
    }
    return distance < reach ? distance : reach;
}

struct vxd_field_follow_call {
    struct vxd_field_view field;
    struct vxd_field_trajectories in;
    int32_t *first;
    float *clearance;
    /* Scratch of a GPU. Bounds are ordered floats: one a trajectory, and one a pose. */
    int32_t *bounds;
    int32_t *pose_bounds;
    uint32_t *open; /* poses to be searched */
    uint32_t *n_open;
};

/* Where a sphere of the robot is at a pose, in the field's frame. */
VXD_HD void vxd_field_place_sphere(const struct vxd_field_view *field, const double *pose,
                                   double rotation[3][3], const double *sphere,
                                   double p[3])
{
    for (int axis = 0; axis < 3; axis++) {
        double turned = vxd_field_sum(vxd_muld(rotation[axis][0], sphere[0]),
                                      vxd_muld(rotation[axis][1], sphere[1]),
                                      vxd_muld(rotation[axis][2], sphere[2]));

        p[axis] = vxd_field_subd(vxd_addd(pose[axis], turned), (double)field->low[axis]);
    }
}

/* Not below vxd_field_surface, and found at once: the distance to the cube whose centre is
 * nearest. */
VXD_HD double vxd_field_surface_at_most(const struct vxd_field_view *field,
                                        const double p[3])
{
    double reach = vxd_field_surface_reach(field);
    int nearest[3];
    double distance;
    int at[3];

    if (!vxd_field_is_inside(field, p, at)) {
        return reach;
    }
    if (vxd_field_is_obstacle(field, at[0], at[1], at[2])) {
        return 0;
    }
    if (!vxd_field_nearest(field, at, nearest)) {
        return reach;
    }
    distance = vxd_field_length_of(vxd_field_gap(p[0], nearest[0]),
                                   vxd_field_gap(p[1], nearest[1]),
                                   vxd_field_gap(p[2], nearest[2]));
    return distance < reach ? distance : reach;
}

/* Bounds of the least clearance, in voxels, of the robot's spheres at one pose. */
VXD_HD void vxd_field_pose_bounds(const struct vxd_field_follow_call *call, size_t pose,
                                  double *at_least, double *at_most)
{
    const double *at = call->in.poses + 7 * pose;
    double rotation[3][3];

    *at_least = INFINITY;
    *at_most = INFINITY;
    vxd_field_rotation(at + 3, rotation);
    for (size_t i = 0; i < call->in.n_spheres; i++) {
        const double *sphere = call->in.spheres + 4 * i;
        double p[3];
        double low;
        double high;

        vxd_field_place_sphere(&call->field, at, rotation, sphere, p);
        low = vxd_field_subd(vxd_field_surface_bound(&call->field, p), sphere[3]);
        high = vxd_field_subd(vxd_field_surface_at_most(&call->field, p), sphere[3]);
        *at_least = low < *at_least ? low : *at_least;
        *at_most = high < *at_most ? high : *at_most;
    }
}

/* The least clearance at one pose, as far as it matters: what is above `bound`, and no contact, may
 * be given larger. */
VXD_HD double vxd_field_pose_clearance(const struct vxd_field_follow_call *call,
                                       size_t pose, double bound)
{
    const double *at = call->in.poses + 7 * pose;
    double rotation[3][3];
    double least = INFINITY;

    bound = bound > 0 ? bound : 0;
    vxd_field_rotation(at + 3, rotation);
    for (size_t i = 0; i < call->in.n_spheres; i++) {
        const double *sphere = call->in.spheres + 4 * i;
        double p[3];
        double clearance;

        vxd_field_place_sphere(&call->field, at, rotation, sphere, p);
        if (vxd_field_subd(vxd_field_surface_bound(&call->field, p), sphere[3]) > bound) {
            continue;
        }
        clearance = vxd_field_subd(
            vxd_field_surface(&call->field, p, vxd_addd(bound, sphere[3])), sphere[3]);
        least = clearance < least ? clearance : least;
        bound = clearance < bound && clearance > 0 ? clearance : bound;
    }
    return least;
}

#endif
