// SPDX-License-Identifier: Apache-2.0
/* Ray casting: checks, by cells or by rays, dispatch. */
#include <stdlib.h>

#include "gpu/core/core_cpu.h"
#include "gpu/volume/cast/volume_cast_internal.h"

#define MAX_ELEVATION 90.0

/* Where cells look for rays: voxels of the blocks a pixel, voxels in all, and voxels from the
 * camera's block to the farthest. */
#define MAX_VOXELS_A_PIXEL 256.0
#define MAX_CELLS 2147483648.0
#define MAX_CELLS_REACH 2097152.0

/* Of the list of cells on a GPU, whose entries have 64 bytes. */
#define CELLS_A_CUBE ((size_t)96)
#define MOST_ENTRIES ((size_t)1 << 19)

static enum vxd_status check_outputs(const struct vxd_volume *volume,
                                     const struct vxd_volume_spec *spec,
                                     const struct vxd_volume_cast_args *args,
                                     struct vxd_err *err)
{
    const int32_t *touched;
    size_t n_touched;

    if (args->colour != NULL && !spec->has_colour) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "colour", "the volume has no colour");
    }
    if (args->label != NULL && !spec->has_labels) {
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
    if (args->mode == VXD_VOLUME_CAST_LOCAL &&
        !vxd_volume_get_touched(volume, &touched, &n_touched)) {
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

static void init_pose(const struct vxd_volume *volume, const struct vxd_volume_spec *spec,
                      const struct vxd_volume_pose *pose, struct vxd_cast_call *call)
{
    float to_blocks[9];

    vxd_pose_to_blocks(volume, pose, call->base, call->offset, to_blocks);
    for (int axis = 0; axis < 3; axis++) {
        call->offset[axis] *= (float)spec->block_edge; /* exact */
        call->at[axis] = (float)(pose->translation[axis] - spec->origin_m[axis]);
        for (int j = 0; j < 3; j++) {
            call->to_camera[3 * axis + j] = (float)pose->rotation[3 * j + axis];
            call->to_voxels[3 * axis + j] =
                (float)(pose->rotation[3 * axis + j] / spec->voxel_size_m);
        }
    }
}

/* Checks the arguments and fills everything but the range image. */
static enum vxd_status init_call(const struct vxd_volume *volume,
                                 const struct vxd_volume_spec *spec,
                                 const struct vxd_volume_cast_args *args,
                                 struct vxd_cast_call *call, struct vxd_err *err)
{
    enum vxd_status status;

    *call = (struct vxd_cast_call){
        .depth_min = (float)args->depth_min_m,
        .depth_max = (float)args->depth_max_m,
        .weight_threshold = (float)args->weight_threshold,
        .mu_voxels = (float)(spec->truncation_m / spec->voxel_size_m),
        .passes_backs = args->passes_backs,
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
    VXD_TRY(check_outputs(volume, spec, args, err));
    vxd_volume_get_view(volume, &call->view);
    init_pose(volume, spec, &args->T_map_camera, call);
    call->tiles_x = (call->camera.width + VXD_CAST_TILE - 1) / VXD_CAST_TILE;
    call->tiles_y = (call->camera.height + VXD_CAST_TILE - 1) / VXD_CAST_TILE;
    VXD_TRY(init_rows(args, call, err));
    call->n = call->view.capacity;
    if (args->mode == VXD_VOLUME_CAST_LOCAL) {
        (void)vxd_volume_get_touched(volume, &call->entries, &call->n);
    }
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

/* Makes the range image, empty. */
static enum vxd_status make_range(struct vxd_queue *queue, struct vxd_cast_call *call,
                                  struct vxd_buffer *range, struct vxd_err *err)
{
    size_t n_bytes = (size_t)call->tiles_x * (size_t)call->tiles_y * sizeof(uint32_t);
    enum vxd_status status;

    VXD_TRY(vxd_device_alloc(queue, 2 * n_bytes, range, err));
    call->range_min = range->ptr;
    call->range_max = call->range_min + n_bytes / sizeof(uint32_t);
    VXD_TRY(vxd_queue_fill(queue, call->range_min, 0x7f, n_bytes, err));
    VXD_TRY(vxd_queue_fill(queue, call->range_max, 0, n_bytes, err));
out:
    return status;
}

/* Whether the cells look for their rays: where rays are straight lines of pixels, cells have numbers
 * of 31 bits and exact places in float32, and there are not so many voxels for a pixel that looking
 * at them all takes longer than a ray. */
static bool is_by_cells(const struct vxd_volume_info *info,
                        const struct vxd_volume_cast_args *args,
                        const struct vxd_cast_call *call)
{
    double a_block = (double)(1 << 3 * call->view.shift);
    double n_blocks = (double)(call->entries != NULL ? call->n : info->n_blocks);
    double n_pixels = (double)call->camera.width * call->camera.height;
    double reach = args->depth_max_m / info->spec.voxel_size_m *
                   (1 + call->camera.width / args->camera.fx +
                    call->camera.height / args->camera.fy);

    return args->lidar == NULL && call->camera.is_distorted == 0 &&
           n_blocks * a_block <= MAX_VOXELS_A_PIXEL * n_pixels &&
           call->view.capacity * a_block <= MAX_CELLS && reach <= MAX_CELLS_REACH;
}

/* Fills everything but the crossings. */
static void init_cells(const struct vxd_cast_call *cast, struct vxd_cells_call *call)
{
    const struct vxd_camera_form *camera = &cast->camera;

    *call = (struct vxd_cells_call){.cast = *cast};
    for (int axis = 0; axis < 3; axis++) {
        const float *row = cast->to_voxels + 3 * (size_t)axis;
        double by_u = (double)row[0] / (double)camera->fx;
        double by_v = (double)row[1] / (double)camera->fy;

        call->by_u[axis] = (float)by_u;
        call->by_v[axis] = (float)by_v;
        call->by_1[axis] = (float)((double)row[2] - by_u * (double)camera->cx -
                                   by_v * (double)camera->cy);
        for (int j = 0; j < 3; j++) {
            float size = fabsf(cast->to_camera[3 * axis + j]) * cast->view.voxel_size;

            call->half[axis] += 0.50001f * size;
            call->spread[3 * axis + j] = 1.00002f * size;
        }
    }
    call->least_z = fmaxf(0.999f * cast->depth_min, 1e-3f * cast->view.voxel_size);
}

/* Entries of the list of cells on a GPU. A surface through a cube of cells goes through some 64 to 96 of
 * them, and most cubes have none; cells of several pixels have an entry for 64 of those. Where the list
 * is too short nothing is lost, but time is. */
static size_t count_entries(const struct vxd_cast_call *cast, size_t n_blocks,
                            size_t n_pixels)
{
    size_t n_cubes = n_blocks << 3 * (cast->view.shift - 3);
    size_t n =
        n_cubes < MOST_ENTRIES / CELLS_A_CUBE ? n_cubes * CELLS_A_CUBE : MOST_ENTRIES;

    return n > n_pixels ? n : n_pixels;
}

static enum vxd_status cast_cells(struct vxd_queue *queue,
                                  const struct vxd_cast_call *cast, size_t n_blocks,
                                  struct vxd_buffer *scratch, struct vxd_err *err)
{
    size_t n_rows = (size_t)(vxd_cast_end_row(cast) - cast->first_row * VXD_CAST_TILE);
    size_t n_pixels = n_rows * (size_t)cast->camera.width;
    size_t most = count_entries(cast, n_blocks, n_pixels);
    bool has_list = VXD_ON_CUDA(queue->context);
    size_t n_bytes = 0;
    size_t entries = 0;
    size_t crossings = 0;
    size_t n_entries = 0;
    struct vxd_cells_call call;
    enum vxd_status status;

    init_cells(cast, &call);
    if (!vxd_layout_add(&n_bytes, has_list ? most : 0, VXD_CELLS_ENTRY_BYTES, &entries) ||
        !vxd_layout_add(&n_bytes, n_pixels, sizeof(uint64_t), &crossings) ||
        !vxd_layout_add(&n_bytes, 1, sizeof(uint32_t), &n_entries)) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "%zu pixels are too many",
                        n_pixels);
    }
    VXD_TRY(vxd_device_alloc(queue, n_bytes, scratch, err));
    call.crossings = (uint64_t *)(void *)((char *)scratch->ptr + crossings);
    if (has_list) {
        call.entries = (char *)scratch->ptr + entries;
        call.n_entries = (uint32_t *)(void *)((char *)scratch->ptr + n_entries);
        call.max_entries = (uint32_t)most;
    }
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_volume_cells)(queue, &call, err));
out:
    return status;
}

