// SPDX-License-Identifier: Apache-2.0
/* Tracks a depth image against a volume, and adds it where it was taken. Tracking waits for the
 * device, so all of it is done in submit; the write lane gives frames of several clients an order,
 * and with it what the volume's tracker knows. */
#include <math.h>

#include "server/instance/instance.h"
#include "server/service/service.h"
#include "server/service/volume/volume_service.h"

#define DEFAULT_DEPTH_MAX_M 3

/* Steps of all rays of a request at most: some seconds. */
#define MAX_STEPS_CPU 0x1p29
#define MAX_STEPS_CUDA 0x1p33

enum {
    ENGINE_BYTES_A_PIXEL = 64, /* upload, depths in metres, and the frame map, at most */
    MAX_RAY_STEPS = 8192,      /* the engine's own end of a ray */
    MIN_ITERATIONS = 3,        /* of the finer levels */
    MAX_TRACK_TRIES = 2,
    N_AXES = 6
};

struct track_job {
    struct vxd_volume_job base; /* first: request->state is both */
    struct vxd_image depth;     /* decoded; freed by forget */
    struct vxd_image colour;
    struct vxd_volume_frame frame; /* depth and colour in host memory */
    struct vxd_volume_finding finding;
    struct vxd_buffer device_depth;
    struct vxd_buffer device_colour;
    struct vxd_volume_activation activation;
    struct vxd_column *depth_map;
    struct vxd_column *normals;
    struct vxd_column *colours;
};

/* What both requests say about tracking. */
struct track_sent {
    struct vxd_volume_sent images;
    const Voxeld__V1__Pose *prior;
    double depth_scale;
    double depth_min_m;
    double depth_max_m;
    uint32_t levels;
    uint32_t iterations;
    uint32_t max_pixels;
    struct vxd_track_options options;
};

#define TRACK_SENT(input)                                                                \
    {                                                                                    \
        .images = VXD_VOLUME_SENT(input), .prior = (input)->t_map_camera,                \
        .depth_scale = (input)->depth_scale, .depth_min_m = (input)->depth_min_m,        \
        .depth_max_m = (input)->depth_max_m, .levels = (input)->levels,                  \
        .iterations = (input)->iterations, .max_pixels = (input)->max_pixels,            \
        .options = {                                                                     \
            .method = (enum vxd_track_method)(input)->method,                            \
            .robust = (enum vxd_track_robust)(input)->robust,                            \
            .max_distance_m = (input)->max_distance_m,                                   \
            .robust_scale_m = (input)->robust_scale_m,                                   \
            .intensity_scale = (input)->intensity_scale,                                 \
            .intensity_m = (input)->intensity_m,                                         \
            .min_weight = (input)->min_weight,                                           \
            .min_fitness = (input)->min_fitness,                                         \
            .min_agreement = (input)->min_agreement,                                     \
            .min_constraint = (input)->min_constraint,                                   \
            .max_translation_m = (input)->max_translation_m,                             \
            .max_rotation_deg = (input)->max_rotation_deg,                               \
            .no_filter = (input)->no_filter                                              \
        }                                                                                \
    }

static size_t n_pixels(const struct vxd_volume_camera *camera)
{
    return (size_t)camera->width * (size_t)camera->height;
}

/* --- check ------------------------------------------------------------------------------ */

/* Steps on each level: half as many on each finer one. */
static void read_levels(const struct track_sent *sent, struct vxd_track_options *options)
{
    uint32_t n = sent->iterations > 0 ? sent->iterations : 8;

    options->max_pixels = (int)sent->max_pixels;
    options->n_levels = sent->levels > 0 ? (int)sent->levels : 3;
    for (int i = 0; i < options->n_levels; i++) {
        options->iterations[i] = (int)n;
        n = n / 2 > MIN_ITERATIONS ? n / 2 : n < MIN_ITERATIONS ? n : MIN_ITERATIONS;
    }
}

