// SPDX-License-Identifier: Apache-2.0
/* Pictures, planar scans, poses and lines of a log as Foxglove's messages. */
#include <math.h>
#include <string.h>

#include "server/transport/foxglove/foxglove_internal.h"

#define PI 3.14159265358979323846
#define LEVEL_INFO 2

void vxd_fox_image_message(const Voxeld__V1__SceneRenderResponse *reply,
                           const char *frame, int64_t stamp_ns, struct vxd_text *text)
{
    vxd_fox_time(text, 1, stamp_ns);
    vxd_fox_bytes(text, 2, reply->image.data, reply->image.len);
    vxd_fox_string(text, 3, "jpeg");
    vxd_fox_string(text, 4, frame);
}

enum vxd_status vxd_fox_laser_message(const Voxeld__V1__SceneRenderResponse *reply,
                                      const char *frame, const double place[3],
                                      int64_t stamp_ns, struct vxd_text *text,
                                      struct vxd_err *err)
{
    size_t n = reply->width;
    double step = 2 * PI / (double)(n > 0 ? n : 1);

    if (n == 0 || reply->pixels == NULL || reply->pixels->data.len != n * sizeof(float)) {
        return vxd_fail(err, VXD_INTERNAL, NULL, "depths of a row are missing");
    }
    vxd_fox_time(text, 1, stamp_ns);
    vxd_fox_string(text, 2, frame);
    vxd_fox_pose(text, 3, place[0], place[1], place[2]);
    /* Columns go around clockwise, from behind to behind; a scan goes the other way. */
    vxd_fox_double(text, 4, -PI + step / 2);
    vxd_fox_double(text, 5, PI - step / 2);
    vxd_fox_begin_bytes(text, 6, n * sizeof(double)); /* packed */
    for (size_t i = n; i > 0; i--) {
        float depth;
        double range;

        memcpy(&depth, reply->pixels->data.data + (i - 1) * sizeof depth, sizeof depth);
        range = (double)depth;
        vxd_text_append(text, (const char *)&range, sizeof range);
    }
    return VXD_OK;
}

void vxd_fox_pose_message(const Voxeld__V1__Pose *pose, const char *frame,
                          int64_t stamp_ns, struct vxd_text *text)
{
    const Voxeld__V1__Vec3 *t = pose->translation;
    const Voxeld__V1__Quaternion *q = pose->rotation;
    size_t at, inner;

    vxd_fox_time(text, 1, stamp_ns);
    vxd_fox_string(text, 2, frame);
    at = vxd_fox_open(text, 3);
    vxd_fox_vector(text, 1, t != NULL ? t->x : 0, t != NULL ? t->y : 0,
                   t != NULL ? t->z : 0);
    inner = vxd_fox_open(text, 2);
    vxd_fox_double(text, 1, q != NULL ? q->x : 0);
    vxd_fox_double(text, 2, q != NULL ? q->y : 0);
    vxd_fox_double(text, 3, q != NULL ? q->z : 0);
    vxd_fox_double(text, 4, q != NULL ? q->w : 1);
    vxd_fox_close(text, inner);
    vxd_fox_close(text, at);
}

void vxd_fox_log_message(const char *name, const char *message, int64_t stamp_ns,
                         struct vxd_text *text)
{
    vxd_fox_time(text, 1, stamp_ns);
    vxd_fox_number(text, 2, LEVEL_INFO);
    vxd_fox_string(text, 3, message);
    vxd_fox_string(text, 4, name);
}
