// SPDX-License-Identifier: Apache-2.0
/* Decoding arithmetic of one point record; compiled by both gcc and nvcc. */
#ifndef VXD_GPU_VOXEL_CLOUD_MATH_H
#define VXD_GPU_VOXEL_CLOUD_MATH_H

#include <math.h>
#include <string.h>

#include "gpu/core/core_math.h"
#include "gpu/voxel/cloud.h"

/* Bits of a little-endian number of 1, 2, 4 or 8 bytes at any address. */
VXD_HD uint64_t vxd_raw_load(const uint8_t *p, int n_bytes)
{
    uint64_t bits = 0;

    switch (n_bytes) {
    case 8:
        bits = (uint64_t)p[7] << 56 | (uint64_t)p[6] << 48 | (uint64_t)p[5] << 40 |
               (uint64_t)p[4] << 32 | (uint64_t)p[3] << 24 | (uint64_t)p[2] << 16 |
               (uint64_t)p[1] << 8 | (uint64_t)p[0];
        break;
    case 4:
        bits = (uint64_t)p[3] << 24 | (uint64_t)p[2] << 16 | (uint64_t)p[1] << 8 |
               (uint64_t)p[0];
        break;
    case 2:
        bits = (uint64_t)p[1] << 8 | (uint64_t)p[0];
        break;
    default:
        bits = p[0];
        break;
    }
    return bits;
}

VXD_HD float vxd_float_from_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

