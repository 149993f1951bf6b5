// SPDX-License-Identifier: Apache-2.0
/* Lidar scans into volumes: points with the pose of their sensor, whose rays say where a surface
 * is and what is free before it.
 *
 * Two ways. Along rays: each ray observes the voxels that it crosses from mu before its hit to mu
 * behind it, where the distance is measured along the ray (voxblox's simple integrator). By range
 * image: the scan is projected to rows and columns of beams, the nearest point of each pixel
 * counts, and each voxel of the touched blocks observes the pixel that its centre projects to; the
 * distance is the pixel's range less the voxel's. Rays leave no voxel out near the sensor, are
 * exact where beams graze a surface, and each starts where its sensor was; the image fills the
 * space between beams.
 *
 * A scan is one observation: a voxel takes the weighted mean of all rays that observe it, and then
 * one step of the volume's running average. The sums are whole numbers, so that results are equal
 * on every backend, bit for bit, whatever the order. In compact volumes the sum of the weights is
 * rounded to a whole number, at least 1.
 *
 * The sensor's frame is x forward, y left, z up. */
#ifndef VXD_GPU_VOLUME_SCAN_VOLUME_SCAN_H
#define VXD_GPU_VOLUME_SCAN_VOLUME_SCAN_H

#include "gpu/volume/volume.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VXD_LIDAR_MAX_POINTS ((size_t)1 << 24)

enum vxd_volume_scan_method {
    VXD_LIDAR_ALONG_RAYS = 0,
    VXD_LIDAR_RANGE_IMAGE = 1
};

struct vxd_volume_scan {
    /* n_points rows of x, y, z, float32, metres, in the sensor's frame at the moment of each
     * point; device memory, as the features are. Points that are not finite are left out. */
    const float *points;
    size_t n_points; /* at most VXD_LIDAR_MAX_POINTS */
    /* n_features numbers a point, of which these columns mean something; -1: there is none. */
    const float *features;
    int n_features;
    int time_column;   /* 0 at T_map_sensor to 1 at T_map_sensor_end; clamped */
    int normal_column; /* the first of three: the surface's normal, sensor's frame */
    int label_column;  /* 1 to 255; all else is no label. For volumes with labels */
    const uint8_t
        *labels; /* the same, a byte a point; NULL: none, or a column has them */

    struct vxd_volume_pose T_map_sensor;
    /* Between the two the sensor turns about one axis, less than 170 degrees, and moves along a
     * line, both evenly. Used with a time column. */
    struct vxd_volume_pose T_map_sensor_end;

    enum vxd_volume_scan_method method;
    struct vxd_volume_lidar lidar; /* RANGE_IMAGE */
    /* RANGE_IMAGE: all points are moved to the sensor's frame at this time, 0 to 1, and projected
     * from there. */
    double image_time;

    /* Nearer points are left out; farther ones hit nothing, but what is before range_max_m is
     * free on their rays. 0 <= min < max <= 1000 */
    double range_min_m;
    double range_max_m;
    /* What is known to be free: voxels of blocks that the volume has get an observation of +mu and
     * of `weight`, where rays pass them, up to so far from the sensor; a voxel that the scan
     * observes near a surface gets none. By range image, blocks whose centre is within it observe
     * the image. 0: only the touched blocks learn of it. */
    double carve_m;

    enum vxd_volume_weighting weighting; /* z is the range */
    double weight;                       /* > 0, at most 65535; 0 = 1 */
    /* Weights are multiplied by the cosine of the angle between ray and normal (at least 0.01),
     * where a point has a normal. */
    bool by_angle;
};

struct vxd_volume_scan_result {
    size_t n_used;   /* points that hit */
    size_t n_beyond; /* farther than range_max_m */
    size_t
        n_dropped; /* not finite, nearer than range_min_m, or outside of the keys' range */
    size_t n_touched; /* blocks near the hits */
    size_t n_new;     /* of these, new in the volume */
    size_t n_carved;  /* other blocks that learnt of free space */
};

/* Adds a scan to a volume. Blocking (counts are read); grows.
 * errors  INVALID_ARGUMENT    a scan outside the ranges above; err.field names it
 *         RESOURCE_EXHAUSTED  over max_bytes or the budget, or more than 2^22 blocks; what the
 *                             volume knows is unchanged */
enum vxd_status vxd_volume_integrate_scan(struct vxd_queue *queue,
                                          struct vxd_volume *volume,
                                          const struct vxd_volume_scan *scan,
                                          struct vxd_volume_scan_result *out,
                                          struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
