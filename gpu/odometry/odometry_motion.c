// SPDX-License-Identifier: Apache-2.0
/* Where the sensor was, how it moves, and how wrong predictions are; poses in double. */
#include "gpu/odometry/odometry_internal.h"

/* How many steps a prediction by stamps may be long. */
#define MAX_RATIO 10.0

/* ---- Poses ---- */

void vxd_pose_multiply(const struct vxd_volume_pose *a, const struct vxd_volume_pose *b,
                       struct vxd_volume_pose *out)
{
    struct vxd_volume_pose product;

    for (int i = 0; i < 3; i++) {
        const double *row = a->rotation + 3 * (size_t)i;

        for (int j = 0; j < 3; j++) {
            product.rotation[3 * i + j] = row[0] * b->rotation[j] +
                                          row[1] * b->rotation[3 + j] +
                                          row[2] * b->rotation[6 + j];
        }
        product.translation[i] = row[0] * b->translation[0] + row[1] * b->translation[1] +
                                 row[2] * b->translation[2] + a->translation[i];
    }
    *out = product;
}

void vxd_pose_invert(const struct vxd_volume_pose *pose, struct vxd_volume_pose *out)
{
    struct vxd_volume_pose inverse = {{0}, {0}};

    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            inverse.rotation[3 * i + j] = pose->rotation[3 * j + i];
            inverse.translation[i] -= pose->rotation[3 * j + i] * pose->translation[j];
        }
    }
    *out = inverse;
}

static void cross(const double a[3], const double b[3], double out[3])
{
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
}

/* The rotation vector of a rotation, by its quaternion, which is exact for small angles. */
static void rotation_log(const double r[9], double w[3])
{
    const double squares[4] = {1 + r[0] + r[4] + r[8], 1 + r[0] - r[4] - r[8],
                               1 - r[0] + r[4] - r[8], 1 - r[0] - r[4] + r[8]};
    const double rows[4][4] = {{squares[0], r[7] - r[5], r[2] - r[6], r[3] - r[1]},
                               {r[7] - r[5], squares[1], r[1] + r[3], r[2] + r[6]},
                               {r[2] - r[6], r[1] + r[3], squares[2], r[5] + r[7]},
                               {r[3] - r[1], r[2] + r[6], r[5] + r[7], squares[3]}};
    size_t best = 0;
    double norm = 0;
    double sine = 0;
    double scale;
    double q[4];

    for (size_t i = 1; i < 4; i++) {
        best = squares[i] > squares[best] ? i : best;
    }
    for (size_t i = 0; i < 4; i++) {
        norm += rows[best][i] * rows[best][i];
    }
    norm = sqrt(norm) * (rows[best][0] < 0 ? -1 : 1);
    for (size_t i = 0; i < 4; i++) {
        q[i] = rows[best][i] / norm;
        sine += i > 0 ? q[i] * q[i] : 0;
    }
    sine = sqrt(sine);
    scale = sine < 1e-10 ? 2 : 2 * atan2(sine, q[0]) / sine;
    for (int i = 0; i < 3; i++) {
        w[i] = scale * q[1 + i];
    }
}

/* A part of a motion at constant velocity: exp(part * log(motion)), as a screw. */
static void take_part(const struct vxd_volume_pose *motion, double part,
                      struct vxd_volume_pose *out)
{
    const double *t = motion->translation;
    double w[3];
    double wt[3];
    double wwt[3];
    double rho[3];
    double angle;

    if (part == 1) {
        *out = *motion;
        return;
    }
    rotation_log(motion->rotation, w);
    angle = sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2]);
    cross(w, t, wt);
    cross(w, wt, wwt);
    for (int i = 0; i < 3; i++) { /* V^-1 t */
        double tail = angle < 1e-4 ? 1.0 / 12
                                   : (1 - angle * cos(angle / 2) / (2 * sin(angle / 2))) /
                                         (angle * angle);

        rho[i] = part * (t[i] - wt[i] / 2 + tail * wwt[i]);
        w[i] *= part;
    }
    angle *= fabs(part);
    cross(w, rho, wt);
    cross(w, wt, wwt);
    for (int i = 0; i < 3; i++) {
        const double first = angle < 1e-4 ? 1 : sin(angle) / angle;
        const double second = angle < 1e-4 ? 0.5 : (1 - cos(angle)) / (angle * angle);
        const double third =
            angle < 1e-4 ? 1.0 / 6 : (angle - sin(angle)) / (angle * angle * angle);
        const int j = (i + 1) % 3;
        const int k = (i + 2) % 3;

        out->translation[i] = rho[i] + second * wt[i] + third * wwt[i];
        out->rotation[3 * i + i] = 1 - second * (w[j] * w[j] + w[k] * w[k]);
        out->rotation[3 * i + j] = second * w[i] * w[j] - first * w[k];
        out->rotation[3 * i + k] = second * w[i] * w[k] + first * w[j];
    }
}

