// SPDX-License-Identifier: Apache-2.0
/* Pictures of a camera, cast in stages of rows. */
#include <math.h>

#include "server/instance/instance.h"
#include "server/service/service.h"
#include "server/service/volume/volume_service.h"

#define DEFAULT_DEPTH_MAX_M 3

/* Steps of rays in one stage at most, unless a row of tiles has more: some tenths of a second. */
#define STAGE_STEPS_CPU 0x1p27
#define STAGE_STEPS_CUDA 0x1p32

enum {
    MAX_STAGES = 32,     /* of a picture at most */
    MAX_RAY_STEPS = 8192 /* the engine's own end of a ray */
};

struct cast_job {
    struct vxd_volume_job base; /* first: request->state is both */
    struct vxd_volume_casting casting;
    struct vxd_column *depth;
    struct vxd_volume_lidar lidar; /* of the casting, where the picture is a lidar's */
};

/* Pixels of a row, and rows. */
static size_t picture_width(const struct vxd_volume_cast_args *args)
{
    return (size_t)(args->lidar != NULL ? args->lidar->columns : args->camera.width);
}

static int picture_height(const struct vxd_volume_cast_args *args)
{
    return args->lidar != NULL ? args->lidar->rows : args->camera.height;
}

static enum vxd_status read_view(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__VolumeCastRaysRequest *input =
        (const Voxeld__V1__VolumeCastRaysRequest *)request->input;
    struct cast_job *job = request->state;

    if (input->lidar == NULL) {
        return vxd_volume_read_camera(input->camera, "camera", NULL,
                                      &job->casting.args.camera, err);
    }
    if (input->camera != NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "camera",
                        "goes not with lidar: a picture is of one of the two");
    }
    if ((uint64_t)input->lidar->columns * (input->lidar->n_elevations_deg > 0
                                               ? input->lidar->n_elevations_deg
                                               : input->lidar->rows) >
        VXD_VOLUME_MAX_PIXELS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "lidar", "has more than %d pixels",
                        VXD_VOLUME_MAX_PIXELS);
    }
    job->casting.args.lidar = &job->lidar;
    return vxd_volume_read_lidar(input->lidar, VXD_CAMERA_MAX_ELEVATION, &job->lidar,
                                 err);
}

enum vxd_status vxd_volume_cast_rays_check(struct vxd_request *request,
                                           struct vxd_err *err)
{
    const Voxeld__V1__VolumeCastRaysRequest *input =
        (const Voxeld__V1__VolumeCastRaysRequest *)request->input;
    struct vxd_volume_cast_args *args;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof(struct cast_job), input->name, err));
    args = &((struct cast_job *)request->state)->casting.args;
    VXD_TRY(read_view(request, err));
    VXD_TRY(vxd_volume_read_pose(input->t_map_camera, "T_map_camera", &args->T_map_camera,
                                 err));
    args->depth_min_m = input->depth_min_m;
    args->depth_max_m = input->depth_max_m > 0 ? input->depth_max_m : DEFAULT_DEPTH_MAX_M;
    args->weight_threshold = input->min_weight;
    /* Depth, vertices, normals, colours, labels and weights, on host and device. */
    request->cost_bytes =
        (uint64_t)picture_width(args) * (uint64_t)picture_height(args) * 2 * 36;
out:
    return status;
}

static enum vxd_status reserve(struct vxd_request *request, struct vxd_queue *queue,
                               struct vxd_err *err)
{
    const Voxeld__V1__VolumeCastRaysRequest *input =
        (const Voxeld__V1__VolumeCastRaysRequest *)request->input;
    struct cast_job *job = request->state;
    struct vxd_volume_cast_args *args = &job->casting.args;
    Voxeld__V1__VolumeCastRaysResponse *reply =
        (Voxeld__V1__VolumeCastRaysResponse *)job->base.query.reply;
    const struct {
        bool is_asked_for;
        enum vxd_dtype dtype;
        size_t n_elements;
        Voxeld__V1__Tensor **tensor;
    } columns[] = {
        {true, VXD_FLOAT32, 0, &reply->depth},
        {input->vertices, VXD_FLOAT32, 3, &reply->vertices},
        {input->normals, VXD_FLOAT32, 3, &reply->normals},
        {input->colours, VXD_UINT8, 3, &reply->colours},
        {input->labels, VXD_UINT8, 0, &reply->labels},
        {input->weights, VXD_FLOAT32, 0, &reply->weights},
    };
    enum {
        N_COLUMNS = sizeof columns / sizeof columns[0]
    };
    size_t n = picture_width(args) * (size_t)picture_height(args);
    struct vxd_column *reserved[N_COLUMNS] = {NULL};
    void *device[N_COLUMNS] = {NULL};
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; i < N_COLUMNS; i++) {
        if (columns[i].is_asked_for) {
            VXD_TRY(vxd_columns_reserve_shown(request, &job->base.query.columns, queue,
                                              columns[i].dtype, n, columns[i].n_elements,
                                              columns[i].tensor, &reserved[i], err));
            device[i] = reserved[i]->device;
        }
    }
    job->depth = reserved[0];
    args->depth = device[0];
    args->vertex = device[1];
    args->normal = device[2];
    args->colour = device[3];
    args->label = device[4];
    args->weight = device[5];
out:
    return status;
}

