// SPDX-License-Identifier: Apache-2.0
/* Converts parameters, cameras and poses between the schema and the engine. */
#include <math.h>

#include "proto/base/clock.h"
#include "server/service/clouds/clouds.h"
#include "server/service/service.h"
#include "server/service/volume/volume_service.h"

#define MAX_NORM_ERROR 1e-3

enum vxd_status vxd_volume_new_info(struct vxd_decoder *arena,
                                    const struct vxd_named_volume *volume,
                                    Voxeld__V1__VolumeInfo **out, struct vxd_err *err)
{
    const struct vxd_volume_spec *spec = &volume->spec;
    Voxeld__V1__VolumeInfo *info =
        vxd_message_new(arena, &voxeld__v1__volume_info__descriptor, err);
    struct vxd_volume_info engine;

    if (info == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    info->origin = vxd_message_new(arena, &voxeld__v1__vec3__descriptor, err);
    info->name =
        vxd_message_text(arena, volume->terms.name, strlen(volume->terms.name), err);
    info->owner =
        vxd_message_text(arena, volume->terms.owner, strlen(volume->terms.owner), err);
    if (info->origin == NULL || info->name == NULL || info->owner == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    vxd_volume_get_info(volume->volume, &engine);
    info->voxel_size_m = spec->voxel_size_m;
    info->truncation_m = spec->truncation_m;
    info->block = (uint32_t)spec->block_edge;
    info->compact = spec->form == VXD_VOLUME_COMPACT;
    info->colour = spec->has_colour;
    info->max_weight = spec->max_weight;
    info->unavailable = volume->durable.is_broken;
    if (!info->unavailable) {
        info->n_blocks = engine.n_blocks;
        info->n_bytes = engine.n_bytes;
        info->n_images = volume->n_images;
        info->stamp = engine.version;
    }
    info->max_bytes = volume->terms.max_bytes;
    info->when_full = volume->terms.forgets
                          ? VOXELD__V1__VOLUME_FULL__VOLUME_FULL_FORGET_FARTHEST
                          : VOXELD__V1__VOLUME_FULL__VOLUME_FULL_REFUSE;
    info->durable = volume->terms.durable;
    if (volume->terms.durable) {
        info->fsync = (Voxeld__V1__VolumeFsync)volume->terms.fsync;
        info->journal_max_bytes = volume->terms.journal_max_bytes;
    }
    info->generation = volume->generation;
    info->created_ns = volume->created_unix_ns;
    info->labels = spec->has_labels;
    info->albedo = spec->has_albedo;
    info->origin->x = spec->origin_m[0];
    info->origin->y = spec->origin_m[1];
    info->origin->z = spec->origin_m[2];
    if (volume->terms.ttl_ns > 0) {
        int64_t left = volume->used_ns + volume->terms.ttl_ns - vxd_clock_ns();

        info->ttl_s = (double)volume->terms.ttl_ns / 1e9;
        info->ttl_left_s = left > 0 ? (double)left / 1e9 : 0;
    }
    *out = info;
    return VXD_OK;
}

enum vxd_status vxd_volume_check_number(double value, const char *field, double low,
                                        double high, struct vxd_err *err)
{
    return value >= low && value <= high
               ? VXD_OK
               : vxd_fail(err, VXD_INVALID_ARGUMENT, field, "is %g, must be %g to %g",
                          value, low, high);
}

enum vxd_status vxd_volume_read_camera(const Voxeld__V1__VolumeCamera *camera,
                                       const char *field, const struct vxd_image *image,
                                       struct vxd_volume_camera *out, struct vxd_err *err)
{
    uint32_t width;
    uint32_t height;

    if (camera == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field, "is missing");
    }
    width = camera->width == 0 && image != NULL ? image->width : camera->width;
    height = camera->height == 0 && image != NULL ? image->height : camera->height;
    if (image != NULL && (width != image->width || height != image->height)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "has %u x %u pixels, the image has %u x %u", width, height,
                        image->width, image->height);
    }
    if (width == 0 || height == 0 || (uint64_t)width * height > VXD_VOLUME_MAX_PIXELS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "has %u x %u pixels; sides must be above 0 and pixels at most %d",
                        width, height, VXD_VOLUME_MAX_PIXELS);
    }
    *out = (struct vxd_volume_camera){.width = (int)width,
                                      .height = (int)height,
                                      .fx = camera->fx,
                                      .fy = camera->fy != 0 ? camera->fy : camera->fx,
                                      .cx = camera->cx,
                                      .cy = camera->cy,
                                      .distortion = {camera->k1, camera->k2, camera->p1,
                                                     camera->p2, camera->k3, camera->k4,
                                                     camera->k5, camera->k6}};
    return VXD_OK;
}