/* ---- The motion ---- */

void vxd_odometry_motion_init(const struct vxd_odometry_options *options,
                              const struct vxd_volume_pose *initial,
                              struct vxd_odometry_motion *out)
{
    static const struct vxd_volume_pose identity = {
        .rotation = {1, 0, 0, 0, 1, 0, 0, 0, 1}};

    *out = (struct vxd_odometry_motion){.last = initial != NULL ? *initial : identity,
                                        .found = initial != NULL ? *initial : identity,
                                        .step = identity,
                                        .squares = options->initial_threshold_m *
                                                   options->initial_threshold_m,
                                        .n_squares = 1};
}

void vxd_odometry_motion_predict(const struct vxd_odometry_motion *motion,
                                 int64_t stamp_ns, struct vxd_volume_pose *out)
{
    struct vxd_volume_pose step;
    double ratio = 1;

    *out = motion->last;
    if (!motion->has_step || motion->n_lost_in_a_row >= VXD_ODOMETRY_MAX_LOST) {
        return;
    }
    if (stamp_ns > 0 && motion->stamp_ns > 0 && motion->step_ns > 0) {
        ratio = (double)(stamp_ns - motion->stamp_ns) / (double)motion->step_ns;
        ratio = fmin(fmax(ratio, 0), MAX_RATIO);
    }
    take_part(&motion->step, ratio, &step);
    vxd_pose_multiply(&motion->last, &step, out);
}

double vxd_odometry_motion_threshold(const struct vxd_odometry_options *options,
                                     const struct vxd_odometry_motion *motion)
{
    double threshold = sqrt(motion->squares / motion->n_squares);

    /* A prediction that nothing confirmed is as uncertain as the first one. */
    return motion->n_lost_in_a_row > 0 ? fmax(threshold, options->initial_threshold_m)
                                       : threshold;
}

void vxd_odometry_motion_accept(const struct vxd_odometry_options *options,
                                const struct vxd_volume_pose *predicted,
                                const struct vxd_volume_pose *pose, int64_t stamp_ns,
                                struct vxd_odometry_motion *motion)
{
    struct vxd_volume_pose back;
    struct vxd_volume_pose moved;
    double n_steps = (double)(motion->n_lost_in_a_row + 1);

    if (motion->n_lost_in_a_row == 0) {
        const double *t = moved.translation;
        double w[3];
        double error;

        vxd_pose_invert(predicted, &back);
        vxd_pose_multiply(&back, pose, &moved);
        rotation_log(moved.rotation, w);
        error = 2 * options->max_range_m *
                    sin(sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2]) / 2) +
                sqrt(t[0] * t[0] + t[1] * t[1] + t[2] * t[2]);
        if (error > options->min_motion_m) {
            motion->squares += error * error;
            motion->n_squares++;
        }
    }
    vxd_pose_invert(&motion->found, &back);
    vxd_pose_multiply(&back, pose, &moved);
    take_part(&moved, 1 / n_steps, &motion->step);
    motion->step_ns = 0;
    if (stamp_ns > 0 && motion->found_stamp_ns > 0) {
        motion->step_ns =
            (int64_t)((double)(stamp_ns - motion->found_stamp_ns) / n_steps);
    }
    motion->has_step = true;
    motion->last = motion->found = *pose;
    motion->stamp_ns = stamp_ns > 0 ? stamp_ns : motion->stamp_ns;
    motion->found_stamp_ns = stamp_ns;
    motion->n_lost_in_a_row = 0;
}

void vxd_odometry_motion_lose(const struct vxd_volume_pose *predicted, int64_t stamp_ns,
                              struct vxd_odometry_motion *motion)
{
    motion->last = *predicted;
    motion->stamp_ns = stamp_ns > 0 ? stamp_ns : motion->stamp_ns;
    motion->n_lost_in_a_row++;
}
