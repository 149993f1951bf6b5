// SPDX-License-Identifier: Apache-2.0
/* A street of houses, cars, poles and trees that a turning lidar scans, ray-traced in double with
 * exact poses, for tests and benchmarks of odometry. */
#ifndef VXD_TESTS_SUPPORT_ODOMETRY_STREET_H
#define VXD_TESTS_SUPPORT_ODOMETRY_STREET_H

#include "gpu/volume/volume.h"

enum street_kind {
    STREET_TOWN = 0,   /* houses with gaps, cars, poles */
    STREET_TUNNEL = 1, /* two endless walls and a ceiling: nothing holds along x */
    STREET_FIELD = 2   /* bare ground: nothing holds along x, y, and about z */
};

/* A scan of beams x columns rays; points without a return are NaN. */
struct street_scan {
    size_t n;
    float *points; /* n x 3, sensor's frame at each point's time */
    float *times;  /* n: 0 to 1 */
};

struct street_lidar {
    int beams;       /* from -25 to +3 degrees */
    int columns;     /* a turn */
    double range_m;  /* returns beyond are lost */
    double noise_m;  /* standard deviation along the ray */
    bool is_instant; /* all rays are of the end's pose */
};

/* The sensor's pose after `step` tenths of a second along a street that bends: from rest to 12 m/s in
 * two seconds, with pitch and roll of some tenths of a degree. Any real number is a step. */
struct vxd_volume_pose street_pose(double step);

/* The scan that ends at a step and began one before. False without memory. */
bool street_shoot(enum street_kind kind, const struct street_lidar *lidar, double step,
                  uint64_t seed, struct street_scan *out);
void street_free(struct street_scan *scan);

/* Metres between the positions, and degrees between the rotations, of two poses. */
double street_apart_m(const struct vxd_volume_pose *a, const struct vxd_volume_pose *b);
double street_apart_deg(const struct vxd_volume_pose *a, const struct vxd_volume_pose *b);

/* a^-1 b. */
struct vxd_volume_pose street_between(const struct vxd_volume_pose *a,
                                      const struct vxd_volume_pose *b);

#endif