/* The steps that the rays of a row may take at most, about: a voxel each, along the longest ray. */
static double find_row_steps(const struct vxd_volume_cast_args *args, double voxel_size_m)
{
    const struct vxd_volume_camera *camera = &args->camera;
    double depth_m = args->depth_max_m - args->depth_min_m;
    double x;
    double y;

    if (args->lidar != NULL) {
        return args->lidar->columns * fmin(depth_m / voxel_size_m + 1, MAX_RAY_STEPS);
    }
    x = fmax(fabs(camera->cx), fabs(camera->width - camera->cx)) / camera->fx;
    y = fmax(fabs(camera->cy), fabs(camera->height - camera->cy)) / camera->fy;
    return camera->width *
           fmin(depth_m * sqrt(1 + x * x + y * y) / voxel_size_m + 1, MAX_RAY_STEPS);
}

enum vxd_status vxd_volume_plan_casting(struct vxd_request *request,
                                        const struct vxd_queue *queue,
                                        struct vxd_volume_casting *casting,
                                        struct vxd_err *err)
{
    bool is_cuda = vxd_context_backend(vxd_queue_context(queue)) == VXD_BACKEND_CUDA;
    double most = is_cuda ? STAGE_STEPS_CUDA : STAGE_STEPS_CPU;
    int height = picture_height(&casting->args);
    struct vxd_volume_info info;
    double row_steps;
    double rows;

    vxd_volume_get_info(casting->volume->state.volume, &info);
    row_steps = find_row_steps(&casting->args, info.spec.voxel_size_m);
    rows = floor(most / row_steps / VXD_VOLUME_CAST_ROWS) * VXD_VOLUME_CAST_ROWS;
    if (info.n_blocks > 0 && row_steps * height > most * MAX_STAGES) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "depth_max_m",
                        "%d x %d rays of up to %.0f voxels are too long; %.3g steps are "
                        "cast at most: less depth or fewer pixels take less",
                        (int)picture_width(&casting->args), height,
                        row_steps / (double)picture_width(&casting->args),
                        most * MAX_STAGES);
    }
    casting->version = info.version;
    casting->stage_rows = info.n_blocks == 0 || rows > height ? height
                          : rows < VXD_VOLUME_CAST_ROWS       ? VXD_VOLUME_CAST_ROWS
                                                              : (int)rows;
    /* Others run between the stages. */
    request->bulk = request->bulk || casting->stage_rows < height;
    return VXD_OK;
}

enum vxd_status vxd_volume_cast_rows(struct vxd_queue *queue,
                                     struct vxd_volume_casting *casting, bool *is_done,
                                     struct vxd_err *err)
{
    const struct vxd_named_volume *volume = casting->volume;
    struct vxd_volume_cast_args *args = &casting->args;
    int height = picture_height(args);
    int left = height - args->row_end;
    struct vxd_volume_info info;
    enum vxd_status status;

    vxd_volume_get_info(volume->state.volume, &info);
    if (info.version != casting->version) {
        VXD_TRY(
            vxd_fail(err, VXD_ABORTED, NULL,
                     "the volume \"%s\" was changed after %d of the picture's %d rows; "
                     "ask again, or for less depth or fewer pixels, which take one stage",
                     volume->named.terms.name, args->row_end, height));
    }
    args->row_begin = args->row_end;
    args->row_end += left < casting->stage_rows ? left : casting->stage_rows;
    VXD_TRY(vxd_volume_cast(queue, volume->state.volume, args, err));
    *is_done = args->row_end == height;
out:
    return status;
}

static enum vxd_status begin(struct vxd_request *request, struct vxd_queue *queue,
                             struct vxd_err *err)
{
    const Voxeld__V1__VolumeCastRaysRequest *input =
        (const Voxeld__V1__VolumeCastRaysRequest *)request->input;
    struct cast_job *job = request->state;
    enum vxd_status status;

    VXD_TRY(vxd_volume_open(request, input->name, err));
    job->casting.volume = job->base.volume;
    if (input->colours && !job->base.volume->spec.has_colour) {
        VXD_TRY(vxd_fail(err, VXD_FAILED_PRECONDITION, "colours",
                         "the volume \"%s\" keeps no colours", input->name));
    }
    if (input->labels && !job->base.volume->spec.has_labels) {
        VXD_TRY(vxd_fail(err, VXD_FAILED_PRECONDITION, "labels",
                         "the volume \"%s\" keeps no labels", input->name));
    }
    VXD_TRY(vxd_volume_plan_casting(request, queue, &job->casting, err));
    VXD_TRY(reserve(request, queue, err));
    job->base.query.n = (size_t)picture_height(&job->casting.args);
    job->base.query.part_rows = (size_t)job->casting.stage_rows;
out:
    return status;
}

/* The casting counts the rows itself. */
static enum vxd_status run(struct vxd_request *request, struct vxd_queue *queue,
                           size_t first, size_t n, struct vxd_err *err)
{
    struct cast_job *job = request->state;
    bool is_done;

    (void)first;
    (void)n;
    return vxd_volume_cast_rows(queue, &job->casting, &is_done, err);
}

static enum vxd_status end(struct vxd_request *request, struct vxd_queue *queue,
                           struct vxd_err *err)
{
    struct cast_job *job = request->state;
    Voxeld__V1__VolumeCastRaysResponse *reply =
        (Voxeld__V1__VolumeCastRaysResponse *)job->base.query.reply;
    const float *depth = job->depth->bytes;
    size_t n = job->depth->n_bytes / sizeof *depth;

    (void)queue;
    (void)err;
    reply->width = (uint32_t)picture_width(&job->casting.args);
    reply->height = (uint32_t)picture_height(&job->casting.args);
    for (size_t i = 0; i < n; i++) {
        reply->n_hits += depth[i] > 0 ? 1 : 0;
    }
    reply->engine_ms = (double)request->engine_ns / 1e6;
    return VXD_OK;
}

const struct vxd_query_calls vxd_volume_cast_rays_query = {
    .begin = begin, .run = run, .end = end};