static enum vxd_status read_sent(struct vxd_request *request,
                                 const struct track_sent *sent, struct vxd_err *err)
{
    struct track_job *job = request->state;
    struct vxd_volume_frame *frame = &job->frame;
    size_t n;
    size_t most;
    enum vxd_status status;

    VXD_TRY(vxd_volume_read_pose(sent->prior, "T_map_camera", &frame->T_map_camera, err));
    job->finding.has_prior = sent->prior != NULL;
    frame->depth_scale = sent->depth_scale;
    frame->depth_min_m = sent->depth_min_m;
    frame->depth_max_m = sent->depth_max_m > 0 ? sent->depth_max_m : DEFAULT_DEPTH_MAX_M;
    job->finding.options = sent->options;
    read_levels(sent, &job->finding.options);
    VXD_TRY(vxd_track_options_init(&job->finding.options, err));
    VXD_TRY(vxd_volume_read_images(request, &sent->images, &job->depth, &job->colour,
                                   frame, err));
    n = n_pixels(&frame->camera);
    most = (size_t)job->finding.options.max_pixels;
    request->cost_bytes =
        n * ENGINE_BYTES_A_PIXEL + (n < most ? n : most) * VXD_TRACK_BYTES_A_PIXEL;
out:
    return status;
}

enum vxd_status vxd_volume_track_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__VolumeTrackRequest *input =
        (const Voxeld__V1__VolumeTrackRequest *)request->input;
    const struct track_sent sent = TRACK_SENT(input);
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof(struct track_job), input->name, err));
    VXD_TRY(read_sent(request, &sent, err));
out:
    return status;
}

enum vxd_status vxd_volume_track_and_integrate_check(struct vxd_request *request,
                                                     struct vxd_err *err)
{
    const Voxeld__V1__VolumeTrackAndIntegrateRequest *input =
        (const Voxeld__V1__VolumeTrackAndIntegrateRequest *)request->input;
    const struct track_sent sent = TRACK_SENT(input);
    struct track_job *job;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof *job, input->name, err));
    job = request->state;
    job->frame.weight = input->weight;
    job->frame.weighting =
        input->inverse_square ? VXD_VOLUME_WEIGHT_INV_Z2 : VXD_VOLUME_WEIGHT_CONST;
    VXD_TRY(read_sent(request, &sent, err));
    request->cost_bytes +=
        n_pixels(&job->frame.camera) * 2 *
        ((input->predict_depth ? 4U : 0U) + (input->predict_normals ? 12U : 0U) +
         (input->predict_colours ? 3U : 0U));
out:
    return status;
}

void vxd_volume_track_forget(struct vxd_request *request)
{
    struct track_job *job = request->state;

    if (job != NULL) {
        vxd_image_clear(&job->depth);
        vxd_image_clear(&job->colour);
    }
}

/* --- on the lane ------------------------------------------------------------------------ */

enum vxd_status vxd_volume_check_steps(const struct vxd_volume_finding *finding,
                                       const struct vxd_volume_frame *frame,
                                       const struct vxd_queue *queue, bool predicts,
                                       struct vxd_err *err)
{
    const struct vxd_volume_camera *camera = &frame->camera;
    bool is_cuda = vxd_context_backend(vxd_queue_context(queue)) == VXD_BACKEND_CUDA;
    double most = is_cuda ? MAX_STEPS_CUDA : MAX_STEPS_CPU;
    double n = (double)n_pixels(camera);
    double x = fmax(fabs(camera->cx), fabs(camera->width - camera->cx)) / camera->fx;
    double y = fmax(fabs(camera->cy), fabs(camera->height - camera->cy)) / camera->fy;
    double length = (frame->depth_max_m - frame->depth_min_m) * sqrt(1 + x * x + y * y);
    double steps = fmin(length / finding->volume->spec.voxel_size_m + 1, MAX_RAY_STEPS);

    n = fmin(n, finding->options.max_pixels) + (predicts ? n : 0);
    if (n * steps <= most) {
        return VXD_OK;
    }
    return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "depth_max_m",
                    "%d x %d rays of up to %.0f voxels are too long; %.3g steps are cast "
                    "at most: less depth or fewer pixels take less",
                    camera->width, camera->height, steps, most);
}

/* Copies the images to the device; *frame is the job's with those instead. */
static enum vxd_status upload(struct vxd_queue *queue, struct track_job *job,
                              struct vxd_volume_frame *frame, struct vxd_err *err)
{
    const struct vxd_volume_camera *colour_camera;
    const void *device;
    enum vxd_status status;

