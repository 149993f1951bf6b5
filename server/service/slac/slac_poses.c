// SPDX-License-Identifier: Apache-2.0
/* Poses of the schema as the engine's, and back. */
#include <math.h>

#include "server/service/clouds/clouds.h"
#include "server/service/slac/slac_service.h"

#define MAX_NORM_ERROR 1e-3

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
    vxd_pose_rotation(
        (const double[4]){v[3] / norm, v[4] / norm, v[5] / norm, v[6] / norm}, rotation);
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

void vxd_slac_write_pose_rows(const struct vxd_volume_pose *poses, size_t n, double *rows)
{
    for (size_t i = 0; i < n; i++) {
        memcpy(rows + 7 * i, poses[i].translation, sizeof poses[i].translation);
        vxd_pose_quaternion(poses[i].rotation, rows + 7 * i + 3);
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
