// SPDX-License-Identifier: Apache-2.0
/* Ray casting: checks, the range image, dispatch. */
#include <stdlib.h>

#include "gpu/volume/volume_internal.h"

#define MAX_ELEVATION 90.0

static enum vxd_status check_outputs(const struct vxd_volume *volume,
                                     const struct vxd_volume_cast_args *args,
                                     struct vxd_err *err)
{
    if (args->colour != NULL && !volume->spec.has_colour) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "colour", "the volume has no colour");
    }
    if (args->label != NULL && !volume->spec.has_labels) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "label", "the volume has no labels");
    }
    if (!(args->weight_threshold >= 0 && args->weight_threshold <= 65535)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "weight_threshold",
                        "%g, must be 0 to 65535", args->weight_threshold);
    }
    if (args->mode != VXD_VOLUME_CAST_GLOBAL && args->mode != VXD_VOLUME_CAST_LOCAL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "mode",
                        "%d is no mode; 0 is GLOBAL, 1 LOCAL", (int)args->mode);
    }
    if (args->mode == VXD_VOLUME_CAST_LOCAL && volume->frame_width == 0) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, "mode",
                        "LOCAL needs the touched blocks of a frame, and none was "
                        "activated since the last change of the blocks");
    }
    return vxd_volume_check_depths(args->depth_min_m, args->depth_max_m, err);
}

/* The rows of tiles that the arguments ask for. */
static enum vxd_status init_rows(const struct vxd_volume_cast_args *args,
                                 struct vxd_cast_call *call, struct vxd_err *err)
{
    int height = call->camera.height;
    int end = args->row_begin == 0 && args->row_end == 0 ? height : args->row_end;

    if (args->row_begin < 0 || args->row_begin > end || end > height ||
        args->row_begin % VXD_CAST_TILE != 0 ||
        (end % VXD_CAST_TILE != 0 && end != height)) {
        return vxd_fail(
            err, VXD_INVALID_ARGUMENT, "row_end",
            "rows %d to %d of %d, must be multiples of %d or end at the height",
            args->row_begin, args->row_end, height, VXD_CAST_TILE);
    }
    call->first_row = args->row_begin / VXD_CAST_TILE;
    call->end_row = (end + VXD_CAST_TILE - 1) / VXD_CAST_TILE;
    return VXD_OK;
}

static void init_pose(const struct vxd_volume *volume, const struct vxd_volume_pose *pose,
                      struct vxd_cast_call *call)
{
    float to_blocks[9];

    vxd_pose_to_blocks(volume, pose, call->base, call->offset, to_blocks);
    for (int axis = 0; axis < 3; axis++) {
        call->offset[axis] *= (float)volume->spec.block_edge; /* exact */
        call->at[axis] = (float)(pose->translation[axis] - volume->spec.origin_m[axis]);
        for (int j = 0; j < 3; j++) {
            call->to_camera[3 * axis + j] = (float)pose->rotation[3 * j + axis];
            call->to_voxels[3 * axis + j] =
                (float)(pose->rotation[3 * axis + j] / volume->spec.voxel_size_m);
        }
    }
}

/* Checks the arguments and fills everything but the range image. */
static enum vxd_status init_call(const struct vxd_volume *volume,
                                 const struct vxd_volume_cast_args *args,
                                 struct vxd_cast_call *call, struct vxd_err *err)
{
    bool is_local = args->mode == VXD_VOLUME_CAST_LOCAL;
    enum vxd_status status;

    *call = (struct vxd_cast_call){
        .depth_min = (float)args->depth_min_m,
        .depth_max = (float)args->depth_max_m,
        .weight_threshold = (float)args->weight_threshold,
        .mu_voxels = (float)(volume->spec.truncation_m / volume->spec.voxel_size_m),
        .depth = args->depth,
        .vertex = args->vertex,
        .normal = args->normal,
        .colour = args->colour,
        .mask = args->mask,
        .label = args->label,
        .weight = args->weight,
    };
    if (args->lidar != NULL) {
        VXD_TRY(vxd_volume_check_lidar(args->lidar, MAX_ELEVATION, err));
        call->camera.width = args->lidar->columns;
        call->camera.height = args->lidar->rows;
    } else {
        VXD_TRY(vxd_camera_form_init(&args->camera, "camera", &call->camera, err));
    }
    VXD_TRY(vxd_volume_check_pose(&args->T_map_camera, "T_map_camera", err));
    VXD_TRY(check_outputs(volume, args, err));
    vxd_volume_get_view(volume, &call->view);
    init_pose(volume, &args->T_map_camera, call);
    call->tiles_x = (call->camera.width + VXD_CAST_TILE - 1) / VXD_CAST_TILE;
    call->tiles_y = (call->camera.height + VXD_CAST_TILE - 1) / VXD_CAST_TILE;
    VXD_TRY(init_rows(args, call, err));
    call->entries = is_local ? volume->frame_entries.ptr : NULL;
    call->n = is_local ? volume->n_touched : call->view.capacity;
out:
    return status;
}

