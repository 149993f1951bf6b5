// SPDX-License-Identifier: Apache-2.0
/* Integrates a depth image. Files are decoded in check, so that the lane only fuses. */
#include "server/instance/instance.h"
#include "server/service/odometry/service_odometry.h"
#include "server/service/service.h"
#include "server/service/slac/service_slac.h"
#include "server/service/volume/volume_service.h"

#define DEFAULT_DEPTH_MAX_M 3

enum {
    ENGINE_BYTES_A_PIXEL = 64 /* upload, depths in metres, and the frame map, at most */
};

struct integrate_job {
    struct vxd_volume_job base; /* first: request->state is both */
    struct vxd_image depth;     /* decoded; freed by forget */
    struct vxd_image colour;
    struct vxd_image labels;
    struct vxd_volume_frame frame; /* depth and colour in host memory */
    struct vxd_buffer device_depth;
    struct vxd_buffer device_colour;
    struct vxd_buffer device_labels;
    bool estimates; /* the pose is found, by tracking */
    struct vxd_volume_finding finding;
    struct vxd_deform *deform; /* NULL: none */
    struct vxd_volume_activation activation;
};

static size_t n_pixels(const struct vxd_volume_camera *camera)
{
    return (size_t)camera->width * (size_t)camera->height;
}

/* --- check ------------------------------------------------------------------------------ */

enum vxd_status vxd_volume_integrate_check(struct vxd_request *request,
                                           struct vxd_err *err)
{
    const Voxeld__V1__VolumeIntegrateRequest *input =
        (const Voxeld__V1__VolumeIntegrateRequest *)request->input;
    const struct vxd_volume_sent sent = VXD_VOLUME_SENT(input);
    struct integrate_job *job;
    struct vxd_volume_frame *frame;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof *job, input->name, err));
    job = request->state;
    frame = &job->frame;
    VXD_TRY(vxd_volume_read_pose(input->t_map_camera, "T_map_camera",
                                 &frame->T_map_camera, err));
    if (input->deform[0] == '\0' && input->t_grid_camera != NULL) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "T_grid_camera", "goes with deform"));
    }
    if (input->deform[0] != '\0') {
        VXD_TRY(vxd_noun_check_name(input->deform, "deform", err));
    }
    VXD_TRY(vxd_volume_read_pose(input->t_grid_camera, "T_grid_camera",
                                 &frame->T_grid_camera, err));
    frame->depth_scale = input->depth_scale;
    frame->depth_min_m = input->depth_min_m;
    frame->depth_max_m =
        input->depth_max_m > 0 ? input->depth_max_m : DEFAULT_DEPTH_MAX_M;
    frame->weight = input->weight;
    frame->carve_m = input->carve_m;
    frame->weighting =
        input->inverse_square ? VXD_VOLUME_WEIGHT_INV_Z2 : VXD_VOLUME_WEIGHT_CONST;
    VXD_TRY(
        vxd_volume_read_images(request, &sent, &job->depth, &job->colour, frame, err));
    if (input->labels.len > 0) {
        VXD_TRY(
            vxd_volume_read_labels(request, &input->labels, &job->labels, frame, err));
    }
    request->cost_bytes = n_pixels(&frame->camera) * ENGINE_BYTES_A_PIXEL;
    job->estimates = input->pose == VOXELD__V1__POSE_SOURCE__POSE_ESTIMATE;
    if (job->estimates && input->deform[0] != '\0') {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "deform",
                         "goes with a pose that is given: tracking sees what the camera "
                         "distorts"));
    }
    if (job->estimates) {
        job->finding.has_prior = input->t_map_camera != NULL;
        VXD_TRY(vxd_track_options_init(&job->finding.options, err));
        request->cost_bytes +=
            (size_t)job->finding.options.max_pixels * VXD_TRACK_BYTES_A_PIXEL;
    }
out:
    return status;
}

void vxd_volume_integrate_forget(struct vxd_request *request)
{
    struct integrate_job *job = request->state;

    if (job != NULL) {
        vxd_image_clear(&job->depth);
        vxd_image_clear(&job->colour);
        vxd_image_clear(&job->labels);
    }
}

/* --- on the lane ------------------------------------------------------------------------ */

static enum vxd_status upload(struct vxd_queue *queue, struct integrate_job *job,
                              struct vxd_volume_frame *frame, struct vxd_err *err)
{
    size_t element_bytes = vxd_dtype_bytes(frame->dtype);
    const struct vxd_volume_camera *colour_camera =
        frame->has_colour_camera ? &frame->colour_camera : &frame->camera;
    const void *device;
    enum vxd_status status;

    VXD_TRY(vxd_upload(queue, frame->depth, n_pixels(&frame->camera) * element_bytes,
                       &job->device_depth, &device, err));
    frame->depth = device;
    if (frame->colour != NULL) {
        VXD_TRY(vxd_upload(queue, frame->colour, 3 * n_pixels(colour_camera),
                           &job->device_colour, &device, err));
        frame->colour = device;
    }
    if (frame->labels != NULL) {
        VXD_TRY(vxd_upload(queue, frame->labels, n_pixels(&frame->camera),
                           &job->device_labels, &device, err));
        frame->labels = device;
    }
out:
    return status;
}

