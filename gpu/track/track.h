// SPDX-License-Identifier: Apache-2.0
/* Tracking of a depth camera against a volume (frame to model; ASH, section 6.2): the volume is
 * ray cast from where the camera is thought to be, and the image is moved until it lies on what
 * the rays met.
 *
 * A pose is found or it is not: a result is VXD_TRACK_OK, or LOST with a reason, and then its pose
 * is the prior one and must not be used for integration.
 *
 * The sums of the normal equations are taken in one fixed order, so that a pose has the same bits
 * on every backend and with any number of threads. */
#ifndef VXD_GPU_TRACK_TRACK_H
#define VXD_GPU_TRACK_TRACK_H

#include "gpu/volume/volume.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VXD_TRACK_MAX_LEVELS 4

/* What is minimised.
 * POINT_TO_PLANE  distances of the image's points to the planes of the points that the rays met
 * INTENSITY       differences of grey between the image and the volume's colours
 * HYBRID          both; intensity holds the camera where the surface does not */
enum vxd_track_method {
    VXD_TRACK_POINT_TO_PLANE = 0,
    VXD_TRACK_INTENSITY = 1,
    VXD_TRACK_HYBRID = 2
};

enum vxd_track_robust {
    VXD_TRACK_HUBER = 0,
    VXD_TRACK_TUKEY = 1,
    VXD_TRACK_SQUARES = 2 /* all weights are 1 */
};

/* Zeros are the defaults. */
struct vxd_track_options {
    enum vxd_track_method method;
    enum vxd_track_robust robust;
    /* Gauss-Newton steps on each level of the pyramid, coarsest first; the last level is the
     * image itself, and each one before it has half the width. n_levels 0: {8, 4, 3}. */
    int iterations[VXD_TRACK_MAX_LEVELS]; /* 0 to 100 */
    int n_levels;
    /* Pixels of the finest level at most, 1000 to VXD_TRACK_MAX_PIXELS: larger images are averaged
     * down by whole factors. 0: 160000, which is as accurate as more for a third of the time. */
    int max_pixels;
    double max_distance_m;  /* pairs that are farther apart are outliers; 0: 0.07 */
    double robust_scale_m;  /* where the weights begin to fall (Huber) or end (Tukey);
                                  0: 0.02, of Tukey 0.07 */
    double intensity_scale; /* the same, of grey from 0 to 1; 0: 0.1, of Tukey 0.3 */
    double intensity_m;     /* a grey difference of 1 counts as this distance; 0: 0.1 */
    double min_weight;      /* voxels of less weight are no surface */
    double min_fitness;     /* inliers a pixel with depth; 0: 0.25 */
    double min_agreement;   /* inliers a pixel that projects to a surface; 0: 0.65 */
    double
        min_constraint; /* least eigenvalue of the information over their mean; 0: 0.006 */
    double max_translation_m; /* from the prior pose; 0: 0.3 */
    double max_rotation_deg;  /* from the prior pose; 0: 20 */
    bool no_filter;           /* without the bilateral filter of the depths */
};

#define VXD_TRACK_MAX_PIXELS (1 << 19)

enum vxd_track_status {
    VXD_TRACK_OK = 0,
    VXD_TRACK_LOST = 1
};

enum vxd_track_reason {
    VXD_TRACK_FOUND = 0,
    VXD_TRACK_NO_DEPTH = 1,        /* fewer than VXD_TRACK_MIN_PIXELS pixels have depth */
    VXD_TRACK_TOO_FEW_INLIERS = 2, /* below min_fitness or min_agreement */
    VXD_TRACK_SINGULAR = 3,        /* below min_constraint: a direction is not held */
    VXD_TRACK_MOVED_TOO_FAR = 4    /* from the prior pose */
};

#define VXD_TRACK_MIN_PIXELS 200

struct vxd_track_result {
    enum vxd_track_status status;
    enum vxd_track_reason reason;
    struct vxd_volume_pose T_map_camera; /* LOST: the prior one */
    /* Sum of weight * J^T J at the pose that was found, for T_map_camera * exp(x) with
     * x = (translation in metres, rotation in radians) in the camera's frame; row-major. Divided
     * by rmse_m^2 it is the inverse of the pose's covariance. */
    double information[36];
    double fitness;    /* inliers a pixel with depth, 0 to 1 */
    double agreement;  /* inliers a pixel that projects to a surface */
    double constraint; /* see min_constraint */
    double rmse_m;     /* root of the mean square distance of inliers to their planes */
    size_t n_inliers;
    size_t n_iterations;
};

/* Fills in the defaults.
 * errors  INVALID_ARGUMENT  not finite or outside of what each may be; err.field names it */
enum vxd_status vxd_track_options_init(struct vxd_track_options *options,
                                       struct vxd_err *err);

/* Tracks a frame against the volume; frame->T_map_camera is the prior pose. The volume does not
 * change. Blocking.
 *
 * errors  INVALID_ARGUMENT    a frame that vxd_volume_activate refuses, options, colours missing
 *                             from the frame or the volume where the method needs them
 *         RESOURCE_EXHAUSTED  no scratch: about 130 bytes a pixel of the finest level
 * order   equal on every backend and with any number of threads, bit for bit
 * source  ASH, section 6.2; KinectFusion (projective association); Huber, Tukey by iteratively
 *         reweighted least squares */
enum vxd_status vxd_track(struct vxd_queue *queue, struct vxd_volume *volume,
                          const struct vxd_volume_frame *frame,
                          const struct vxd_track_options *options,
                          struct vxd_track_result *out, struct vxd_err *err);

/* ---- Where a camera is between frames ---- */

/* What is known of a camera that is tracked: its last pose, and how it moved from the one before.
 * All zeros know nothing. */
struct vxd_track_state {
    bool has_pose;
    bool has_motion;
    struct vxd_volume_pose last;   /* T_map_camera of the last frame that was found */
    struct vxd_volume_pose motion; /* from the camera now to the camera before */
};

/* Where the next frame is expected: the last pose, moved on as it moved before; the identity where
 * nothing is known. */
void vxd_track_predict(const struct vxd_track_state *state, struct vxd_volume_pose *out);

/* Takes the pose of a frame that was found. */
void vxd_track_accept(struct vxd_track_state *state, const struct vxd_volume_pose *pose);

/* A frame was lost: the next one is expected at the last pose. */
void vxd_track_lose(struct vxd_track_state *state);

#ifdef __cplusplus
}
#endif
#endif