/* Fills rows of an output with zeros; NULL is none. */
static enum vxd_status blank(struct vxd_queue *queue, void *output, size_t first,
                             size_t n, size_t pixel_bytes, struct vxd_err *err)
{
    return output != NULL ? vxd_queue_fill(queue, (char *)output + first * pixel_bytes, 0,
                                           n * pixel_bytes, err)
                          : VXD_OK;
}

/* The picture of a volume without blocks. */
static enum vxd_status cast_nothing(struct vxd_queue *queue,
                                    const struct vxd_volume_cast_args *args,
                                    const struct vxd_cast_call *call, struct vxd_err *err)
{
    size_t width = (size_t)call->camera.width;
    size_t height = (size_t)call->camera.height;
    size_t row = (size_t)call->first_row * VXD_CAST_TILE;
    size_t end = (size_t)call->end_row * VXD_CAST_TILE;
    size_t first = row * width;
    size_t n = ((end < height ? end : height) - row) * width;
    enum vxd_status status;

    VXD_TRY(blank(queue, args->depth, first, n, sizeof(float), err));
    VXD_TRY(blank(queue, args->vertex, first, n, 3 * sizeof(float), err));
    VXD_TRY(blank(queue, args->normal, first, n, 3 * sizeof(float), err));
    VXD_TRY(blank(queue, args->colour, first, n, 3, err));
    VXD_TRY(blank(queue, args->mask, first, n, 1, err));
    VXD_TRY(blank(queue, args->label, first, n, 1, err));
    VXD_TRY(blank(queue, args->weight, first, n, sizeof(float), err));
out:
    return status;
}

/* Cosines and sines of a lidar's angles. Blocking. */
static enum vxd_status upload_beams(struct vxd_queue *queue,
                                    const struct vxd_volume_lidar *lidar,
                                    struct vxd_buffer *device, const float **out,
                                    struct vxd_err *err)
{
    size_t n = (size_t)lidar->rows + (size_t)lidar->columns;
    float *beams = malloc(2 * n * sizeof *beams);
    const double radians = 3.14159265358979323846 / 180;
    enum vxd_status status;

    if (beams == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %zu angles", n);
    }
    for (int i = 0; i < lidar->rows + lidar->columns; i++) {
        int column = i - lidar->rows;
        double degrees =
            i < lidar->rows ? vxd_volume_lidar_elevation(lidar, i)
                            : lidar->azimuth_begin_deg + (column + 0.5) / lidar->columns *
                                                             lidar->azimuth_span_deg;

        beams[2 * (size_t)i] = (float)cos(degrees * radians);
        beams[2 * (size_t)i + 1] = (float)sin(degrees * radians);
    }
    VXD_TRY(vxd_device_alloc(queue, 2 * n * sizeof *beams, device, err));
    VXD_TRY(vxd_queue_copy(queue, device->ptr, beams, 2 * n * sizeof *beams, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    *out = device->ptr;
out:
    free(beams);
    return status;
}

enum vxd_status vxd_volume_cast(struct vxd_queue *queue, struct vxd_volume *volume,
                                const struct vxd_volume_cast_args *args,
                                struct vxd_err *err)
{
    struct vxd_buffer range = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer beams = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_cast_call call;
    size_t n_bytes;
    enum vxd_status status;

    VXD_TRY(init_call(volume, args, &call, err));
    if (call.first_row == call.end_row) {
        return VXD_OK;
    }
    if (volume->n_blocks == 0) {
        return cast_nothing(queue, args, &call, err);
    }
    if (args->lidar != NULL) {
        VXD_TRY(upload_beams(queue, args->lidar, &beams, &call.beams, err));
    } else if (call.camera.is_distorted ==
               0) { /* straight edges project to straight ones */
        n_bytes = (size_t)call.tiles_x * (size_t)call.tiles_y * sizeof(uint32_t);
        VXD_TRY(vxd_device_alloc(queue, 2 * n_bytes, &range, err));
        call.range_min = range.ptr;
        call.range_max = call.range_min + n_bytes / sizeof(uint32_t);
        VXD_TRY(vxd_queue_fill(queue, call.range_min, 0x7f, n_bytes, err));
        VXD_TRY(vxd_queue_fill(queue, call.range_max, 0, n_bytes, err));
    }
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_volume_cast)(queue, &call, err));
out:
    vxd_device_free(queue, &beams);
    vxd_device_free(queue, &range);
    return status;
}
