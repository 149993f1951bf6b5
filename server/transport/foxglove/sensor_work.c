// SPDX-License-Identifier: Apache-2.0
/* Pictures of a scene, and what the sensor of its newest scan would measure in it now: the requests,
 * and what becomes of their replies. */
#include <string.h>

#include "server/transport/foxglove/viewer_internal.h"

enum {
    PICTURE_WIDTH = 640,
    PICTURE_HEIGHT = 360,
    SCAN_COLUMNS = 720 /* half a degree each */
};

bool vxd_fox_needs_sensor(enum vxd_foxglove_schema schema)
{
    return schema == VXD_FOXGLOVE_POSE || schema == VXD_FOXGLOVE_LASER_SCAN;
}

void vxd_fox_take_sensor(struct vxd_fox_thing *thing, const Voxeld__V1__Pose *pose,
                         int64_t sensor_ns)
{
    thing->sensor_ns = pose != NULL ? sensor_ns : 0;
    memset(thing->place, 0, sizeof thing->place);
    memset(thing->turn, 0, sizeof thing->turn);
    thing->turn[3] = 1;
    if (pose != NULL && pose->translation != NULL) {
        thing->place[0] = pose->translation->x;
        thing->place[1] = pose->translation->y;
        thing->place[2] = pose->translation->z;
    }
    if (pose != NULL && pose->rotation != NULL) {
        thing->turn[0] = pose->rotation->x;
        thing->turn[1] = pose->rotation->y;
        thing->turn[2] = pose->rotation->z;
        thing->turn[3] = pose->rotation->w;
    }
}

bool vxd_fox_ask_render(struct vxd_fox_job *job, const struct vxd_fox_thing *thing,
                        char *body, size_t capacity)
{
    const double *p = thing->place;

    job->kind = VXD_FOX_RENDER;
    memcpy(job->frame, thing->frame, sizeof job->frame);
    memcpy(job->place, p, sizeof job->place);
    if (job->schema == VXD_FOXGLOVE_IMAGE) {
        (void)snprintf(body, capacity,
                       "{\"name\":\"%s\",\"encode\":\"RENDER_JPEG\",\"width\":%d,"
                       "\"height\":%d}",
                       thing->name, PICTURE_WIDTH, PICTURE_HEIGHT);
        return true;
    }
    (void)snprintf(
        body, capacity,
        "{\"name\":\"%s\",\"mode\":\"RENDER_DEPTH\",\"camera\":\"RENDER_LIDAR\","
        "\"elevationsDeg\":{\"dtype\":\"FLOAT64\",\"shape\":[1],\"values\":[0]},"
        "\"width\":%d,\"view\":{\"eye\":{\"x\":%.9g,\"y\":%.9g,\"z\":%.9g},"
        "\"target\":{\"x\":%.9g,\"y\":%.9g,\"z\":%.9g}}}",
        thing->name, SCAN_COLUMNS, p[0], p[1], p[2], p[0] + 1, p[1], p[2]);
    return thing->sensor_ns != 0;
}

enum vxd_status vxd_fox_take_render(const struct vxd_fox_job *job,
                                    const Voxeld__V1__SceneRenderResponse *output,
                                    size_t max_bytes, struct vxd_text *text,
                                    struct vxd_err *err)
{
    if (output->image.len > max_bytes) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "max_bytes",
                        "%zu bytes are too few for a picture of %zu", max_bytes,
                        output->image.len);
    }
    if (job->schema == VXD_FOXGLOVE_LASER_SCAN) {
        return vxd_fox_laser_message(output, job->frame, job->place, job->changed_ns,
                                     text, err);
    }
    vxd_fox_image_message(output, job->frame, job->changed_ns, text);
    return VXD_OK;
}

bool vxd_fox_append_pose(const struct vxd_fox_thing *thing, struct vxd_text *text)
{
    Voxeld__V1__Pose pose = VOXELD__V1__POSE__INIT;
    Voxeld__V1__Vec3 place = VOXELD__V1__VEC3__INIT;
    Voxeld__V1__Quaternion turn = VOXELD__V1__QUATERNION__INIT;

    place.x = thing->place[0];
    place.y = thing->place[1];
    place.z = thing->place[2];
    turn.x = thing->turn[0];
    turn.y = thing->turn[1];
    turn.z = thing->turn[2];
    turn.w = thing->turn[3];
    pose.translation = &place;
    pose.rotation = &turn;
    if (thing->sensor_ns == 0) {
        return false;
    }
    vxd_fox_pose_message(&pose, thing->frame, thing->sensor_ns, text);
    return true;
}
