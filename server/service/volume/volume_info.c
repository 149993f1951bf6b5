// SPDX-License-Identifier: Apache-2.0
/* Converts parameters, cameras and boxes between the schema and the engine. */
#include <math.h>

#include "proto/base/clock.h"
#include "server/service/clouds/clouds.h"
#include "server/service/service.h"
#include "server/service/volume/volume_service.h"

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
    info->name = vxd_message_text(arena, volume->named.terms.name,
                                  strlen(volume->named.terms.name), err);
    info->owner = vxd_message_text(arena, volume->named.terms.owner,
                                   strlen(volume->named.terms.owner), err);
    if (info->origin == NULL || info->name == NULL || info->owner == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    vxd_volume_get_info(volume->state.volume, &engine);
    info->voxel_size_m = spec->voxel_size_m;
    info->truncation_m = spec->truncation_m;
    info->block = (uint32_t)spec->block_edge;
    info->compact = spec->form == VXD_VOLUME_COMPACT;
    info->colour = spec->has_colour;
    info->max_weight = spec->max_weight;
    info->unavailable = volume->named.durable.is_broken;
    if (!info->unavailable) {
        info->n_blocks = engine.n_blocks;
        info->n_bytes = engine.n_bytes;
        info->n_images = volume->state.n_images;
        info->stamp = engine.version;
    }
    info->max_bytes = volume->named.terms.max_bytes;
    info->when_full = volume->named.terms.forgets
                          ? VOXELD__V1__VOLUME_FULL__VOLUME_FULL_FORGET_FARTHEST
                          : VOXELD__V1__VOLUME_FULL__VOLUME_FULL_REFUSE;
    info->durable = volume->named.terms.durable;
    if (volume->named.terms.durable) {
        info->fsync = (Voxeld__V1__VolumeFsync)volume->named.terms.fsync;
        info->journal_max_bytes = volume->named.terms.journal_max_bytes;
    }
    info->generation = volume->named.generation;
    info->created_ns = volume->named.created_unix_ns;
    info->labels = spec->has_labels;
    info->albedo = spec->has_albedo;
    info->origin->x = spec->origin_m[0];
    info->origin->y = spec->origin_m[1];
    info->origin->z = spec->origin_m[2];
    if (volume->named.terms.ttl_ns > 0) {
        int64_t left =
            volume->named.used_ns + volume->named.terms.ttl_ns - vxd_clock_ns();

        info->ttl_s = (double)volume->named.terms.ttl_ns / 1e9;
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