    *frame = job->frame;
    if (!job->base.volume->spec.has_colour) {
        frame->colour = NULL;
        frame->has_colour_camera = false;
    }
    colour_camera = frame->has_colour_camera ? &frame->colour_camera : &frame->camera;
    VXD_TRY(vxd_upload(queue, frame->depth,
                       n_pixels(&frame->camera) * vxd_dtype_bytes(frame->dtype),
                       &job->device_depth, &device, err));
    frame->depth = device;
    if (frame->colour != NULL) {
        VXD_TRY(vxd_upload(queue, frame->colour, 3 * n_pixels(colour_camera),
                           &job->device_colour, &device, err));
        frame->colour = device;
    }
out:
    return status;
}

/* Tracks from the client's pose; else from where the tracker expects the camera, and then from
 * where it was, since a camera may have stopped. The frame has the pose that was found. */
static enum vxd_status find_pose(struct vxd_queue *queue,
                                 struct vxd_volume_finding *finding,
                                 const struct vxd_track_state *state,
                                 struct vxd_volume_frame *frame, struct vxd_err *err)
{
    struct vxd_volume *volume = finding->volume->state.volume;
    struct vxd_track_state from = *state;
    enum vxd_status status = VXD_OK;

    for (int i = 0; i < MAX_TRACK_TRIES; i++) {
        struct vxd_track_result result;

        if (!finding->has_prior) {
            vxd_track_predict(&from, &frame->T_map_camera);
        }
        VXD_TRY(vxd_track(queue, volume, frame, &finding->options, &result, err));
        if (i == 0 || result.status == VXD_TRACK_OK) {
            finding->result = result;
        }
        if (result.status == VXD_TRACK_OK || finding->has_prior || !from.has_motion) {
            break;
        }
        vxd_track_lose(&from);
    }
    frame->T_map_camera = finding->result.T_map_camera;
out:
    return status;
}

enum vxd_status vxd_volume_locate(struct vxd_queue *queue,
                                  struct vxd_volume_finding *finding,
                                  const struct vxd_track_state *state,
                                  struct vxd_volume_frame *frame, struct vxd_err *err)
{
    struct vxd_volume_info info;

    vxd_volume_get_info(finding->volume->state.volume, &info);
    finding->is_first = info.n_blocks == 0;
    if (!finding->is_first) {
        return find_pose(queue, finding, state, frame, err);
    }
    finding->result = (struct vxd_track_result){.T_map_camera = frame->T_map_camera};
    return VXD_OK;
}

void vxd_volume_keep_track(const struct vxd_volume_finding *finding,
                           const struct vxd_track_state *state)
{
    struct vxd_track_state next = *state;

    if (finding->result.status == VXD_TRACK_OK) {
        if (finding->is_first) {
            next = (struct vxd_track_state){0};
        }
        vxd_track_accept(&next, &finding->result.T_map_camera);
    } else {
        vxd_track_lose(&next);
    }
    finding->volume->track = next;
}

/* Makes the tensor of the information, and the pose.
 * errors  RESOURCE_EXHAUSTED */
static enum vxd_status show_result(struct vxd_request *request,
                                   const struct vxd_track_result *result,
                                   Voxeld__V1__Tensor **information,
                                   Voxeld__V1__Pose **pose, struct vxd_err *err)
{
    Voxeld__V1__Tensor *tensor =
        vxd_message_new(request->decoder, &voxeld__v1__tensor__descriptor, err);
    double *values =
        vxd_message_array(request->decoder, (size_t)N_AXES * N_AXES, sizeof *values, err);

    *pose = vxd_volume_new_pose(request->decoder, &result->T_map_camera, err);
    if (tensor == NULL || values == NULL || *pose == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    tensor->shape = vxd_message_array(request->decoder, 2, sizeof *tensor->shape, err);
    if (tensor->shape == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    memcpy(values, result->information, sizeof result->information);
    tensor->dtype = VOXELD__V1__DTYPE__FLOAT64;
    tensor->n_shape = 2;
    tensor->shape[0] = N_AXES;
    tensor->shape[1] = N_AXES;
    tensor->data.data = (uint8_t *)values;
    tensor->data.len = sizeof result->information;
    *information = tensor;
    return VXD_OK;
}

/* What both replies have in common. */
#define SHOW_RESULT(reply, result)                                                       \
    do {                                                                                 \
        (reply)->status = (Voxeld__V1__VolumeTrackStatus)(result)->status;               \
        (reply)->reason = (Voxeld__V1__VolumeTrackReason)(result)->reason;               \
        (reply)->fitness = (result)->fitness;                                            \
        (reply)->agreement = (result)->agreement;                                        \
        (reply)->constraint = (result)->constraint;                                      \
        (reply)->rmse_m = (result)->rmse_m;                                              \
        (reply)->n_inliers = (result)->n_inliers;                                        \
        (reply)->n_iterations = (result)->n_iterations;                                  \
    } while (0)

enum vxd_status vxd_volume_track_submit(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__VolumeTrackRequest *input =
        (const Voxeld__V1__VolumeTrackRequest *)request->input;
    struct track_job *job = request->state;
    struct vxd_volume_frame frame;
    Voxeld__V1__VolumeTrackResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__volume_track_response__descriptor, err);
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_volume_open(request, input->name, err));
    job->finding.volume = job->base.volume;
    VXD_TRY(vxd_volume_check_steps(&job->finding, &job->frame, queue, false, err));
    VXD_TRY(upload(queue, job, &frame, err));
    VXD_TRY(find_pose(queue, &job->finding, &job->base.volume->track, &frame, err));
    VXD_TRY(show_result(request, &job->finding.result, &reply->information,
                        &reply->t_map_camera, err));
    SHOW_RESULT(reply, &job->finding.result);
    request->output = &reply->base;
out:
    return status;
}

