// SPDX-License-Identifier: Apache-2.0
/* Decoding a sensor's point buffer: any record layout to float32 positions and features. */
#ifndef VXD_GPU_VOXEL_CLOUD_H
#define VXD_GPU_VOXEL_CLOUD_H

#include "gpu/core/core.h"

#ifdef __cplusplus
extern "C" {
#endif

#define VXD_MAX_CHANNELS 64

/* One number of a point record: value = raw * scale + bias, computed in double. Raw
 * values are little-endian and need no alignment. */
struct vxd_field {
    uint32_t offset; /* bytes from the start of the record */
    enum vxd_dtype dtype;
    double scale;
    double bias;
};

enum vxd_channel_kind {
    VXD_CHANNEL_FIELD = 0, /* a field of the record */
    /* Component 0, 1 or 2 of the transformed position, times field.scale (0 counts as
     * 1) plus field.bias, in double. */
    VXD_CHANNEL_POSITION = 1,
    VXD_CHANNEL_CONSTANT = 2 /* the same value for every point (a sweep's time lag) */
};

/* One column of the feature matrix. */
struct vxd_channel {
    enum vxd_channel_kind kind;
    int component;
    float constant;
    struct vxd_field field;
};

/* How a sensor moved during its scan: at time 0 it has the cloud's pose, at time 1 the end's,
 * and in between it moves at constant velocity: the translation is linear, the rotation
 * turns about one axis at constant speed (slerp). Made by vxd_cloud_set_motion. */
struct vxd_cloud_motion {
    bool is_moving;
    struct vxd_field time;   /* of a point; below 0 counts as 0, above 1 as 1 */
    double begin[4], end[4]; /* unit quaternions x, y, z, w, their product not negative */
    double angle;            /* between them, 0 to pi / 2 */
    double inverse_sine;     /* of it; 0: they are so near that it is linear */
    double scale;            /* of the rotations */
    double translation[3];   /* at the end */
};

#define VXD_MAX_BODY_BOXES 32

struct vxd_cloud_box {
    double low[3], high[3]; /* half-open */
};

/* What a sensor sees of the robot that carries it: points nearer than min_range, and points in
 * boxes, in the frame that rotation * position_raw + translation is in. */
struct vxd_cloud_body {
    double min_range;   /* of position_raw; 0: none */
    double rotation[9]; /* row-major */
    double translation[3];
    int n_boxes; /* 0 to VXD_MAX_BODY_BOXES */
    struct vxd_cloud_box boxes[VXD_MAX_BODY_BOXES];
};

/* Points of a body: [0] those nearer than its min_range, [1] the others in its boxes. */
struct vxd_cloud_own {
    uint32_t n[2];
};

/* One buffer of point records with its pose. position_out = R * position_raw + t in
 * double, in the order ((r0*x + r1*y) + r2*z) + t, where each operation rounds once,
 * then rounded to float32. The caller subtracts the map origin from t in double
 * beforehand, so that maps far from zero keep their precision. */
struct vxd_cloud {
    const void *data; /* device memory, n_points * point_step bytes, borrowed */
    size_t n_points;
    uint32_t point_step; /* bytes a record, 1 to 65535 */
    struct vxd_field position[3];
    double rotation[9]; /* row-major; finite */
    double translation[3];
    int n_channels; /* 0 to VXD_MAX_CHANNELS */
    struct vxd_channel channels[VXD_MAX_CHANNELS];
    struct vxd_cloud_motion motion; /* moving: in place of rotation and translation */
    float
        *origins;  /* n x 3, device memory: where the sensor was at each point; or NULL */
    double *exact; /* n x 3, device memory: positions before they are rounded; or NULL */
    /* Points of it get positions that are not finite, whatever their pose; host memory, read
     * during the call; or NULL: there are none. */
    const struct vxd_cloud_body *body;
    struct vxd_cloud_own
        *own; /* device memory: their counts are added to these; or NULL */
};

/* Makes a cloud's motion from the rotations at its begin and end (unit quaternions x, y, z, w),
 * times `scale`, and the translation at its end. cloud->translation is the one at its
 * begin. A point without a finite time has no finite position. */
void vxd_cloud_set_motion(struct vxd_cloud *cloud, const struct vxd_field *time,
                          const double begin[4], const double end[4], double scale,
                          const double translation[3]);

/* The least and greatest finite value of a field of a cloud in host memory; 0 and 0 where there
 * is none. */
void vxd_cloud_field_range(const struct vxd_cloud *cloud, const struct vxd_field *field,
                           double *low, double *high);

/* Decodes one cloud.
 *
 * in      cloud      as above; the struct is copied, the data borrowed until the wait
 * out     positions  n x 3 float32, metres, in the frame the pose maps to; device memory
 *         features   n x n_channels float32; device memory; NULL when n_channels is 0
 * errors  INVALID_ARGUMENT  a field's type unknown or its end past point_step, a pose that
 *                           is not finite, n_points * point_step overflows; a body that
 *                           is not finite, too many boxes, a box without inside; err.field
 *                           names it as "position[1]", "channels[3]", "rotation", "time[0]",
 *                           "body.boxes[2]" ...
 * order   row i is point i; equal on every backend, bit for bit
 * sync    asynchronous
 * Non-finite positions are passed on: vxd_voxelize drops and counts them. Features, also those that
 * are positions, are of all points. */
enum vxd_status vxd_cloud_decode(struct vxd_queue *queue, const struct vxd_cloud *cloud,
                                 float *positions, float *features, struct vxd_err *err);

#ifdef __cplusplus
}
#endif
#endif
