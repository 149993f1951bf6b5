// SPDX-License-Identifier: Apache-2.0
/* Trajectories: their file in TUM's format, and how far they are from known ones. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/voxelctl/volume/volume_commands.h"

#define JACOBI_ROUNDS 20
#define DEGREES 57.29577951308232

static enum vxd_status write_poses(FILE *file, void *context, struct vxd_err *err)
{
    const struct ctl_folder *folder = context;

    (void)fputs("# stamp x y z qx qy qz qw\n", file);
    for (size_t i = 0; i < folder->n; i++) {
        const struct ctl_shot *shot = &folder->shots[i];
        const double *t = shot->found.translation_m;
        const double *q = shot->found.rotation;

        if (shot->is_found) {
            (void)fprintf(file, "%.6f %.9f %.9f %.9f %.9f %.9f %.9f %.9f\n", shot->stamp,
                          t[0], t[1], t[2], q[0], q[1], q[2], q[3]);
        }
    }
    return ferror(file) == 0
               ? VXD_OK
               : vxd_fail(err, VXD_UNAVAILABLE, "trajectory", "could not be written");
}

int ctl_trajectory_write(const char *path, struct ctl_folder *folder)
{
    return ctl_write_file(path, write_poses, folder);
}

/* ---- Rotations ---- */

static void conjugate(const double q[4], double out[4])
{
    out[0] = -q[0];
    out[1] = -q[1];
    out[2] = -q[2];
    out[3] = q[3];
}

static void multiply(const double a[4], const double b[4], double out[4])
{
    out[0] = a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1];
    out[1] = a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0];
    out[2] = a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3];
    out[3] = a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2];
}

static void rotate(const double q[4], const double v[3], double out[3])
{
    double t[3];

    for (int i = 0; i < 3; i++) {
        int j = (i + 1) % 3;
        int k = (i + 2) % 3;

        t[i] = 2 * (q[j] * v[k] - q[k] * v[j]);
    }
    for (int i = 0; i < 3; i++) {
        int j = (i + 1) % 3;
        int k = (i + 2) % 3;

        out[i] = v[i] + q[3] * t[i] + q[j] * t[k] - q[k] * t[j];
    }
}

/* b in the frame of a. */
static void between(const struct voxeld_pose *a, const struct voxeld_pose *b,
                    struct voxeld_pose *out)
{
    double back[4];
    double apart[3];

    for (int i = 0; i < 3; i++) {
        apart[i] = b->translation_m[i] - a->translation_m[i];
    }
    conjugate(a->rotation, back);
    rotate(back, apart, out->translation_m);
    multiply(back, b->rotation, out->rotation);
}

static double length2(const double v[3])
{
    return v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
}

/* ---- Alignment (Horn) ---- */

/* Turns rows and columns p and q of a symmetric matrix so that m[p][q] becomes 0, and v with it. */
static void turn(double m[4][4], double v[4][4], int p, int q)
{
    double theta = (m[q][q] - m[p][p]) / (2 * m[p][q]);
    double t = (theta >= 0 ? 1 : -1) / (fabs(theta) + sqrt(theta * theta + 1));
    double c = 1 / sqrt(t * t + 1);
    double s = t * c;

    for (int k = 0; k < 4; k++) {
        double a = m[k][p];
        double b = m[k][q];

        m[k][p] = c * a - s * b;
        m[k][q] = s * a + c * b;
    }
    for (int k = 0; k < 4; k++) {
        double a = m[p][k];
        double b = m[q][k];

        m[p][k] = c * a - s * b;
        m[q][k] = s * a + c * b;
        a = v[k][p];
        b = v[k][q];
        v[k][p] = c * a - s * b;
        v[k][q] = s * a + c * b;
    }
}

/* The eigenvector of the largest eigenvalue. */
static void largest(double m[4][4], double out[4])
{
    double v[4][4] = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}};
    int best = 0;

    for (int round = 0; round < JACOBI_ROUNDS; round++) {
        for (int p = 0; p < 3; p++) {
            for (int q = p + 1; q < 4; q++) {
                if (fabs(m[p][q]) > 1e-300) {
                    turn(m, v, p, q);
                }
            }
        }
    }
    for (int i = 1; i < 4; i++) {
        best = m[i][i] > m[best][best] ? i : best;
    }
    for (int i = 0; i < 4; i++) {
        out[i] = v[i][best];
    }
}

struct pair {
    const struct voxeld_pose *found;
    const struct voxeld_pose *known;
};

struct pairs {
    size_t n;
    struct pair *list;
};

