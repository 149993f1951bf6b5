// SPDX-License-Identifier: Apache-2.0
/* Reads poses of a drive from files like those of KITTI's odometry. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/voxelctl/cli/cli.h"

enum {
    N_NUMBERS = 12
};

/* Rotations may deviate so far from orthonormal ones. */
#define TOLERANCE 1e-3

/* Whether m, three rows of four, holds a rotation and a finite translation. */
static bool is_rotation(const double *m)
{
    double determinant = m[0] * (m[5] * m[10] - m[6] * m[9]) -
                         m[1] * (m[4] * m[10] - m[6] * m[8]) +
                         m[2] * (m[4] * m[9] - m[5] * m[8]);

    for (size_t i = 0; i < 3; i++) {
        for (size_t k = 0; k < 3; k++) {
            double product = 0;

            for (size_t c = 0; c < 3; c++) {
                product += m[4 * i + c] * m[4 * k + c];
            }
            /* This is also false for NaN. */
            if (!(fabs(product - (i == k ? 1 : 0)) < TOLERANCE)) {
                return false;
            }
        }
    }
    return determinant > 0 && isfinite(m[3]) && isfinite(m[7]) && isfinite(m[11]);
}

/* Computes four multiples of the quaternion and takes the longest, so that it never
 * divides by a small number. */
static void to_quaternion(const double *m, double q[4])
{
    const double xy = m[1] + m[4];
    const double xz = m[2] + m[8];
    const double yz = m[6] + m[9];
    const double xw = m[9] - m[6];
    const double yw = m[2] - m[8];
    const double zw = m[4] - m[1];
    const double multiples[4][4] = {
        {1 + m[0] - m[5] - m[10], xy, xz, xw},
        {xy, 1 - m[0] + m[5] - m[10], yz, yw},
        {xz, yz, 1 - m[0] - m[5] + m[10], zw},
        {xw, yw, zw, 1 + m[0] + m[5] + m[10]},
    };
    size_t best = 0;
    double length = 0;

    for (size_t i = 1; i < 4; i++) {
        best = multiples[i][i] > multiples[best][best] ? i : best;
    }
    for (size_t i = 0; i < 4; i++) {
        length += multiples[best][i] * multiples[best][i];
    }
    for (size_t i = 0; i < 4; i++) {
        q[i] = multiples[best][i] / sqrt(length);
    }
}

static int convert(const char *path, const struct vxd_array_file *rows,
                   struct voxeld_pose *poses)
{
    double m[N_NUMBERS];

    for (size_t i = 0; i < rows->n; i++) {
        memcpy(m, rows->data + i * sizeof m, sizeof m);
        if (!is_rotation(m)) {
            (void)fprintf(stderr, "voxelctl: %s: pose %zu has no rotation in it\n", path,
                          i + 1);
            return CTL_FAILED;
        }
        for (size_t axis = 0; axis < 3; axis++) {
            poses[i].translation_m[axis] = m[4 * axis + 3];
        }
        to_quaternion(m, poses[i].rotation);
    }
    return CTL_OK;
}

int ctl_read_pose(const char *path, struct voxeld_pose *out)
{
    struct ctl_array file;
    double m[N_NUMBERS];
    int result = ctl_array_read(path, VOXELD_FLOAT64, &file);
    bool is_matrix = false;

    if (result == CTL_OK) {
        is_matrix = file.array.dtype == VXD_FLOAT64 && file.array.n_elements == 4 &&
                    (file.array.n == 3 || file.array.n == 4);
        if (is_matrix) {
            memcpy(m, file.array.data, sizeof m);
            is_matrix = is_rotation(m);
        }
        if (!is_matrix) {
            (void)fprintf(stderr,
                          "voxelctl: %s: no pose; a 4 x 4 matrix of a rotation and a "
                          "translation is right\n",
                          path);
            result = CTL_FAILED;
        }
    }
    if (is_matrix) {
        for (size_t axis = 0; axis < 3; axis++) {
            out->translation_m[axis] = m[4 * axis + 3];
        }
        to_quaternion(m, out->rotation);
    }
    ctl_array_clear(&file);
    return result;
}

int ctl_read_poses(const char *path, size_t n_poses, struct voxeld_pose **out)
{
    struct ctl_array file;
    int result = ctl_array_read(path, VOXELD_FLOAT64, &file);

    *out = NULL;
    if (result == CTL_OK &&
        (file.array.n != n_poses || file.array.n_elements != N_NUMBERS ||
         file.array.dtype != VXD_FLOAT64)) {
        (void)fprintf(stderr,
                      "voxelctl: %s: %zu lines of %zu numbers; one of %d for each of %zu "
                      "files is right\n",
                      path, file.array.n, file.array.n_elements, N_NUMBERS, n_poses);
        result = CTL_FAILED;
    }
    if (result == CTL_OK) {
        *out = calloc(n_poses, sizeof **out);
        if (*out == NULL) {
            (void)fputs("voxelctl: no memory\n", stderr);
            result = CTL_FAILED;
        }
    }
    if (result == CTL_OK) {
        result = convert(path, &file.array, *out);
    }
    if (result != CTL_OK) {
        free(*out);
        *out = NULL;
    }
    ctl_array_clear(&file);
    return result;
}
