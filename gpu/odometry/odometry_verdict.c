// SPDX-License-Identifier: Apache-2.0
/* Whether a pose was found, and how certain it is. */
#include "gpu/odometry/odometry_internal.h"

#define JACOBI_ROUNDS 30
#define RAD 57.29577951308232

/* Points are no more exact than this, metres: what a covariance of identical scans would deny. */
#define MIN_RMSE 1e-4

/* After max_iterations a last step of this part of inlier_m does: pairs swing, the pose does not. */
#define SHORT_STEP 0.03

static void unpack(const double *sums, double out[6][6])
{
    int at = 0;

    for (int i = 0; i < 6; i++) {
        for (int j = i; j < 6; j++) {
            out[i][j] = sums[at];
            out[j][i] = sums[at++];
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

/* The least eigenvalue of the information over their mean, with rotations measured by how far they
 * move a point at the mean range. */
static double find_constraint(const double *sums, double range)
{
    double h[6][6];
    double trace = 0;
    double least;

    unpack(sums, h);
    for (int i = 0; i < 6; i++) {
        for (int j = 0; j < 6; j++) {
            h[i][j] = h[i][j] / (i >= 3 ? range : 1) / (j >= 3 ? range : 1);
        }
        trace += h[i][i];
    }
    for (int round = 0; round < JACOBI_ROUNDS; round++) {
        for (int p = 0; p < 5; p++) {
            for (int q = p + 1; q < 6; q++) {
                if (fabs(h[p][q]) > 1e-12 * trace) {
                    turn(h, p, q);
                }
            }
        }
    }
    least = h[0][0];
    for (int i = 1; i < 6; i++) {
        least = h[i][i] < least ? h[i][i] : least;
    }
    return trace > 0 ? 6 * least / trace : 0;
}

/* The inverse of the information, times the mean square of what is left. */
static void find_covariance(const double *sums, double rmse_m, double out[36])
{
    double system[VXD_ODOMETRY_N_SUMS];
    double square = fmax(rmse_m * rmse_m, MIN_RMSE * MIN_RMSE);

    memcpy(system, sums, sizeof system);
    for (int k = 0; k < 6; k++) {
        double x[6];

        for (int i = 0; i < 6; i++) {
            system[VXD_ODOMETRY_SUM_GRADIENT + i] = i == k ? -1 : 0;
        }
        if (!vxd_odometry_solve(system, x)) {
            memset(out, 0, 36 * sizeof *out);
            return;
        }
        for (int i = 0; i < 6; i++) {
            out[6 * i + k] = square * x[i];
        }
    }
    for (int i = 0; i < 6; i++) { /* of what rounding made of it */
        for (int j = 0; j < i; j++) {
            out[6 * i + j] = out[6 * j + i] = (out[6 * i + j] + out[6 * j + i]) / 2;
        }
    }
}

static bool is_too_far(const struct vxd_odometry_options *options,
                       const struct vxd_volume_pose *predicted,
                       const struct vxd_volume_pose *pose, double n_steps)
{
    struct vxd_volume_pose back;
    struct vxd_volume_pose moved;
    const double *t = moved.translation;
    double cosine;

    vxd_pose_invert(predicted, &back);
    vxd_pose_multiply(&back, pose, &moved);
    cosine = (moved.rotation[0] + moved.rotation[4] + moved.rotation[8] - 1) / 2;
    return !(sqrt(t[0] * t[0] + t[1] * t[1] + t[2] * t[2]) <=
             n_steps * options->max_translation_m) ||
           !(acos(fmin(fmax(cosine, -1), 1)) * RAD <=
             n_steps * options->max_rotation_deg);
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

static enum vxd_odometry_reason find_reason(const struct vxd_odometry_options *options,
                                            const struct vxd_odometry_work *work,
                                            const struct vxd_odometry_result *result,
                                            const struct vxd_volume_pose *pose,
                                            size_t n_lost)
{
    const double short_step = SHORT_STEP * options->inlier_m;

    if (work->is_singular != 0) {
        return result->n_inliers < VXD_ODOMETRY_MIN_POINTS ? VXD_ODOMETRY_TOO_FEW_INLIERS
                                                           : VXD_ODOMETRY_SINGULAR;
    }
    if (!(result->fitness >= options->min_fitness)) {
        return VXD_ODOMETRY_TOO_FEW_INLIERS;
    }
    if (!(result->constraint >= options->min_constraint)) {
        return VXD_ODOMETRY_SINGULAR;
    }
    if (is_too_far(options, &result->predicted, pose, (double)(n_lost + 1))) {
        return VXD_ODOMETRY_MOVED_TOO_FAR;
    }
    return work->is_done != 0 || work->last_step2 <= short_step * short_step
               ? VXD_ODOMETRY_FOUND
               : VXD_ODOMETRY_NOT_CONVERGED;
}

void vxd_odometry_judge(const struct vxd_odometry_options *options,
                        const struct vxd_odometry_work *work, const double base_m[3],
                        size_t n_lost, struct vxd_odometry_result *out)
{
    const double *sums = work->sums;
    double n = sums[VXD_ODOMETRY_SUM_INLIERS];
    struct vxd_volume_pose pose;

    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            pose.rotation[3 * i + j] = work->pose[4 * i + j];
        }
        pose.translation[i] = work->pose[4 * i + 3] + base_m[i];
    }
    straighten(pose.rotation);
    out->n_inliers = (size_t)n;
    out->n_iterations = (size_t)work->n_iterations;
    if (n > 0) {
        out->fitness = n / work->n_registered;
        out->rmse_m = sqrt(sums[VXD_ODOMETRY_SUM_SQUARES] / n);
        out->constraint = find_constraint(sums, sums[VXD_ODOMETRY_SUM_RANGE] / n);
        find_covariance(sums, out->rmse_m, out->covariance);
    }
    out->reason = find_reason(options, work, out, &pose, n_lost);
    if (out->reason == VXD_ODOMETRY_FOUND) {
        out->status = VXD_ODOMETRY_OK;
        out->T_map_sensor = pose;
    }
}