VXD_HD double vxd_double_from_bits(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/* IEEE binary16, subnormals, infinities and NaN included; every value is exact. */
VXD_HD double vxd_half_to_double(uint32_t bits)
{
    uint64_t sign = (uint64_t)(bits & 0x8000u) << 48;
    uint64_t exponent = (bits >> 10) & 31u;
    uint64_t mantissa = bits & 1023u;

    if (exponent == 0) {
        double magnitude = (double)mantissa * (1.0 / 16777216.0);

        return sign != 0 ? -magnitude : magnitude;
    }
    if (exponent == 31) {
        return vxd_double_from_bits(sign | 0x7ff0000000000000ULL | mantissa << 42);
    }
    return vxd_double_from_bits(sign | (exponent + 1008u) << 52 | mantissa << 42);
}

/* The number that `bits`, as returned by vxd_raw_load, represent. */
VXD_HD double vxd_raw_value(uint64_t bits, enum vxd_dtype dtype)
{
    switch (dtype) {
    case VXD_INT8:
        return (double)(int8_t)(uint8_t)bits;
    case VXD_UINT8:
        return (double)(uint8_t)bits;
    case VXD_INT16:
        return (double)(int16_t)(uint16_t)bits;
    case VXD_UINT16:
        return (double)(uint16_t)bits;
    case VXD_INT32:
        return (double)(int32_t)(uint32_t)bits;
    case VXD_UINT32:
        return (double)(uint32_t)bits;
    case VXD_INT64:
        return (double)(int64_t)bits;
    case VXD_UINT64:
        return (double)bits;
    case VXD_FLOAT32:
        return (double)vxd_float_from_bits((uint32_t)bits);
    case VXD_FLOAT64:
        return vxd_double_from_bits(bits);
    case VXD_FLOAT16:
        return vxd_half_to_double((uint32_t)bits);
    case VXD_BFLOAT16:
        return (double)vxd_float_from_bits((uint32_t)bits << 16);
    case VXD_DTYPE_UNSPECIFIED:
        break;
    }
    return 0.0;
}

/* Bytes of a checked dtype; vxd_dtype_bytes is host code. */
VXD_HD int vxd_raw_bytes(enum vxd_dtype dtype)
{
    switch (dtype) {
    case VXD_INT8:
    case VXD_UINT8:
        return 1;
    case VXD_INT16:
    case VXD_UINT16:
    case VXD_FLOAT16:
    case VXD_BFLOAT16:
        return 2;
    case VXD_FLOAT64:
    case VXD_INT64:
    case VXD_UINT64:
        return 8;
    default:
        return 4;
    }
}

/* raw * scale + bias of one field of a record. */
VXD_HD double vxd_field_value(const struct vxd_field *field, const uint8_t *record)
{
    uint64_t bits = vxd_raw_load(record + field->offset, vxd_raw_bytes(field->dtype));

    return vxd_addd(vxd_muld(vxd_raw_value(bits, field->dtype), field->scale),
                    field->bias);
}

/* Converts to float32; every NaN becomes the same one, because devices differ in its
 * bits. */
VXD_HD float vxd_round_to_float(double value)
{
    return vxd_canonical_nanf((float)value);
}

/* The sine of 0 to pi / 2, in operations that are equal everywhere: a polynomial of degree
 * 21, whose error is below 1e-15. */
VXD_HD double vxd_cloud_sine(double x)
{
    const double inverse[10] = {1.0 / 6,   1.0 / 20,  1.0 / 42,  1.0 / 72,  1.0 / 110,
                                1.0 / 156, 1.0 / 210, 1.0 / 272, 1.0 / 342, 1.0 / 420};
    const double square = vxd_muld(x, x);
    double sum = 1;

    for (int k = 9; k >= 0; k--) {
        sum = vxd_addd(1.0, -vxd_muld(vxd_muld(square, inverse[k]), sum));
    }
    return vxd_muld(x, sum);
}

/* Where the sensor is at a time; `rotation` is row-major. */
VXD_HD void vxd_cloud_pose_at(const struct vxd_cloud *cloud, double time,
                              double rotation[9], double translation[3])
{
    const struct vxd_cloud_motion *motion = &cloud->motion;
    const double t = time < 0 ? 0 : time > 1 ? 1 : time; /* NaN stays */
    const double left = vxd_addd(1.0, -t);
    double a = left;
    double b = t;
    double q[4];

    if (motion->inverse_sine != 0) {
        a = vxd_muld(vxd_cloud_sine(vxd_muld(left, motion->angle)), motion->inverse_sine);
        b = vxd_muld(vxd_cloud_sine(vxd_muld(t, motion->angle)), motion->inverse_sine);
    }
    for (int i = 0; i < 4; i++) {
        q[i] = vxd_addd(vxd_muld(a, motion->begin[i]), vxd_muld(b, motion->end[i]));
    }
    for (int i = 0; i < 3; i++) {
        const int j = (i + 1) % 3;
        const int k = (i + 2) % 3;
        const double ij = vxd_muld(q[i], q[j]);
        const double ik = vxd_muld(q[i], q[k]);
        const double squares = vxd_addd(vxd_muld(q[j], q[j]), vxd_muld(q[k], q[k]));

        rotation[3 * i + i] =
            vxd_muld(motion->scale, vxd_addd(1.0, -vxd_muld(2.0, squares)));
        rotation[3 * i + j] =
            vxd_muld(motion->scale, vxd_muld(2.0, vxd_addd(ij, -vxd_muld(q[k], q[3]))));
        rotation[3 * i + k] =
            vxd_muld(motion->scale, vxd_muld(2.0, vxd_addd(ik, vxd_muld(q[j], q[3]))));
        translation[i] = vxd_addd(vxd_muld(left, cloud->translation[i]),
                                  vxd_muld(t, motion->translation[i]));
    }
}

/* Position, not rounded yet, and origin of a record by a pose. */
VXD_HD void vxd_cloud_apply(const struct vxd_cloud *cloud, const uint8_t *record,
                            const double rotation[9], const double translation[3],
                            double position[3], float origin[3])
{
    double x = vxd_field_value(&cloud->position[0], record);
    double y = vxd_field_value(&cloud->position[1], record);
    double z = vxd_field_value(&cloud->position[2], record);

    for (size_t axis = 0; axis < 3; axis++) {
        const double *r = &rotation[3 * axis];
        double sum = vxd_muld(r[0], x);

        sum = vxd_addd(sum, vxd_muld(r[1], y));
        sum = vxd_addd(sum, vxd_muld(r[2], z));
        position[axis] = vxd_addd(sum, translation[axis]);
        origin[axis] = vxd_round_to_float(translation[axis]);
    }
}

/* Transformed position of a record, in double and rounded, and where the sensor was at its time. */
VXD_HD void vxd_cloud_place(const struct vxd_cloud *cloud, const uint8_t *record,
                            double exact[3], float position[3], float origin[3])
{
    double rotation[9];
    double translation[3];

    if (!cloud->motion.is_moving) {
        vxd_cloud_apply(cloud, record, cloud->rotation, cloud->translation, exact,
                        origin);
    } else {
        vxd_cloud_pose_at(cloud, vxd_field_value(&cloud->motion.time, record), rotation,
                          translation);
        vxd_cloud_apply(cloud, record, rotation, translation, exact, origin);
    }
    for (int axis = 0; axis < 3; axis++) {
        position[axis] = vxd_round_to_float(exact[axis]);
    }
}

VXD_HD void vxd_cloud_position(const struct vxd_cloud *cloud, const uint8_t *record,
                               float position[3])
{
    double exact[3];
    float origin[3];

    vxd_cloud_place(cloud, record, exact, position, origin);
}

/* A cloud whose points of a body are left out of positions that were decoded. */
struct vxd_cloud_body_call {
    struct vxd_cloud_body body;
    const uint8_t *data;
    size_t n_points;
    size_t point_step;
    struct vxd_field position[3];
    float *positions;
    double *exact; /* or NULL */
    struct vxd_cloud_own *own;
};

VXD_HD bool vxd_cloud_is_in_box(const struct vxd_cloud_box *box, const double p[3])
{
    return p[0] >= box->low[0] && p[0] < box->high[0] && p[1] >= box->low[1] &&
           p[1] < box->high[1] && p[2] >= box->low[2] && p[2] < box->high[2];
}

/* Which of the body's counts a point is of: 0, 1, or -1 where it is none of the body's. */
VXD_HD int vxd_cloud_own_kind(const struct vxd_cloud_body *body, const double raw[3])
{
    double square = vxd_addd(vxd_addd(vxd_muld(raw[0], raw[0]), vxd_muld(raw[1], raw[1])),
                             vxd_muld(raw[2], raw[2]));
    double p[3];

    if (square < vxd_muld(body->min_range, body->min_range)) {
        return 0;
    }
    for (int axis = 0; axis < 3 && body->n_boxes > 0; axis++) {
        const double *r = body->rotation + 3 * (size_t)axis;

        p[axis] = vxd_muld(r[0], raw[0]);
        p[axis] = vxd_addd(p[axis], vxd_muld(r[1], raw[1]));
        p[axis] = vxd_addd(p[axis], vxd_muld(r[2], raw[2]));
        p[axis] = vxd_addd(p[axis], body->translation[axis]);
    }
    for (int i = 0; i < body->n_boxes; i++) {
        if (vxd_cloud_is_in_box(&body->boxes[i], p)) {
            return 1;
        }
    }
    return -1;
}

/* Takes point i's position away where it is of the body; says of which kind it is. */
VXD_HD int vxd_cloud_leave_out(const struct vxd_cloud_body_call *call, size_t i)
{
    const uint8_t *record = call->data + i * call->point_step;
    double raw[3] = {vxd_field_value(&call->position[0], record),
                     vxd_field_value(&call->position[1], record),
                     vxd_field_value(&call->position[2], record)};
    int kind = vxd_cloud_own_kind(&call->body, raw);

    for (size_t axis = 0; axis < 3 && kind >= 0; axis++) {
        call->positions[3 * i + axis] = vxd_round_to_float(NAN);
        if (call->exact != NULL) {
            call->exact[3 * i + axis] = NAN;
        }
    }
    return kind;
}

/* A component of the position as a feature. With scale 0 or 1 and bias 0 its bits
 * stay, the sign of zero included. */
VXD_HD float vxd_cloud_scaled(const struct vxd_channel *channel, float component)
{
    double scale = channel->field.scale == 0 ? 1 : channel->field.scale;

    if (scale == 1 && channel->field.bias == 0) {
        return component;
    }
    return vxd_round_to_float(
        vxd_addd(vxd_muld((double)component, scale), channel->field.bias));
}

/* One feature of a record whose transformed position is known. */
VXD_HD float vxd_cloud_feature(const struct vxd_channel *channel, const uint8_t *record,
                               const float position[3])
{
    if (channel->kind == VXD_CHANNEL_POSITION) {
        return vxd_cloud_scaled(channel, position[channel->component]);
    }
    if (channel->kind == VXD_CHANNEL_CONSTANT) {
        return channel->constant;
    }
    return vxd_round_to_float(vxd_field_value(&channel->field, record));
}

#endif