enum vxd_status vxd_volume_track_finish(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err)
{
    (void)queue;
    (void)err;
    ((Voxeld__V1__VolumeTrackResponse *)request->output)->engine_ms =
        (double)request->engine_ns / 1e6;
    return VXD_OK;
}

static enum vxd_status integrate(struct vxd_request *request, struct vxd_queue *queue,
                                 const Voxeld__V1__VolumeTrackAndIntegrateRequest *input,
                                 const struct vxd_volume_frame *frame,
                                 struct vxd_err *err)
{
    const ProtobufCBinaryData none = {0};
    struct track_job *job = request->state;
    struct vxd_volume_frame kept = job->frame; /* with arrays in host memory */
    enum vxd_status status;

    VXD_TRY(vxd_volume_integrate_within(request, queue, frame, &job->activation, err));
    kept.T_map_camera = frame->T_map_camera;
    kept.colour = frame->colour != NULL ? job->frame.colour : NULL;
    kept.has_colour_camera = frame->has_colour_camera;
    vxd_volume_keep_image(request, &kept, job->depth.data != NULL ? &input->depth : &none,
                          job->colour.data != NULL ? &input->colour : &none);
    if (job->finding.is_first && job->activation.n_blocks == 0) {
        job->finding.is_first = false;
        job->finding.result.status = VXD_TRACK_LOST;
        job->finding.result.reason = VXD_TRACK_NO_DEPTH;
    }
out:
    return status;
}

/* Reserves the maps that the reply is to have, before anything changes. */
static enum vxd_status
reserve_maps(struct vxd_request *request, struct vxd_queue *queue,
             const Voxeld__V1__VolumeTrackAndIntegrateRequest *input,
             Voxeld__V1__VolumeTrackAndIntegrateResponse *reply, struct vxd_err *err)
{
    struct track_job *job = request->state;
    size_t n = n_pixels(&job->frame.camera);
    enum vxd_status status = VXD_OK;

    if (input->predict_depth) {
        VXD_TRY(vxd_columns_reserve_shown(request, &job->base.query.columns, queue,
                                          VXD_FLOAT32, n, 0, &reply->depth_map,
                                          &job->depth_map, err));
    }
    if (input->predict_normals) {
        VXD_TRY(vxd_columns_reserve_shown(request, &job->base.query.columns, queue,
                                          VXD_FLOAT32, n, 3, &reply->normals,
                                          &job->normals, err));
    }
    if (input->predict_colours) {
        VXD_TRY(vxd_columns_reserve_shown(request, &job->base.query.columns, queue,
                                          VXD_UINT8, n, 3, &reply->colours, &job->colours,
                                          err));
    }
out:
    return status;
}

/* Casts them at the frame's pose, with the frame in the volume. */
static enum vxd_status cast_maps(struct vxd_request *request, struct vxd_queue *queue,
                                 const struct vxd_volume_frame *frame,
                                 struct vxd_err *err)
{
    struct track_job *job = request->state;
    const struct vxd_volume_cast_args args = {
        .camera = frame->camera,
        .T_map_camera = frame->T_map_camera,
        .depth_min_m = frame->depth_min_m,
        .depth_max_m = frame->depth_max_m,
        .weight_threshold = job->finding.options.min_weight,
        .depth = job->depth_map != NULL ? job->depth_map->device : NULL,
        .normal = job->normals != NULL ? job->normals->device : NULL,
        .colour = job->colours != NULL ? job->colours->device : NULL};
    enum vxd_status status;

