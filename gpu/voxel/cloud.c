// SPDX-License-Identifier: Apache-2.0
#include "gpu/voxel/cloud.h"

#include <math.h>

#include "gpu/core/core_cpu.h"
#include "gpu/voxel/cloud_math.h"
#include "gpu/voxel/voxel_backends.h"

#define MAX_POINT_STEP 65535
#define LEAST_ANGLE 1e-7 /* of which sines are linear to the last bit */

static enum vxd_status check_field(const struct vxd_field *field, uint32_t point_step,
                                   const char *name, int index, struct vxd_err *err)
{
    char path[32];
    size_t n_bytes = vxd_dtype_bytes(field->dtype);

    if (n_bytes != 0 && (uint64_t)field->offset + n_bytes <= point_step) {
        return VXD_OK;
    }
    (void)snprintf(path, sizeof path, "%s[%d]", name, index);
    if (n_bytes == 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, path, "%d is no element type",
                        (int)field->dtype);
    }
    return vxd_fail(err, VXD_INVALID_ARGUMENT, path,
                    "%zu bytes at offset %u end past the record of %u bytes", n_bytes,
                    field->offset, point_step);
}

static enum vxd_status check_channel(const struct vxd_channel *channel,
                                     uint32_t point_step, int index, struct vxd_err *err)
{
    char path[32];

    (void)snprintf(path, sizeof path, "channels[%d]", index);
    switch (channel->kind) {
    case VXD_CHANNEL_FIELD:
        return check_field(&channel->field, point_step, "channels", index, err);
    case VXD_CHANNEL_POSITION:
        if (channel->component < 0 || channel->component > 2) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, path,
                            "%d is no component of a position; 0, 1, 2 are",
                            channel->component);
        }
        return VXD_OK;
    case VXD_CHANNEL_CONSTANT:
        return VXD_OK;
    }
    return vxd_fail(err, VXD_INVALID_ARGUMENT, path, "%d is no kind of channel",
                    (int)channel->kind);
}

static enum vxd_status check_pose(const struct vxd_cloud *cloud, struct vxd_err *err)
{
    for (int i = 0; i < 9; i++) {
        if (!isfinite(cloud->rotation[i])) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "rotation",
                            "element %d of the rotation is not finite", i);
        }
    }
    for (int i = 0; i < 3; i++) {
        if (!isfinite(cloud->translation[i])) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "translation",
                            "component %d of the translation is not finite", i);
        }
    }
    return VXD_OK;
}

static double dot(const double a[4], const double b[4])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3];
}

void vxd_cloud_set_motion(struct vxd_cloud *cloud, const struct vxd_field *time,
                          const double begin[4], const double end[4], double scale,
                          const double translation[3])
{
    struct vxd_cloud_motion *motion = &cloud->motion;
    /* A rotation is two quaternions; between those that are nearer is the shorter way. */
    double sign = dot(begin, end) < 0 ? -1 : 1;
    double difference[4];
    double sum[4];

    *motion = (struct vxd_cloud_motion){.is_moving = true, .time = *time, .scale = scale};
    for (int i = 0; i < 4; i++) {
        motion->begin[i] = begin[i];
        motion->end[i] = sign * end[i];
        difference[i] = motion->end[i] - motion->begin[i];
        sum[i] = motion->end[i] + motion->begin[i];
    }
    motion->angle = 2 * atan2(sqrt(dot(difference, difference)), sqrt(dot(sum, sum)));
    motion->inverse_sine = motion->angle > LEAST_ANGLE ? 1 / sin(motion->angle) : 0;
    for (int i = 0; i < 3; i++) {
        motion->translation[i] = translation[i];
    }
}

void vxd_cloud_field_range(const struct vxd_cloud *cloud, const struct vxd_field *field,
                           double *low, double *high)
{
    *low = INFINITY;
    *high = -INFINITY;
    for (size_t i = 0; i < cloud->n_points; i++) {
        double value =
            vxd_field_value(field, (const uint8_t *)cloud->data + i * cloud->point_step);

        if (isfinite(value)) {
            *low = value < *low ? value : *low;
            *high = value > *high ? value : *high;
        }
    }
    if (*low > *high) {
        *low = *high = 0;
    }
}

static enum vxd_status check_motion(const struct vxd_cloud *cloud, struct vxd_err *err)
{
    const struct vxd_cloud_motion *motion = &cloud->motion;
    bool is_finite = isfinite(motion->angle) && isfinite(motion->scale) &&
                     isfinite(motion->inverse_sine);

    if (!motion->is_moving) {
        return VXD_OK;
    }
    for (int i = 0; i < 4; i++) {
        is_finite = is_finite && isfinite(motion->begin[i]) && isfinite(motion->end[i]) &&
                    (i == 3 || isfinite(motion->translation[i]));
    }
    if (!is_finite) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "motion", "is not finite");
    }
    return check_field(&motion->time, cloud->point_step, "time", 0, err);
}