enum vxd_status vxd_volume_read_lidar(const Voxeld__V1__VolumeLidar *lidar,
                                      double max_elevation_deg,
                                      struct vxd_volume_lidar *out, struct vxd_err *err)
{
    bool has_list = lidar->n_elevations_deg > 0;

    if (has_list && lidar->rows != 0 && lidar->rows != lidar->n_elevations_deg) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "lidar.elevations_deg",
                        "has %zu numbers for %u rows", lidar->n_elevations_deg,
                        lidar->rows);
    }
    if (lidar->rows > VXD_LIDAR_MAX_ROWS || lidar->columns > VXD_LIDAR_MAX_COLUMNS ||
        lidar->n_elevations_deg > VXD_LIDAR_MAX_ROWS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "lidar",
                        "has %u rows and %u columns; at most %d and %d are possible",
                        lidar->rows, lidar->columns, VXD_LIDAR_MAX_ROWS,
                        VXD_LIDAR_MAX_COLUMNS);
    }
    *out = (struct vxd_volume_lidar){
        .rows = (int)(has_list ? lidar->n_elevations_deg : lidar->rows),
        .columns = (int)lidar->columns,
        .elevations_deg = has_list ? lidar->elevations_deg : NULL,
        .top_deg = lidar->top_deg,
        .bottom_deg = lidar->bottom_deg,
        .azimuth_begin_deg = lidar->azimuth_begin_deg,
        .azimuth_span_deg = lidar->azimuth_span_deg != 0 ? lidar->azimuth_span_deg : 360,
    };
    return vxd_volume_check_lidar(out, max_elevation_deg, err);
}

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

void vxd_volume_show_camera(const struct vxd_volume_camera *camera,
                            Voxeld__V1__VolumeCamera *out)
{
    out->width = (uint32_t)camera->width;
    out->height = (uint32_t)camera->height;
    out->fx = camera->fx;
    out->fy = camera->fy;
    out->cx = camera->cx;
    out->cy = camera->cy;
    out->k1 = camera->distortion[0];
    out->k2 = camera->distortion[1];
    out->p1 = camera->distortion[2];
    out->p2 = camera->distortion[3];
    out->k3 = camera->distortion[4];
    out->k4 = camera->distortion[5];
    out->k5 = camera->distortion[6];
    out->k6 = camera->distortion[7];
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
    out->translation->x = pose->translation[0];
    out->translation->y = pose->translation[1];
    out->translation->z = pose->translation[2];
    quaternion_of(pose->rotation, out->rotation);
    return out;
}

enum vxd_status vxd_volume_read_box(const Voxeld__V1__VolumeBox *box, double low[3],
                                    double high[3], struct vxd_err *err)
{
    static const char axes[] = "xyz";

    if (box->low == NULL || box->high == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT,
                        box->low == NULL ? "box.low" : "box.high", "is missing");
    }
    low[0] = box->low->x;
    low[1] = box->low->y;
    low[2] = box->low->z;
    high[0] = box->high->x;
    high[1] = box->high->y;
    high[2] = box->high->z;
    for (int i = 0; i < 3; i++) {
        if (!isfinite(low[i]) || !isfinite(high[i]) || !(low[i] < high[i])) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "box",
                            "%c is %g to %g, must be finite and rising", axes[i], low[i],
                            high[i]);
        }
    }
    return VXD_OK;
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
