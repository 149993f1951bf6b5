// SPDX-License-Identifier: Apache-2.0
/* Whether a pose was found, and where a camera is between frames. */
#include "gpu/track/track_internal.h"

#define JACOBI_ROUNDS 30
#define RAD 57.29577951308232

/* Greys hold a camera only where the volume's explain so much of the variance of the image's: the
 * noise of a bare wall has gradients, too, but no two pictures share them. */
#define MIN_EXPLAINED 0.3

/* ---- Poses ---- */

static void multiply(const struct vxd_volume_pose *a, const struct vxd_volume_pose *b,
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

static void invert(const struct vxd_volume_pose *pose, struct vxd_volume_pose *out)
{
    for (int i = 0; i < 3; i++) {
        out->translation[i] = 0;
        for (int j = 0; j < 3; j++) {
            out->rotation[3 * i + j] = pose->rotation[3 * j + i];
            out->translation[i] -= pose->rotation[3 * j + i] * pose->translation[j];
        }
    }
}

/* Makes the rows of a rotation orthonormal again, so that products of thousands stay rotations. */
static void straighten(double r[9])
{
    double *x = r;
    double *y = r + 3;
    double length = sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2]);
    double dot;

    for (int i = 0; i < 3; i++) {
        x[i] /= length;
    }
    dot = x[0] * y[0] + x[1] * y[1] + x[2] * y[2];
    for (int i = 0; i < 3; i++) {
        y[i] -= dot * x[i];
    }
    length = sqrt(y[0] * y[0] + y[1] * y[1] + y[2] * y[2]);
    for (int i = 0; i < 3; i++) {
        y[i] /= length;
    }
    r[6] = x[1] * y[2] - x[2] * y[1];
    r[7] = x[2] * y[0] - x[0] * y[2];
    r[8] = x[0] * y[1] - x[1] * y[0];
}

void vxd_track_predict(const struct vxd_track_state *state, struct vxd_volume_pose *out)
{
    *out = (struct vxd_volume_pose){.rotation = {1, 0, 0, 0, 1, 0, 0, 0, 1}};
    if (state->has_pose) {
        *out = state->last;
    }
    if (state->has_pose && state->has_motion) {
        multiply(&state->last, &state->motion, out);
        straighten(out->rotation);
    }
}

void vxd_track_accept(struct vxd_track_state *state, const struct vxd_volume_pose *pose)
{
    if (state->has_pose) {
        struct vxd_volume_pose back;

        invert(&state->last, &back);
        multiply(&back, pose, &state->motion);
        state->has_motion = true;
    }
    state->last = *pose;
    state->has_pose = true;
}

void vxd_track_lose(struct vxd_track_state *state)
{
    state->has_motion = false;
}

/* ---- The information ---- */

static void unpack(const double sums[VXD_TRACK_N_SUMS], double out[6][6])
{
    int at = 0;

    for (int i = 0; i < 6; i++) {
        for (int j = i; j < 6; j++) {
            out[i][j] = sums[at];
            out[j][i] = sums[at++];
        }
    }
}

/* H of exp(x) T as H of T exp(x): A^T H A with A = [R, [t] R; 0, R]. */
static void move_information(double h[6][6], const double pose[12], double out[36])
{
    double a[6][6] = {{0}};
    double ha[6][6] = {{0}};
    const double t[3] = {pose[3], pose[7], pose[11]};

    for (int j = 0; j < 3; j++) {
        const double r[3] = {pose[j], pose[4 + j], pose[8 + j]};
        const double cross[3] = {t[1] * r[2] - t[2] * r[1], t[2] * r[0] - t[0] * r[2],
                                 t[0] * r[1] - t[1] * r[0]};

        for (int i = 0; i < 3; i++) {
            a[i][j] = r[i];
            a[3 + i][3 + j] = r[i];
            a[i][3 + j] = cross[i];
        }
    }
    for (int i = 0; i < 6; i++) {
        for (int j = 0; j < 6; j++) {
            for (int k = 0; k < 6; k++) {
                ha[i][j] += h[i][k] * a[k][j];
            }
        }
    }
    for (int i = 0; i < 6; i++) {
        for (int j = 0; j < 6; j++) {
            out[6 * i + j] = 0;
            for (int k = 0; k < 6; k++) {
                out[6 * i + j] += a[k][i] * ha[k][j];
            }
        }
    }
}

/* Rotates rows and columns p and q so that h[p][q] becomes 0. */
static void turn(double h[6][6], int p, int q)
{
    double theta = (h[q][q] - h[p][p]) / (2 * h[p][q]);
    double t = (theta >= 0 ? 1 : -1) / (fabs(theta) + sqrt(theta * theta + 1));
    double c = 1 / sqrt(t * t + 1);
    double s = t * c;

    for (int k = 0; k < 6; k++) {
        double a = h[k][p];
        double b = h[k][q];

        h[k][p] = c * a - s * b;
        h[k][q] = s * a + c * b;
    }
    for (int k = 0; k < 6; k++) {
        double a = h[p][k];
        double b = h[q][k];

        h[p][k] = c * a - s * b;
        h[q][k] = s * a + c * b;
    }
}

