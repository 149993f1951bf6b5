// SPDX-License-Identifier: Apache-2.0
/* Reads poses of a drive: KITTI's odometry (12 numbers a line), TUM's trajectories (time, position,
 * quaternion) and 4 x 4 matrices, a line each or four lines. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/voxelctl/cli/cli.h"

enum {
    N_NUMBERS = 12, /* the upper rows of a matrix */
    N_MATRIX = 16,
    N_TUM = 8 /* stamp_s x y z qx qy qz qw */
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

/* Takes a matrix of three or four rows of four. */
static bool take_matrix(const double *m, bool has_last_row, struct voxeld_pose *out)
{
    static const double last_row[4] = {0, 0, 0, 1};

    for (size_t i = 0; i < 4 && has_last_row; i++) {
        if (!(fabs(m[N_NUMBERS + i] - last_row[i]) < TOLERANCE)) {
            return false;
        }
    }
    if (!is_rotation(m)) {
        return false;
    }
    for (size_t axis = 0; axis < 3; axis++) {
        out->translation_m[axis] = m[4 * axis + 3];
    }
    to_quaternion(m, out->rotation);
    return true;
}

static bool take_tum(const double *row, struct voxeld_pose *out)
{
    double length = 0;

    for (size_t i = 0; i < 4; i++) {
        length += row[4 + i] * row[4 + i];
    }
    length = sqrt(length);
    if (!(fabs(length - 1) < TOLERANCE)) { /* also false for NaN */
        return false;
    }
    for (size_t i = 0; i < 3; i++) {
        out->translation_m[i] = row[1 + i];
    }
    for (size_t i = 0; i < 4; i++) {
        out->rotation[i] = row[4 + i] / length;
    }
    return isfinite(row[1]) && isfinite(row[2]) && isfinite(row[3]);
}

/* Takes the pose of `width` numbers at a row. */
static bool take_pose(const uint8_t *row, size_t width, struct voxeld_pose *out)
{
    double numbers[N_MATRIX];

    memcpy(numbers, row, width * sizeof *numbers);
    return width == N_TUM ? take_tum(numbers, out)
                          : take_matrix(numbers, width == N_MATRIX, out);
}

static int convert(const char *path, const struct vxd_array_file *rows, size_t width,
                   size_t n_poses, struct voxeld_pose *poses)
{
    for (size_t i = 0; i < n_poses; i++) {
        if (!take_pose(rows->data + i * width * sizeof(double), width, &poses[i])) {
            return ctl_error("%s: pose %zu has no rotation in it", path, i + 1);
        }
    }
    return CTL_OK;
}

/* How many numbers a pose of the file has; 0: the file is not of n_poses poses. */
static size_t width_of(const struct vxd_array_file *file, size_t n_poses)
{
    size_t width = file->n_elements;

    if (file->dtype != VXD_FLOAT64) {
        return 0;
    }
    if (width == 4 && file->n == 4 * n_poses) {
        return N_MATRIX; /* four lines each */
    }
    return file->n == n_poses &&
                   (width == N_NUMBERS || width == N_MATRIX || width == N_TUM)
               ? width
               : 0;
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
            is_matrix = take_matrix(m, false, out);
        }
        if (!is_matrix) {
            (void)ctl_error("%s: no pose; a 4 x 4 matrix of a rotation and a "
                            "translation is right",
                            path);
            result = CTL_FAILED;
        }
    }
    ctl_array_clear(&file);
    return result;
}

int ctl_read_poses(const char *path, size_t n_poses, struct voxeld_pose **out)
{
    struct ctl_array file;
    size_t width = 0;
    int result = ctl_array_read(path, VOXELD_FLOAT64, &file);

    *out = NULL;
    if (result == CTL_OK) {
        width = width_of(&file.array, n_poses);
        if (width == 0) {
            result =
                ctl_error("%s: %zu lines of %zu numbers; right is a line for each of "
                          "%zu files: %d numbers (KITTI), %d (TUM: time, position, "
                          "quaternion) or %d (a 4 x 4 matrix)",
                          path, file.array.n, file.array.n_elements, n_poses, N_NUMBERS,
                          N_TUM, N_MATRIX);
        }
    }
    if (result == CTL_OK) {
        *out = calloc(n_poses, sizeof **out);
        result = *out != NULL ? convert(path, &file.array, width, n_poses, *out)
                              : ctl_error("no memory");
    }
    if (result != CTL_OK) {
        free(*out);
        *out = NULL;
    }
    ctl_array_clear(&file);
    return result;
}