    VXD_TRY(vxd_volume_cast(queue, job->base.volume->state.volume, &args, err));
    VXD_TRY(vxd_columns_fetch(&job->base.query.columns, queue, err));
out:
    return status;
}

/* What must be right before anything changes. */
static enum vxd_status prepare(struct vxd_request *request, const struct vxd_queue *queue,
                               const Voxeld__V1__VolumeTrackAndIntegrateRequest *input,
                               struct vxd_err *err)
{
    struct track_job *job = request->state;
    bool predicts =
        input->predict_depth || input->predict_normals || input->predict_colours;

    if (input->predict_colours && !job->base.volume->spec.has_colour) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, "predict_colours",
                        "the volume \"%s\" keeps no colours", input->name);
    }
    return vxd_volume_check_steps(&job->finding, &job->frame, queue, predicts, err);
}

enum vxd_status vxd_volume_track_and_integrate_submit(struct vxd_request *request,
                                                      struct vxd_queue *queue,
                                                      struct vxd_err *err)
{
    const Voxeld__V1__VolumeTrackAndIntegrateRequest *input =
        (const Voxeld__V1__VolumeTrackAndIntegrateRequest *)request->input;
    struct track_job *job = request->state;
    struct vxd_track_state state = {0};
    struct vxd_volume_frame frame;
    Voxeld__V1__VolumeTrackAndIntegrateResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__volume_track_and_integrate_response__descriptor,
        err);
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_volume_open(request, input->name, err));
    job->finding.volume = job->base.volume;
    VXD_TRY(prepare(request, queue, input, err));
    if (!input->reset) {
        state = job->base.volume->track;
    }
    VXD_TRY(upload(queue, job, &frame, err));
    VXD_TRY(vxd_volume_locate(queue, &job->finding, &state, &frame, err));
    VXD_TRY(show_result(request, &job->finding.result, &reply->information,
                        &reply->t_map_camera, err));
    VXD_TRY(reserve_maps(request, queue, input, reply, err));
    reply->n_pixels = n_pixels(&frame.camera);
    if (job->finding.result.status == VXD_TRACK_OK) {
        VXD_TRY(integrate(request, queue, input, &frame, err));
    }
    if (job->base.query.columns.n > 0) {
        VXD_TRY(cast_maps(request, queue, &frame, err));
    }
    SHOW_RESULT(reply, &job->finding.result);
    request->output = &reply->base;
    vxd_volume_keep_track(&job->finding, &state);
out:
    return status;
}

enum vxd_status vxd_volume_track_and_integrate_finish(struct vxd_request *request,
                                                      struct vxd_queue *queue,
                                                      struct vxd_err *err)
{
    const struct track_job *job = request->state;
    struct vxd_named_volume *volume = job->base.volume;
    Voxeld__V1__VolumeTrackAndIntegrateResponse *reply =
        (Voxeld__V1__VolumeTrackAndIntegrateResponse *)request->output;
    struct vxd_volume_info info;

    (void)queue;
    (void)err;
    vxd_volume_get_info(volume->state.volume, &info);
    volume->state.n_images += job->finding.result.status == VXD_TRACK_OK ? 1 : 0;
    vxd_column_show(reply->depth_map, job->depth_map);
    vxd_column_show(reply->normals, job->normals);
    vxd_column_show(reply->colours, job->colours);
    reply->is_first = job->finding.is_first;
    reply->n_touched = job->activation.n_blocks;
    reply->n_new = job->activation.n_new;
    reply->n_blocks = info.n_blocks;
    reply->stamp = info.version;
    reply->engine_ms = (double)request->engine_ns / 1e6;
    return VXD_OK;
}

void vxd_volume_track_release(struct vxd_request *request, struct vxd_queue *queue)
{
    struct track_job *job = request->state;

    vxd_device_free(queue, &job->device_colour);
    vxd_device_free(queue, &job->device_depth);
    if (job->base.volume != NULL) { /* else it would stay beyond the limits of volumes */
        vxd_volume_forget_frame(queue, job->base.volume->state.volume);
    }
    vxd_volume_release(request, queue);
}
