// SPDX-License-Identifier: Apache-2.0
/* Poses of the schema as the engine's, and back. */
#include <math.h>

#include "server/service/slac/slac_service.h"

#define MAX_NORM_ERROR 1e-3

static void rotation_of(double x, double y, double z, double w, double r[9])
{
    r[0] = 1 - 2 * (y * y + z * z);
    r[1] = 2 * (x * y - z * w);
    r[2] = 2 * (x * z + y * w);
    r[3] = 2 * (x * y + z * w);
    r[4] = 1 - 2 * (x * x + z * z);
    r[5] = 2 * (y * z - x * w);
    r[6] = 2 * (x * z - y * w);
    r[7] = 2 * (y * z + x * w);
    r[8] = 1 - 2 * (x * x + y * y);
}

/* v: x y z, quaternion x y z w. */
static enum vxd_status read_row(const double v[7], const char *field, double rotation[9],
                                double translation[3], struct vxd_err *err)
{
    double norm = sqrt(v[3] * v[3] + v[4] * v[4] + v[5] * v[5] + v[6] * v[6]);

    for (int i = 0; i < 3; i++) {
        if (!(fabs(v[i]) <= 1e9)) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                            "has the translation %g, must be finite and within +-1e9 m",
                            v[i]);
        }
        translation[i] = v[i];
    }
    if (!(fabs(norm - 1) <= MAX_NORM_ERROR)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "has a quaternion of the norm %g, must be 1 (to %g)", norm,
                        MAX_NORM_ERROR);
    }
    rotation_of(v[3] / norm, v[4] / norm, v[5] / norm, v[6] / norm, rotation);
    return VXD_OK;
}

enum vxd_status vxd_slac_read_pose_rows(const double *rows, size_t n,
                                        struct vxd_volume_pose *out, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; i < n; i++) {
        char field[32];

        (void)snprintf(field, sizeof field, "poses[%zu]", i);
        VXD_TRY(read_row(rows + 7 * i, field, out[i].rotation, out[i].translation, err));
    }
out:
    return status;
}

/* The unit quaternion of a rotation, by its largest component. */
static void quaternion_of(const double r[9], double q[4])
{
    const double squares[4] = {1 + r[0] - r[4] - r[8], 1 - r[0] + r[4] - r[8],
                               1 - r[0] - r[4] + r[8], 1 + r[0] + r[4] + r[8]};
    const double rows[4][4] = {{squares[0], r[1] + r[3], r[2] + r[6], r[7] - r[5]},
                               {r[1] + r[3], squares[1], r[5] + r[7], r[2] - r[6]},
                               {r[2] + r[6], r[5] + r[7], squares[2], r[3] - r[1]},
                               {r[7] - r[5], r[2] - r[6], r[3] - r[1], squares[3]}};
    size_t best = 0;
    double norm;

    for (size_t i = 1; i < 4; i++) {
        best = squares[i] > squares[best] ? i : best;
    }
    norm = sqrt(rows[best][0] * rows[best][0] + rows[best][1] * rows[best][1] +
                rows[best][2] * rows[best][2] + rows[best][3] * rows[best][3]);
    for (size_t i = 0; i < 4; i++) {
        q[i] = rows[best][i] / norm;
    }
}

void vxd_slac_write_pose_rows(const struct vxd_volume_pose *poses, size_t n, double *rows)
{
    for (size_t i = 0; i < n; i++) {
        memcpy(rows + 7 * i, poses[i].translation, sizeof poses[i].translation);
        quaternion_of(poses[i].rotation, rows + 7 * i + 3);
    }
}

enum vxd_status vxd_slac_read_pose(const Voxeld__V1__Pose *pose, const char *field,
                                   struct vxd_deform_pose *out, struct vxd_err *err)
{
    double v[7] = {0, 0, 0, 0, 0, 0, 1};

    if (pose != NULL && pose->translation != NULL) {
        v[0] = pose->translation->x;
        v[1] = pose->translation->y;
        v[2] = pose->translation->z;
    }
    if (pose != NULL && pose->rotation != NULL &&
        (pose->rotation->x != 0 || pose->rotation->y != 0 || pose->rotation->z != 0 ||
         pose->rotation->w != 0)) {
        v[3] = pose->rotation->x;
        v[4] = pose->rotation->y;
        v[5] = pose->rotation->z;
        v[6] = pose->rotation->w;
    }
    return read_row(v, field, out->rotation, out->translation, err);
}
