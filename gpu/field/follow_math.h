// SPDX-License-Identifier: Apache-2.0
/* A robot of spheres along trajectories, as both backends compile it. Of every pose bounds of the
 * clearance are found at once, from the field at the spheres' centres: poses whose upper bound is not
 * above 0 are in contact, and only those are searched that can have the least clearance, or may be in
 * contact before these. */
#ifndef VXD_GPU_FIELD_FOLLOW_MATH_H
#define VXD_GPU_FIELD_FOLLOW_MATH_H

#include "gpu/field/collide_math.h"

/* Not above the distance from a point, in the field's frame, to the obstacles' surface, and found at
 * once. Distances are signed, and at most the reach of SURFACE, as points outside the box have;
 * where this is the reach, it is the distance. */
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

/* A sphere whose distance has to be searched. */
struct vxd_field_probe {
    double p[3];
    int at[3];
    double sign;  /* of the distance: -1 in an obstacle */
    double limit; /* of squares; what is farther does not matter */
};

/* Whether the distance of a sphere at p has to be searched, as far as it matters: what makes the
 * clearance larger than `bound` does not, nor what is as far as distances reach, which is known. */
VXD_HD bool vxd_field_probe_sphere(const struct vxd_field_view *field, double r,
                                   double bound, struct vxd_field_probe *probe)
{
    double at_least = vxd_field_surface_bound(field, probe->p);
    double limit;

    if (vxd_field_subd(at_least, r) > bound ||
        at_least >= vxd_field_surface_reach(field) ||
        !vxd_field_is_inside(field, probe->p, probe->at)) {
        return false;
    }
    /* Rounding must not leave out what is as far as the limit. */
    limit = vxd_addd(bound, r) + VXD_FIELD_SLACK;
    probe->sign = 1;
    probe->limit = vxd_field_square(limit);
    if (vxd_field_is_obstacle(field, probe->at[0], probe->at[1], probe->at[2])) {
        probe->sign = -1;
        probe->limit = INFINITY;
        return true;
    }
    return limit > 0;
}

/* The clearance of a sphere whose search found a cube, or none. */
VXD_HD double vxd_field_probe_clearance(const struct vxd_field_view *field,
                                        const struct vxd_field_probe *probe, double r,
                                        const struct vxd_field_cube *cube)
{
    double reach = vxd_field_surface_reach(field);
    double distance = cube->is_found && cube->square <= vxd_field_square(reach)
                          ? vxd_field_sqrt(cube->square)
                          : reach;

    return vxd_field_subd(probe->sign < 0 ? -distance : distance, r);
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

/* Not below that distance, and found at once: the distance to the cube whose centre is
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

/* Bounds of the least clearance, in voxels, of the robot's spheres at one pose. They are equal
 * where nothing is as near as distances reach, and only there. */
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

/* The clearance that all poses have at most, where nothing is as near as distances reach; infinite
 * without poses or spheres. */
VXD_HD double vxd_field_most_clearance(const struct vxd_field_follow_call *call)
{
    double r = -INFINITY;

    for (size_t i = 0; i < call->in.n_spheres && call->in.n_steps > 0; i++) {
        r = call->in.spheres[4 * i + 3] > r ? call->in.spheres[4 * i + 3] : r;
    }
    return vxd_field_subd(vxd_field_surface_reach(&call->field), r);
}

/* Whether a pose has to be searched, its lower bound given: it can have less clearance than its
 * trajectory's `bound`, or be in contact before the first step that is known to be. */
VXD_HD bool vxd_field_pose_is_open(double at_least, double bound, bool is_before_first)
{
    return at_least <= (is_before_first && bound < 0 ? 0.0 : bound);
}

/* The least clearance at one pose, as far as it matters: what is above `bound`, and no contact where
 * that matters, may be given larger. */
VXD_HD double vxd_field_pose_clearance(const struct vxd_field_follow_call *call,
                                       size_t pose, double bound, bool is_before_first)
{
    const double *at = call->in.poses + 7 * pose;
    double rotation[3][3];
    double least = INFINITY;

    vxd_field_rotation(at + 3, rotation);
    for (size_t i = 0; i < call->in.n_spheres; i++) {
        const double *sphere = call->in.spheres + 4 * i;
        double limit = bound < 0 && is_before_first ? 0.0 : bound;
        struct vxd_field_cube cube;
        struct vxd_field_probe probe;
        double clearance;

        vxd_field_place_sphere(&call->field, at, rotation, sphere, probe.p);
        if (!vxd_field_probe_sphere(&call->field, sphere[3], limit, &probe)) {
            continue;
        }
        vxd_field_find_cube(&call->field, probe.p, probe.at, probe.limit, &cube);
        clearance = vxd_field_probe_clearance(&call->field, &probe, sphere[3], &cube);
        least = clearance < least ? clearance : least;
        bound = clearance < bound ? clearance : bound;
        is_before_first = is_before_first && least > 0;
    }
    return least;
}

#endif