static enum vxd_status check_sizes(const struct vxd_cloud *cloud, const float *positions,
                                   const float *features, struct vxd_err *err)
{
    size_t n_bytes;

    if (cloud->point_step < 1 || cloud->point_step > MAX_POINT_STEP) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "point_step",
                        "%u bytes a record, must be 1 to %d", cloud->point_step,
                        MAX_POINT_STEP);
    }
    if (cloud->n_channels < 0 || cloud->n_channels > VXD_MAX_CHANNELS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "n_channels",
                        "%d channels, must be 0 to %d", cloud->n_channels,
                        VXD_MAX_CHANNELS);
    }
    if (!vxd_size_mul(cloud->n_points, cloud->point_step, &n_bytes) ||
        !vxd_size_mul(cloud->n_points, VXD_MAX_CHANNELS * sizeof(float), &n_bytes)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "n_points",
                        "%zu points of %u bytes overflow", cloud->n_points,
                        cloud->point_step);
    }
    if (cloud->n_points > 0 && cloud->data == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "data", "missing");
    }
    if (cloud->n_points > 0 && positions == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "positions", "missing");
    }
    if (cloud->n_points > 0 && cloud->n_channels > 0 && features == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "features",
                        "missing, but there are %d channels", cloud->n_channels);
    }
    return VXD_OK;
}

static enum vxd_status check_box(const struct vxd_cloud_box *box, int index,
                                 struct vxd_err *err)
{
    char path[32];

    for (int i = 0; i < 3; i++) {
        if (!isfinite(box->low[i]) || !isfinite(box->high[i]) ||
            !(box->low[i] < box->high[i])) {
            (void)snprintf(path, sizeof path, "body.boxes[%d]", index);
            return vxd_fail(err, VXD_INVALID_ARGUMENT, path,
                            "goes from %g to %g along axis %d; both must be finite, and "
                            "the second one above the first",
                            box->low[i], box->high[i], i);
        }
    }
    return VXD_OK;
}

static enum vxd_status check_body(const struct vxd_cloud_body *body, struct vxd_err *err)
{
    bool is_finite = true;
    enum vxd_status status = VXD_OK;

    if (!(body->min_range >= 0) || !isfinite(body->min_range)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "body.min_range",
                        "is %g, it must be finite and not below 0", body->min_range);
    }
    if (body->n_boxes < 0 || body->n_boxes > VXD_MAX_BODY_BOXES) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "body.boxes",
                        "has %d entries, at most %d are possible", body->n_boxes,
                        VXD_MAX_BODY_BOXES);
    }
    for (int i = 0; i < 9; i++) {
        is_finite = is_finite && isfinite(body->rotation[i]) &&
                    isfinite(body->translation[i % 3]);
    }
    if (!is_finite) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "body",
                        "has a pose that is not finite");
    }
    for (int i = 0; i < body->n_boxes && status == VXD_OK; i++) {
        status = check_box(&body->boxes[i], i, err);
    }
    return status;
}

static enum vxd_status leave_out(struct vxd_queue *queue, const struct vxd_cloud *cloud,
                                 float *positions, struct vxd_err *err)
{
    struct vxd_cloud_body_call call = {.body = *cloud->body,
                                       .data = cloud->data,
                                       .n_points = cloud->n_points,
                                       .point_step = cloud->point_step,
                                       .positions = positions,
                                       .exact = cloud->exact,
                                       .own = cloud->own};

    memcpy(call.position, cloud->position, sizeof call.position);
    return VXD_BACKEND_FN(queue, vxd_cloud_leave_out)(queue, &call, err);
}

enum vxd_status vxd_cloud_decode(struct vxd_queue *queue, const struct vxd_cloud *cloud,
                                 float *positions, float *features, struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(check_sizes(cloud, positions, features, err));
    VXD_TRY(check_pose(cloud, err));
    VXD_TRY(check_motion(cloud, err));
    for (int i = 0; i < 3; i++) {
        VXD_TRY(check_field(&cloud->position[i], cloud->point_step, "position", i, err));
    }
    for (int i = 0; i < cloud->n_channels; i++) {
        VXD_TRY(check_channel(&cloud->channels[i], cloud->point_step, i, err));
    }
    if (cloud->body != NULL) {
        VXD_TRY(check_body(cloud->body, err));
    }
    if (cloud->n_points == 0) {
        return VXD_OK;
    }
    VXD_TRY(
        VXD_BACKEND_FN(queue, vxd_cloud_decode)(queue, cloud, positions, features, err));
    if (cloud->body != NULL) {
        status = leave_out(queue, cloud, positions, err);
    }
out:
    return status;
}
