// SPDX-License-Identifier: Apache-2.0
/* Lidar odometry: scans are registered against a local map of the points of earlier ones, as
 * KISS-ICP does it. The sensor's motion is predicted at constant velocity; the distance up to which
 * points are paired follows from how wrong predictions have been; the map keeps up to 20 points a
 * voxel in a hash map and forgets what lies beyond the sensor's range.
 *
 * A pose is found or it is not: a result is VXD_ODOMETRY_OK, or LOST with a reason; then its pose is
 * the predicted one, the map stays as it was, and later scans are registered from the prediction.
 *
 * Sums are taken in one fixed order and the nearest point has one fixed rule for equal distances, so
 * that poses have the same bits on every backend of a machine and with any number of threads.
 *
 * source  KISS-ICP (Vizzo et al., 2023); the local map is a hash map of ASH */
#ifndef VXD_GPU_ODOMETRY_ODOMETRY_H
#define VXD_GPU_ODOMETRY_ODOMETRY_H

#include "gpu/hash/hash.h"
#include "gpu/volume/volume.h"

#ifdef __cplusplus
extern "C" {
#endif

struct vxd_odometry;

#define VXD_ODOMETRY_MAX_VOXEL_POINTS 20
#define VXD_ODOMETRY_MAX_SCAN_POINTS ((size_t)1 << 24)

/* What is minimised.
 * POINT_TO_PLANE  distances to the planes of the map's points around the nearest one; with a small
 *                 part of the weight to that point where they are on no plane. When the steps have
 *                 become short, pairs of more than three times inlier_m are left out, and more steps
 *                 follow
 * POINT_TO_POINT  distances between points, as KISS-ICP */
enum vxd_odometry_method {
    VXD_ODOMETRY_POINT_TO_PLANE = 0,
    VXD_ODOMETRY_POINT_TO_POINT = 1
};

/* Weight of a residual r with the threshold s: (s / (s + r^2))^2, as KISS-ICP has it; Huber's
 * min(1, s / |r|); or 1. */
enum vxd_odometry_robust {
    VXD_ODOMETRY_GEMAN_MCCLURE = 0,
    VXD_ODOMETRY_HUBER = 1,
    VXD_ODOMETRY_SQUARES = 2
};

/* Zeros are the defaults. */
struct vxd_odometry_options {
    double max_range_m; /* of points and of the map; 1e-2 to 10000; 0: 100 */
    double min_range_m; /* nearer points are not used; 0 to max_range_m */
    double
        voxel_size_m; /* of the map; max_range_m / 4096 to max_range_m; 0: a hundredth of it */
    int max_points; /* a voxel, 1 to 20; 0: 20 */
    enum vxd_odometry_method method;
    enum vxd_odometry_robust robust;
    /* The threshold before a motion was seen, metres: 1e-6 to 1e4; 0: two voxels. */
    double initial_threshold_m;
    /* Deviations from a prediction below this say nothing about the threshold, metres: 1e-9 to
     * 1e4; 0: a tenth of a voxel. */
    double min_motion_m;
    int max_iterations; /* 1 to 500; 0: 100 */
    /* Steps shorter than this, metres and radians, end; 1e-9 to 1; 0: 1e-4. */
    double convergence;
    /* A pair is an inlier within this distance, of planes or else of points, metres: 1e-7 to 1e4;
     * 0: three tenths of a voxel. */
    double inlier_m;
    double min_fitness;    /* inliers a point that is registered, 1e-6 to 1; 0: 0.35 */
    double min_constraint; /* of the least held direction, 1e-9 to 1; 0: 0.015 */
    double
        max_translation_m; /* metres from the predicted pose, 1e-6 to 1e4; 0: five voxels */
    double max_rotation_deg; /* from the predicted pose, 1e-6 to 180; 0: 20 */
    size_t max_bytes;        /* device memory of the map; 0: the context's budget */
};

enum vxd_odometry_status {
    VXD_ODOMETRY_OK = 0,
    VXD_ODOMETRY_LOST = 1
};

enum vxd_odometry_reason {
    VXD_ODOMETRY_FOUND = 0,
    VXD_ODOMETRY_TOO_FEW_POINTS = 1,  /* fewer than VXD_ODOMETRY_MIN_POINTS to register */
    VXD_ODOMETRY_TOO_FEW_INLIERS = 2, /* below min_fitness */
    VXD_ODOMETRY_SINGULAR = 3,        /* below min_constraint: a direction is not held */
    VXD_ODOMETRY_MOVED_TOO_FAR = 4,   /* from the predicted pose */
    VXD_ODOMETRY_NOT_CONVERGED = 5    /* the last step of max_iterations was long */
};

#define VXD_ODOMETRY_MIN_POINTS 30
/* Scans in a row that were lost until the prediction no longer moves. */
#define VXD_ODOMETRY_MAX_LOST 20

/* One scan. */
struct vxd_odometry_scan {
    const float *points; /* n x 3, metres, sensor's frame; device memory, borrowed */
    size_t n_points;     /* at most VXD_ODOMETRY_MAX_SCAN_POINTS */
    /* Of the scan; where this and that of the scan before are not 0, the motion between them is
     * scaled by the time. */
    int64_t stamp_ns;
    bool has_prior; /* else the pose is predicted */
    struct vxd_volume_pose prior;
};

struct vxd_odometry_result {
    enum vxd_odometry_status status;
    enum vxd_odometry_reason reason;
    bool is_first; /* the map was empty: the pose is the prior or the initial one */
    struct vxd_volume_pose T_map_sensor; /* LOST: the predicted one */
    struct vxd_volume_pose predicted;
    /* Of T_map_sensor, as ROS has it: x, y, z in metres, then rotations about the map's axes at the
     * sensor, radians; row-major. Residuals count as independent. Zeros where there is none. */
    double covariance[36];
    double fitness; /* inliers a point that is registered, 0 to 1 */
    double
        constraint; /* least eigenvalue of the information over their mean, rotations measured at
                        * the mean range */
    double rmse_m;      /* root of the mean square distance of inliers */
    double threshold_m; /* that pairs had; they were as far apart as three of it */
    size_t n_used;      /* points within the ranges */
    size_t n_map;       /* of them, after the first downsampling: what the map may take */
    size_t n_registered; /* after the second */
    size_t n_inliers;
    size_t n_iterations;
    size_t n_lost; /* scans in a row that were lost, this one included */
};

struct vxd_odometry_info {
    struct vxd_odometry_options options; /* with the defaults filled in */
    struct vxd_volume_pose T_map_sensor; /* the last one, or the initial one */
    struct vxd_volume_pose motion;       /* between two scans: T_before_after */
    double threshold_m;
    size_t n_scans; /* registered */
    size_t n_lost;  /* scans that were lost since the begin */
    size_t n_lost_in_a_row;
    size_t n_voxels; /* of the map */
    size_t n_bytes;  /* device memory of the map */
    int64_t stamp_ns;
};

/* Fills in the defaults.
 * errors  INVALID_ARGUMENT  not finite or outside of what each may be; err.field names it */
enum vxd_status vxd_odometry_options_init(struct vxd_odometry_options *options,
                                          struct vxd_err *err);

/* in      initial  the first scan's pose; NULL: the identity
 * errors  as vxd_odometry_options_init; INVALID_ARGUMENT  "initial" is no pose
 *         RESOURCE_EXHAUSTED
 * owner   the caller */
enum vxd_status vxd_odometry_create(struct vxd_queue *queue,
                                    const struct vxd_odometry_options *options,
                                    const struct vxd_volume_pose *initial,
                                    struct vxd_odometry **out, struct vxd_err *err);
/* In queue order; NULL is fine. */
void vxd_odometry_destroy(struct vxd_queue *queue, struct vxd_odometry *odometry);

/* Forgets map and motion; the next scan is the first one. initial as above.
 * errors  INVALID_ARGUMENT, RESOURCE_EXHAUSTED  nothing changed */
enum vxd_status vxd_odometry_reset(struct vxd_queue *queue, struct vxd_odometry *odometry,
                                   const struct vxd_volume_pose *initial,
                                   struct vxd_err *err);

/* Where the sensor is expected to be at a stamp (0: after the time of one scan). */
void vxd_odometry_predict(const struct vxd_odometry *odometry, int64_t stamp_ns,
                          struct vxd_volume_pose *out);

/* The pose of the sensor at the begin of a scan in its frame at the end, for the deskewing of the
 * next scan by vxd_cloud_decode: the scan is as long as the time between two scans. The identity
 * until a motion was seen. */
void vxd_odometry_get_motion(const struct vxd_odometry *odometry,
                             struct vxd_volume_pose *T_end_begin);

/* a * b: with b that motion and a the pose at the end of the scan, the pose at its begin. out may be
 * one of the two. */
void vxd_pose_multiply(const struct vxd_volume_pose *a, const struct vxd_volume_pose *b,
                       struct vxd_volume_pose *out);

/* Registers a scan and, where it is not lost, adds it to the map. Blocking.
 *
 * errors  INVALID_ARGUMENT    "n_points"; "stamp_ns" not after the last one; "prior" is no pose
 *         OUT_OF_RANGE        the pose is more than a million voxels from the map's origin
 *         RESOURCE_EXHAUSTED  no scratch, about 100 bytes a point, or the map is at its limit;
 *                             neither map nor motion changed
 * order   equal on every backend and with any number of threads, bit for bit */
enum vxd_status vxd_odometry_register(struct vxd_queue *queue,
                                      struct vxd_odometry *odometry,
                                      const struct vxd_odometry_scan *scan,
                                      struct vxd_odometry_result *out,
                                      struct vxd_err *err);

void vxd_odometry_get_info(const struct vxd_odometry *odometry,
                           struct vxd_odometry_info *out);

/* The local map, borrowed: keys are the voxels floor(x / voxel_size_m) in the map's frame; values are
 * the number of points, one UINT32, and the points, FLOAT32, all x, then all y, then all z, 20 each,
 * metres from the voxel's low corner. */
struct vxd_hashmap *vxd_odometry_map(struct vxd_odometry *odometry);

#ifdef __cplusplus
}
#endif
#endif