/* The least eigenvalue of a symmetric matrix, by Jacobi's method. */
static double least_eigenvalue(double h[6][6])
{
    double least = h[0][0];

    for (int round = 0; round < JACOBI_ROUNDS; round++) {
        for (int p = 0; p < 5; p++) {
            for (int q = p + 1; q < 6; q++) {
                if (fabs(h[p][q]) > 1e-300) {
                    turn(h, p, q);
                }
            }
        }
    }
    for (int i = 1; i < 6; i++) {
        least = h[i][i] < least ? h[i][i] : least;
    }
    return least;
}

/* The least eigenvalue of the information over their mean, with rotations measured by how far they
 * move a point at the mean depth. */
static double find_constraint(double h[6][6], double depth)
{
    double scaled[6][6];
    double trace = 0;

    for (int i = 0; i < 6; i++) {
        for (int j = 0; j < 6; j++) {
            scaled[i][j] = h[i][j] / (i >= 3 ? depth : 1) / (j >= 3 ? depth : 1);
        }
        trace += scaled[i][i];
    }
    return trace > 0 ? 6 * least_eigenvalue(scaled) / trace : 0;
}

/* Which part of the variance of the image's greys those of the volume explain. */
static double find_explained(const double sums[VXD_TRACK_N_SUMS], double grey_m)
{
    double n = sums[VXD_TRACK_SUM_GREYS];
    double mean = sums[VXD_TRACK_SUM_GREY] / n;
    double variance = sums[VXD_TRACK_SUM_GREY2] / n - mean * mean;
    double left = sums[VXD_TRACK_SUM_DIFFERENCE2] / n / (grey_m * grey_m);

    return n >= VXD_TRACK_MIN_PIXELS && variance > 1e-6 ? 1 - left / variance : 0;
}

/* What holds the camera: the information of the method, or, where the greys say nothing, of the
 * planes alone, which intensity alone does not use. */
static double find_hold(const struct vxd_track_options *options, const double *sums,
                        const double *planes, double depth)
{
    double h[6][6];

    if (options->method != VXD_TRACK_POINT_TO_PLANE &&
        find_explained(sums, options->intensity_m) < MIN_EXPLAINED) {
        if (options->method == VXD_TRACK_INTENSITY) {
            return 0;
        }
        sums = planes;
    }
    unpack(sums, h);
    return find_constraint(h, depth);
}

/* ---- The verdict ---- */

static bool is_too_far(const struct vxd_track_options *options, const double pose[12])
{
    double t2 = pose[3] * pose[3] + pose[7] * pose[7] + pose[11] * pose[11];
    double cosine = (pose[0] + pose[5] + pose[10] - 1) / 2;

    return !(sqrt(t2) <= options->max_translation_m) ||
           !(acos(fmin(fmax(cosine, -1), 1)) * RAD <= options->max_rotation_deg);
}

static enum vxd_track_reason find_reason(const struct vxd_track_options *options,
                                         const struct vxd_track_work *work,
                                         const struct vxd_track_result *result)
{
    if (work->sums[VXD_TRACK_SUM_VALID] < VXD_TRACK_MIN_PIXELS) {
        return VXD_TRACK_NO_DEPTH;
    }
    if (result->fitness < options->min_fitness ||
        result->agreement < options->min_agreement ||
        result->n_inliers < VXD_TRACK_MIN_PIXELS) {
        return VXD_TRACK_TOO_FEW_INLIERS;
    }
    if (work->is_singular != 0 || !(result->constraint >= options->min_constraint)) {
        return VXD_TRACK_SINGULAR;
    }
    return is_too_far(options, work->pose) ? VXD_TRACK_MOVED_TOO_FAR : VXD_TRACK_FOUND;
}

void vxd_track_judge(const struct vxd_track_options *options,
                     const struct vxd_volume_pose *prior,
                     const struct vxd_track_work *work, const double *planes,
                     struct vxd_track_result *out)
{
    const double *sums = work->sums;
    double n = sums[VXD_TRACK_SUM_INLIERS];
    double h[6][6];

    *out = (struct vxd_track_result){.T_map_camera = *prior,
                                     .n_inliers = (size_t)n,
                                     .n_iterations = (size_t)work->n_iterations};
    if (n > 0) {
        out->fitness = n / sums[VXD_TRACK_SUM_VALID];
        out->agreement = n / sums[VXD_TRACK_SUM_OVERLAP];
        out->rmse_m = sqrt(sums[VXD_TRACK_SUM_SQUARES] / n);
        unpack(sums, h);
        move_information(h, work->pose, out->information);
        out->constraint = find_hold(options, sums, planes, sums[VXD_TRACK_SUM_DEPTH] / n);
    }
    out->reason = find_reason(options, work, out);
    out->status = out->reason == VXD_TRACK_FOUND ? VXD_TRACK_OK : VXD_TRACK_LOST;
    if (out->status == VXD_TRACK_OK) {
        struct vxd_volume_pose moved;

        for (int i = 0; i < 3; i++) {
            for (int j = 0; j < 3; j++) {
                moved.rotation[3 * i + j] = work->pose[4 * i + j];
            }
            moved.translation[i] = work->pose[4 * i + 3];
        }
        multiply(prior, &moved, &out->T_map_camera);
        straighten(out->T_map_camera.rotation);
    }
}