/* Finds the control grid that the request names. */
static enum vxd_status open_grid(struct vxd_request *request, struct vxd_queue *queue,
                                 const char *name, struct vxd_err *err)
{
    struct integrate_job *job = request->state;
    struct vxd_map *map = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_slac_find_map(request->server->maps, name, "deform", &map, err));
    VXD_TRY(vxd_slac_open_grid(queue, map, "deform", &job->deform, err));
out:
    return status;
}

enum vxd_status vxd_volume_integrate_submit(struct vxd_request *request,
                                            struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__VolumeIntegrateRequest *input =
        (const Voxeld__V1__VolumeIntegrateRequest *)request->input;
    struct integrate_job *job = request->state;
    const ProtobufCBinaryData none = {0};
    struct vxd_volume_frame kept = job->frame; /* with arrays in host memory */
    struct vxd_volume_frame frame = job->frame;
    struct vxd_track_state state = {0};
    Voxeld__V1__VolumeIntegrateResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__volume_integrate_response__descriptor, err);
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_volume_open(request, input->name, err));
    if (!job->base.volume->spec.has_colour) {
        frame.colour = NULL;
        frame.has_colour_camera = false;
    }
    if (!job->base.volume->spec.has_labels) {
        frame.labels = NULL;
    }
    job->finding.volume = job->base.volume;
    if (job->estimates) {
        VXD_TRY(vxd_volume_check_steps(&job->finding, &frame, queue, false, err));
    }
    if (input->deform[0] != '\0') {
        VXD_TRY(open_grid(request, queue, input->deform, err));
        frame.deform = job->deform;
        kept.deform = job->deform;
    }
    VXD_TRY(upload(queue, job, &frame, err));
    if (job->estimates) {
        state = job->base.volume->track;
        VXD_TRY(vxd_volume_locate(queue, &job->finding, &state, &frame, err));
    }
    reply->status = (Voxeld__V1__VolumeTrackStatus)job->finding.result.status;
    reply->reason = (Voxeld__V1__VolumeTrackReason)job->finding.result.reason;
    reply->t_map_camera = vxd_volume_new_pose(request->decoder, &frame.T_map_camera, err);
    if (reply->t_map_camera == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    request->output = &reply->base;
    if (job->finding.result.status == VXD_TRACK_LOST) {
        vxd_volume_keep_track(&job->finding, &state);
        return VXD_OK;
    }
    VXD_TRY(vxd_volume_integrate_within(request, queue, &frame, &job->activation, err));
    if (job->estimates) {
        vxd_volume_keep_track(&job->finding, &state);
    }
    kept.T_map_camera = frame.T_map_camera;
    kept.colour = frame.colour != NULL ? job->frame.colour : NULL;
    kept.has_colour_camera = frame.has_colour_camera;
    kept.labels = frame.labels != NULL ? job->frame.labels : NULL;
    vxd_volume_keep_image(request, &kept, job->depth.data != NULL ? &input->depth : &none,
                          job->colour.data != NULL ? &input->colour : &none);
out:
    return status;
}

enum vxd_status vxd_volume_integrate_finish(struct vxd_request *request,
                                            struct vxd_queue *queue, struct vxd_err *err)
{
    const struct integrate_job *job = request->state;
    struct vxd_named_volume *volume = job->base.volume;
    Voxeld__V1__VolumeIntegrateResponse *reply =
        (Voxeld__V1__VolumeIntegrateResponse *)request->output;
    struct vxd_volume_info info;

    (void)queue;
    (void)err;
    vxd_volume_get_info(volume->state.volume, &info);
    volume->state.n_images += job->finding.result.status == VXD_TRACK_OK ? 1 : 0;
    reply->n_touched = job->activation.n_blocks - job->activation.n_carved;
    reply->n_carved = job->activation.n_carved;
    reply->n_new = job->activation.n_new;
    reply->n_blocks = info.n_blocks;
    reply->stamp = info.version;
    reply->engine_ms = (double)request->engine_ns / 1e6;
    return VXD_OK;
}

void vxd_volume_integrate_release(struct vxd_request *request, struct vxd_queue *queue)
{
    struct integrate_job *job = request->state;

    vxd_deform_destroy(queue, job->deform);
    job->deform = NULL;
    vxd_device_free(queue, &job->device_labels);
    vxd_device_free(queue, &job->device_colour);
    vxd_device_free(queue, &job->device_depth);
    if (job->base.volume != NULL) { /* else it would stay beyond the limits of volumes */
        vxd_volume_forget_frame(queue, job->base.volume->state.volume);
    }
    vxd_volume_release(request, queue);
}