enum vxd_status vxd_volume_cast(struct vxd_queue *queue, struct vxd_volume *volume,
                                const struct vxd_volume_cast_args *args,
                                struct vxd_err *err)
{
    struct vxd_buffer scratch = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_buffer beams = {NULL, 0, VXD_SPACE_DEVICE};
    struct vxd_volume_info info;
    struct vxd_cast_call call;
    enum vxd_status status;

    vxd_volume_get_info(volume, &info);
    VXD_TRY(init_call(volume, &info.spec, args, &call, err));
    if (call.first_row == call.end_row) {
        return VXD_OK;
    }
    if (info.n_blocks == 0) {
        return cast_nothing(queue, args, &call, err);
    }
    if (is_by_cells(&info, args, &call)) {
        VXD_TRY(cast_cells(queue, &call, call.entries != NULL ? call.n : info.n_blocks,
                           &scratch, err));
        goto out;
    }
    if (args->lidar != NULL) {
        VXD_TRY(upload_beams(queue, args->lidar, &beams, &call.beams, err));
    } else if (call.camera.is_distorted == 0) {
        /* Straight edges project to straight ones. */
        VXD_TRY(make_range(queue, &call, &scratch, err));
    }
    VXD_TRY(VXD_BACKEND_FN(queue, vxd_volume_cast)(queue, &call, err));
out:
    vxd_device_free(queue, &beams);
    vxd_device_free(queue, &scratch);
    return status;
}
