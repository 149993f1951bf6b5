// SPDX-License-Identifier: Apache-2.0
/* The surface of a volume as a camera of gpu/render sees it: the box that it is in, the rays, and what
 * they find. */
#include <math.h>
#include <stdlib.h>

#include "server/service/service.h"
#include "server/service/volume/volume_service.h"

#define PI 3.14159265358979323846
#define MAX_DEPTH_M 1000

enum vxd_status vxd_volume_find_box(struct vxd_queue *queue,
                                    struct vxd_volume_sight *view, struct vxd_err *err)
{
    const struct vxd_volume *volume = view->casting.volume->state.volume;
    const struct vxd_volume_spec *spec = &view->casting.volume->spec;
    const double side_m = spec->block_edge * spec->voxel_size_m;
    struct vxd_volume_blocks blocks = {0};
    int32_t *entries = NULL;
    int32_t low[3] = {INT32_MAX, INT32_MAX, INT32_MAX};
    int32_t high[3] = {INT32_MIN, INT32_MIN, INT32_MIN};
    size_t n = 0;
    enum vxd_status status;

    VXD_TRY(vxd_volume_list_changed(queue, volume, 0, &entries, &n, err));
    VXD_TRY(vxd_volume_read_blocks(queue, volume, entries, n, false, &blocks, err));
    for (size_t i = 0; i < 3 * n; i++) {
        int32_t key = blocks.keys[i];

        low[i % 3] = key < low[i % 3] ? key : low[i % 3];
        high[i % 3] = key > high[i % 3] ? key : high[i % 3];
    }
    for (int axis = 0; axis < 3; axis++) {
        view->low[axis] = n > 0 ? low[axis] * side_m : 0;
        view->high[axis] = n > 0 ? (high[axis] + 1) * side_m : side_m;
    }
out:
    vxd_volume_blocks_free(queue, &blocks);
    free(entries);
    return status;
}

/* How far the farthest corner of the box is from the eye, along the longest ray. */
static double farthest(const struct vxd_volume_sight *view)
{
    const double *eye = view->picture.camera.eye;
    double square = 0;

    for (int i = 0; i < 3; i++) {
        double d = fmax(fabs(view->low[i] - eye[i]), fabs(view->high[i] - eye[i]));

        square += d * d;
    }
    return fmin(sqrt(square), MAX_DEPTH_M);
}

/* A picture all around as a lidar's: a panorama has a row an equal part of the elevations. */
static enum vxd_status aim_around(struct vxd_request *request,
                                  struct vxd_volume_sight *view, struct vxd_err *err)
{
    const struct vxd_render_picture *picture = &view->picture;
    double *elevations =
        vxd_message_array(request->decoder, picture->height, sizeof *elevations, err);

    if (elevations == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (uint32_t y = 0; y < picture->height; y++) {
        elevations[y] = picture->camera.kind == VXD_RENDER_LIDAR
                            ? picture->camera.elevations_deg[y]
                            : (0.5 - (y + 0.5) / picture->height) * 180;
    }
    view->lidar = (struct vxd_volume_lidar){.rows = (int)picture->height,
                                            .columns = (int)picture->width,
                                            .elevations_deg = elevations,
                                            .azimuth_begin_deg = 180,
                                            .azimuth_span_deg = -360};
    view->casting.args.lidar = &view->lidar;
    return vxd_volume_check_lidar(&view->lidar, VXD_CAMERA_MAX_ELEVATION, err);
}

/* The engine's cameras look along z, with x to the right and y down; its lidars along x, with y to the
 * left and z up. */
enum vxd_status vxd_volume_aim(struct vxd_request *request, struct vxd_volume_sight *view,
                               double depth_max_m, struct vxd_err *err)
{
    struct vxd_volume_cast_args *args = &view->casting.args;
    const struct vxd_render_picture *picture = &view->picture;
    const double *origin = view->casting.volume->spec.origin_m;
    bool is_around = picture->camera.kind != VXD_RENDER_PINHOLE;
    struct vxd_render_axes axes;

    vxd_render_find_axes(&picture->camera, &axes);
    for (size_t i = 0; i < 3; i++) {
        double *row = args->T_map_camera.rotation + 3 * i;

        args->T_map_camera.translation[i] = picture->camera.eye[i] + origin[i];
        row[0] = is_around ? axes.forward[i] : axes.right[i];
        row[1] = is_around ? -axes.right[i] : -axes.up[i];
        row[2] = is_around ? axes.up[i] : axes.forward[i];
    }
    args->depth_max_m = depth_max_m > 0 ? depth_max_m : farthest(view);
    if (is_around) {
        return aim_around(request, view, err);
    }
    args->camera.width = (int)picture->width;
    args->camera.height = (int)picture->height;
    args->camera.fy = picture->height / (2 * tan(picture->camera.fov_y_deg * PI / 360));
    args->camera.fx = args->camera.fy;
    args->camera.cx = picture->width / 2.0 - 0.5;
    args->camera.cy = picture->height / 2.0 - 0.5;
    return VXD_OK;
}

enum vxd_status vxd_volume_reserve_seen(struct vxd_request *request,
                                        struct vxd_columns *columns,
                                        struct vxd_queue *queue,
                                        struct vxd_volume_sight *view,
                                        struct vxd_err *err)
{
    const struct vxd_volume_spec *spec = &view->casting.volume->spec;
    struct vxd_volume_cast_args *args = &view->casting.args;
    enum vxd_render_mode mode = view->picture.mode;
    size_t n = (size_t)view->picture.width * view->picture.height;
    enum vxd_status status;

    VXD_TRY(vxd_columns_reserve_shown(request, columns, queue, VXD_FLOAT32, n, 0, NULL,
                                      &view->depth, err));
    args->depth = view->depth->device;
    if (mode == VXD_RENDER_DEPTH) {
        return VXD_OK;
    }
    VXD_TRY(vxd_columns_reserve_shown(request, columns, queue, VXD_FLOAT32, n, 3, NULL,
                                      &view->normals, err));
    args->normal = view->normals->device;
    if (mode == VXD_RENDER_HEIGHT) {
        VXD_TRY(vxd_columns_reserve_shown(request, columns, queue, VXD_FLOAT32, n, 3,
                                          NULL, &view->places, err));
        args->vertex = view->places->device;
    } else if (mode == VXD_RENDER_LABEL) {
        VXD_TRY(vxd_columns_reserve_shown(request, columns, queue, VXD_UINT8, n, 0, NULL,
                                          &view->labels, err));
        args->label = view->labels->device;
    } else if (mode == VXD_RENDER_COLOUR && spec->has_colour) {
        VXD_TRY(vxd_columns_reserve_shown(request, columns, queue, VXD_UINT8, n, 3, NULL,
                                          &view->colours, err));
        args->colour = view->colours->device;
    }
out:
    return status;
}

static const void *bytes_of(const struct vxd_column *output)
{
    return output != NULL ? output->bytes : NULL;
}

struct vxd_render_seen vxd_volume_seen(const struct vxd_volume_sight *view)
{
    return (struct vxd_render_seen){.depths = bytes_of(view->depth),
                                    .normals = bytes_of(view->normals),
                                    .places = bytes_of(view->places),
                                    .colours = bytes_of(view->colours),
                                    .labels = bytes_of(view->labels)};
}
