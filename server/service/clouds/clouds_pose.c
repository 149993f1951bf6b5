// SPDX-License-Identifier: Apache-2.0
/* Converts poses between the schema and the engine. */
#include <math.h>

#include "server/service/clouds/clouds.h"
#include "server/service/service.h"

#define MAX_NORM_ERROR 1e-3

/* The matrix of a unit quaternion. */
static void rotation_of(double x, double y, double z, double w, double out[9])
{
    const double rows[9] = {
        1 - 2 * (y * y + z * z), 2 * (x * y - z * w),     2 * (x * z + y * w),
        2 * (x * y + z * w),     1 - 2 * (x * x + z * z), 2 * (y * z - x * w),
        2 * (x * z - y * w),     2 * (y * z + x * w),     1 - 2 * (x * x + y * y)};

    memcpy(out, rows, sizeof rows);
}

enum vxd_status vxd_volume_read_pose(const Voxeld__V1__Pose *pose, const char *field,
                                     struct vxd_volume_pose *out, struct vxd_err *err)
{
    const Voxeld__V1__Quaternion *q = pose != NULL ? pose->rotation : NULL;
    const Voxeld__V1__Vec3 *t = pose != NULL ? pose->translation : NULL;
    double norm;

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
    if (q == NULL || (q->x == 0 && q->y == 0 && q->z == 0 && q->w == 0)) {
        return VXD_OK;
    }
    norm = sqrt(q->x * q->x + q->y * q->y + q->z * q->z + q->w * q->w);
    if (!(fabs(norm - 1) <= MAX_NORM_ERROR)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "its quaternion has the norm %g, must be 1 (to %g)", norm,
                        MAX_NORM_ERROR);
    }
    rotation_of(q->x / norm, q->y / norm, q->z / norm, q->w / norm, out->rotation);
    return VXD_OK;
}

/* The unit quaternion of a rotation, by its largest component, so that nothing is divided by a small
 * number. */
static void quaternion_of(const double r[9], Voxeld__V1__Quaternion *out)
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
    out->x = rows[best][0] / norm;
    out->y = rows[best][1] / norm;
    out->z = rows[best][2] / norm;
    out->w = rows[best][3] / norm;
}

void vxd_volume_fill_pose(const struct vxd_volume_pose *pose, Voxeld__V1__Pose *out)
{
    out->translation->x = pose->translation[0];
    out->translation->y = pose->translation[1];
    out->translation->z = pose->translation[2];
    quaternion_of(pose->rotation, out->rotation);
}

Voxeld__V1__Pose *vxd_volume_new_pose(struct vxd_decoder *arena,
                                      const struct vxd_volume_pose *pose,
                                      struct vxd_err *err)
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
    vxd_volume_fill_pose(pose, out);
    return out;
}

enum vxd_status vxd_volume_query_pose(struct vxd_decoder *decoder,
                                      const struct vxd_query_item *item,
                                      Voxeld__V1__Pose **out, struct vxd_err *err)
{
    Voxeld__V1__Pose *pose = vxd_message_new(decoder, &voxeld__v1__pose__descriptor, err);
    double v[7] = {0};
    size_t n = vxd_query_numbers(item->value, v, 7);

    if (n != 3 && n != 7) {
        return vxd_query_fail(err, item, "x,y,z or x,y,z,qx,qy,qz,qw");
    }
    if (pose == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    pose->translation = vxd_message_new(decoder, &voxeld__v1__vec3__descriptor, err);
    pose->rotation = vxd_message_new(decoder, &voxeld__v1__quaternion__descriptor, err);
    if (pose->translation == NULL || pose->rotation == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    pose->translation->x = v[0];
    pose->translation->y = v[1];
    pose->translation->z = v[2];
    pose->rotation->x = v[3];
    pose->rotation->y = v[4];
    pose->rotation->z = v[5];
    pose->rotation->w = v[6];
    *out = pose;
    return VXD_OK;
}
