// SPDX-License-Identifier: Apache-2.0
/* Converts poses between the schema and the engine. */
#include <math.h>

#include "server/service/clouds/clouds.h"
#include "server/service/service.h"

#define MAX_NORM_ERROR 1e-3

void vxd_pose_rotation(const double q[4], double out[9])
{
    double x = q[0];
    double y = q[1];
    double z = q[2];
    double w = q[3];
    const double rows[9] = {
        1 - 2 * (y * y + z * z), 2 * (x * y - z * w),     2 * (x * z + y * w),
        2 * (x * y + z * w),     1 - 2 * (x * x + z * z), 2 * (y * z - x * w),
        2 * (x * z - y * w),     2 * (y * z + x * w),     1 - 2 * (x * x + y * y)};

    memcpy(out, rows, sizeof rows);
}

/* It is found by its largest component, so that nothing is divided by a small number. */
void vxd_pose_quaternion(const double r[9], double out[4])
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
        out[i] = rows[best][i] / norm;
    }
}

enum vxd_status vxd_pose_read_quaternion(const Voxeld__V1__Pose *pose, const char *field,
                                         double out[4], struct vxd_err *err)
{
    const Voxeld__V1__Quaternion *q = pose != NULL ? pose->rotation : NULL;
    double norm;

    memcpy(out, (const double[4]){0, 0, 0, 1}, 4 * sizeof *out);
    if (q == NULL || (q->x == 0 && q->y == 0 && q->z == 0 && q->w == 0)) {
        return VXD_OK;
    }
    norm = sqrt(q->x * q->x + q->y * q->y + q->z * q->z + q->w * q->w);
    if (!(fabs(norm - 1) <= MAX_NORM_ERROR)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "its quaternion has the norm %g, must be 1 (to %g)", norm,
                        MAX_NORM_ERROR);
    }
    out[0] = q->x / norm;
    out[1] = q->y / norm;
    out[2] = q->z / norm;
    out[3] = q->w / norm;
    return VXD_OK;
}

enum vxd_status vxd_volume_read_pose(const Voxeld__V1__Pose *pose, const char *field,
                                     struct vxd_volume_pose *out, struct vxd_err *err)
{
    const Voxeld__V1__Vec3 *t = pose != NULL ? pose->translation : NULL;
    double q[4];
    enum vxd_status status;

    *out = (struct vxd_volume_pose){.rotation = {1, 0, 0, 0, 1, 0, 0, 0, 1}};
    if (t != NULL) {
        if (!isfinite(t->x) || !isfinite(t->y) || !isfinite(t->z)) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                            "its translation is not finite");
        }
        out->translation[0] = t->x;
        out->translation[1] = t->y;
        out->translation[2] = t->z;
    }
    VXD_TRY(vxd_pose_read_quaternion(pose, field, q, err));
    vxd_pose_rotation(q, out->rotation);
out:
    return status;
}

static void fill_pose(const double t[3], const double q[4], Voxeld__V1__Pose *out)
{
    out->translation->x = t[0];
    out->translation->y = t[1];
    out->translation->z = t[2];
    out->rotation->x = q[0];
    out->rotation->y = q[1];
    out->rotation->z = q[2];
    out->rotation->w = q[3];
}

void vxd_volume_fill_pose(const struct vxd_volume_pose *pose, Voxeld__V1__Pose *out)
{
    double q[4];

    vxd_pose_quaternion(pose->rotation, q);
    fill_pose(pose->translation, q, out);
}

Voxeld__V1__Pose *vxd_pose_new(struct vxd_decoder *arena, const double t[3],
                               const double q[4], struct vxd_err *err)
{
    Voxeld__V1__Pose *out = vxd_message_new(arena, &voxeld__v1__pose__descriptor, err);

    if (out == NULL) {
        return NULL;
    }
    out->translation = vxd_message_new(arena, &voxeld__v1__vec3__descriptor, err);
    out->rotation = vxd_message_new(arena, &voxeld__v1__quaternion__descriptor, err);
    if (out->translation == NULL || out->rotation == NULL) {
        return NULL;
    }
    fill_pose(t, q, out);
    return out;
}

Voxeld__V1__Pose *vxd_volume_new_pose(struct vxd_decoder *arena,
                                      const struct vxd_volume_pose *pose,
                                      struct vxd_err *err)
{
    double q[4];

    vxd_pose_quaternion(pose->rotation, q);
    return vxd_pose_new(arena, pose->translation, q, err);
}

enum vxd_status vxd_volume_query_pose(struct vxd_decoder *decoder,
                                      const struct vxd_query_item *item,
                                      Voxeld__V1__Pose **out, struct vxd_err *err)
{
    double v[7] = {0};
    size_t n = vxd_query_numbers(item->value, v, 7);

    if (n != 3 && n != 7) {
        return vxd_query_fail(err, item, "x,y,z or x,y,z,qx,qy,qz,qw");
    }
    *out = vxd_pose_new(decoder, v, v + 3, err);
    return *out != NULL ? VXD_OK : VXD_RESOURCE_EXHAUSTED;
}