static void find_means(const struct pairs *pairs, double a[3], double b[3])
{
    for (int axis = 0; axis < 3; axis++) {
        a[axis] = 0;
        b[axis] = 0;
        for (size_t i = 0; i < pairs->n; i++) {
            a[axis] += pairs->list[i].found->translation_m[axis] / (double)pairs->n;
            b[axis] += pairs->list[i].known->translation_m[axis] / (double)pairs->n;
        }
    }
}

/* The rotation, about the means, of found positions onto known ones. */
static void find_rotation(const struct pairs *pairs, const double a[3], const double b[3],
                          double out[4])
{
    double s[3][3] = {{0}};

    for (size_t k = 0; k < pairs->n; k++) {
        for (int i = 0; i < 3; i++) {
            for (int j = 0; j < 3; j++) {
                s[i][j] += (pairs->list[k].found->translation_m[i] - a[i]) *
                           (pairs->list[k].known->translation_m[j] - b[j]);
            }
        }
    }
    {
        /* In the order x, y, z, w. */
        double x = s[1][2] - s[2][1];
        double y = s[2][0] - s[0][2];
        double z = s[0][1] - s[1][0];
        double m[4][4] = {
            {s[0][0] - s[1][1] - s[2][2], s[0][1] + s[1][0], s[2][0] + s[0][2], x},
            {s[0][1] + s[1][0], s[1][1] - s[0][0] - s[2][2], s[1][2] + s[2][1], y},
            {s[2][0] + s[0][2], s[1][2] + s[2][1], s[2][2] - s[0][0] - s[1][1], z},
            {x, y, z, s[0][0] + s[1][1] + s[2][2]}};

        largest(m, out);
    }
}

/* ---- Errors ---- */

static double find_ate(const struct pairs *pairs, bool is_aligned)
{
    const double still[4] = {0, 0, 0, 1};
    double a[3] = {0};
    double b[3] = {0};
    double q[4];
    double sum = 0;

    memcpy(q, still, sizeof q);
    if (is_aligned) {
        find_means(pairs, a, b);
        find_rotation(pairs, a, b, q);
    }
    for (size_t k = 0; k < pairs->n; k++) {
        double from[3];
        double off[3];

        for (int i = 0; i < 3; i++) {
            from[i] = pairs->list[k].found->translation_m[i] - a[i];
        }
        rotate(q, from, off);
        for (int i = 0; i < 3; i++) {
            off[i] -= pairs->list[k].known->translation_m[i] - b[i];
        }
        sum += length2(off);
    }
    return sqrt(sum / (double)pairs->n);
}

/* Errors of the movement from each pose to the next. */
static void find_rpe(const struct pairs *pairs, struct ctl_errors *out)
{
    double steps = 0;
    double turns = 0;
    double n = (double)pairs->n - 1;

    for (size_t k = 1; k < pairs->n; k++) {
        struct voxeld_pose ours;
        struct voxeld_pose theirs;
        struct voxeld_pose off;
        double angle;

        between(pairs->list[k - 1].found, pairs->list[k].found, &ours);
        between(pairs->list[k - 1].known, pairs->list[k].known, &theirs);
        between(&theirs, &ours, &off);
        angle = 2 * atan2(sqrt(length2(off.rotation)), fabs(off.rotation[3])) * DEGREES;
        steps += length2(off.translation_m);
        turns += angle * angle;
    }
    out->rpe_m = n > 0 ? sqrt(steps / n) : 0;
    out->rpe_deg = n > 0 ? sqrt(turns / n) : 0;
}

static void find_errors(const struct pairs *pairs, struct ctl_errors *out)
{
    *out = (struct ctl_errors){.n = pairs->n};
    if (pairs->n > 0) {
        out->ate_m = find_ate(pairs, false);
        out->ate_aligned_m = find_ate(pairs, true);
        find_rpe(pairs, out);
    }
}

int ctl_trajectory_errors(const struct ctl_folder *folder, struct ctl_errors *found,
                          struct ctl_errors *still)
{
    struct pairs pairs = {.list = calloc(folder->n + 1, sizeof *pairs.list)};
    int result = CTL_OK;

    if (pairs.list == NULL) {
        (void)ctl_error("no memory");
        result = CTL_FAILED;
    }
    for (size_t i = 0; result == CTL_OK && i < folder->n; i++) {
        const struct ctl_shot *shot = &folder->shots[i];

        if (shot->is_found && shot->has_pose) {
            pairs.list[pairs.n++] = (struct pair){&shot->found, &shot->pose};
        }
    }
    if (result == CTL_OK) {
        find_errors(&pairs, found);
        for (size_t i = 0; i < pairs.n; i++) {
            pairs.list[i].found = pairs.list[0].known;
        }
        find_errors(&pairs, still);
    }
    free(pairs.list);
    return result;
}
