// SPDX-License-Identifier: Apache-2.0
/* Integrates a depth image. Files are decoded in check, so that the lane only fuses. */
#include <stdlib.h>

#include "server/instance/instance.h"
#include "server/service/service.h"
#include "server/service/volume/volume_service.h"

#define DEFAULT_DEPTH_MAX_M 3
#define MAX_DEPTH_M 1000
#define MAX_WEIGHT 65535

enum {
    ENGINE_BYTES_A_PIXEL = 64, /* upload, depths in metres, and the frame map, at most */
    MAX_IMAGE_BYTES = 4 * VXD_VOLUME_MAX_PIXELS,
    DECODED_BYTES_A_PIXEL = 7 /* RGBA, and RGB made of it */
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
    struct vxd_volume_activation activation;
};

static size_t n_pixels(const struct vxd_volume_camera *camera)
{
    return (size_t)camera->width * (size_t)camera->height;
}

/* --- check ------------------------------------------------------------------------------ */

/* Decodes a picture. Its bytes, and those of what make_rgb makes of it, count as the request's
 * before it is decoded. */
static enum vxd_status decode(struct vxd_request *request,
                              const ProtobufCBinaryData *file, const char *field,
                              struct vxd_image *image, struct vxd_err *err)
{
    const struct vxd_image_limits limits = {.max_bytes = MAX_IMAGE_BYTES};
    struct vxd_image head;
    enum vxd_status status;

    VXD_TRY(vxd_image_read_head(file->data, file->len, &head, err));
    if (head.width <= VXD_IMAGE_MAX_SIDE && head.height <= VXD_IMAGE_MAX_SIDE &&
        (size_t)head.width * head.height * head.n_channels * head.sample_bytes <=
            limits.max_bytes) { /* the decoder refuses others */
        VXD_TRY(
            vxd_request_receive(request,
                                (size_t)head.width * head.height *
                                    (head.sample_bytes == 2 ? 2 : DECODED_BYTES_A_PIXEL),
                                err));
    }
    VXD_TRY(vxd_image_decode(file->data, file->len, &limits, image, err));
out:
    if (status != VXD_OK && err != NULL) {
        (void)snprintf(err->field, sizeof err->field, "%s", field);
    }
    return status;
}

/* Points to n_bytes of a message, or to a copy where they do not lie as their type needs.
 * errors  INVALID_ARGUMENT    another number of bytes
 *         RESOURCE_EXHAUSTED */
static enum vxd_status take_raw(struct vxd_request *request,
                                const ProtobufCBinaryData *bytes, const char *field,
                                size_t n_bytes, size_t alignment, const void **out,
                                struct vxd_err *err)
{
    void *copy;

    if (bytes->len != n_bytes) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "has %zu bytes; %zu are right for the camera's pixels",
                        bytes->len, n_bytes);
    }
    if ((uintptr_t)bytes->data % alignment == 0) {
        *out = bytes->data;
        return VXD_OK;
    }
    copy = vxd_message_array(request->decoder, 1, n_bytes, err);
    if (copy == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    memcpy(copy, bytes->data, n_bytes);
    *out = copy;
    return VXD_OK;
}

static enum vxd_status read_depth(struct vxd_request *request,
                                  const Voxeld__V1__VolumeIntegrateRequest *input,
                                  struct vxd_err *err)
{
    struct integrate_job *job = request->state;
    struct vxd_volume_frame *frame = &job->frame;
    bool is_file = input->depth_type == VOXELD__V1__VOLUME_DEPTH__VOLUME_DEPTH_FILE;
    bool is_float = input->depth_type == VOXELD__V1__VOLUME_DEPTH__VOLUME_DEPTH_FLOAT32;
    size_t element_bytes = is_float ? sizeof(float) : sizeof(uint16_t);
    enum vxd_status status;

    if (!is_file && !is_float &&
        input->depth_type != VOXELD__V1__VOLUME_DEPTH__VOLUME_DEPTH_UINT16) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "depth_type",
                         "is %d; known: VOLUME_DEPTH_FILE, VOLUME_DEPTH_UINT16, "
                         "VOLUME_DEPTH_FLOAT32",
                         (int)input->depth_type));
    }
    frame->dtype = is_float ? VXD_FLOAT32 : VXD_UINT16;
    if (!is_file) {
        VXD_TRY(
            vxd_volume_read_camera(input->camera, "camera", NULL, &frame->camera, err));
        return take_raw(request, &input->depth, "depth",
                        n_pixels(&frame->camera) * element_bytes, element_bytes,
                        &frame->depth, err);
    }
    VXD_TRY(decode(request, &input->depth, "depth", &job->depth, err));
    if (job->depth.n_channels != 1 || job->depth.sample_bytes != 2) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "depth",
                         "is a picture of %u channels of %u bits; a PNG of one channel "
                         "of 16 bits is right",
                         job->depth.n_channels, 8 * job->depth.sample_bytes));
    }
    VXD_TRY(vxd_volume_read_camera(input->camera, "camera", &job->depth, &frame->camera,
                                   err));
    frame->depth = job->depth.data;
out:
    return status;
}

/* Makes grey and RGBA pictures RGB.
 * errors  RESOURCE_EXHAUSTED */
static enum vxd_status make_rgb(struct vxd_image *image, struct vxd_err *err)
{
    size_t n = (size_t)image->width * image->height;
    uint32_t n_channels = image->n_channels;
    const uint8_t *from = image->data;
    uint8_t *to;

    if (n_channels == 3) {
        return VXD_OK;
    }
    to = malloc(3 * n);
    if (to == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "colour", "no memory for it");
    }
    for (size_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < 3; k++) {
            to[3 * i + k] = from[i * n_channels + (n_channels == 1 ? 0 : k)];
        }
    }
    free(image->data);
    image->data = to;
    image->n_channels = 3;
    image->n_bytes = 3 * n;
    return VXD_OK;
}

static enum vxd_status read_colour(struct vxd_request *request,
                                   const Voxeld__V1__VolumeIntegrateRequest *input,
                                   struct vxd_err *err)
{
    struct integrate_job *job = request->state;
    struct vxd_volume_frame *frame = &job->frame;
    const Voxeld__V1__VolumeCamera *own = input->colour_camera;
    struct vxd_volume_camera camera = frame->camera;
    bool is_file = input->colour_type == VOXELD__V1__VOLUME_COLOUR__VOLUME_COLOUR_FILE;
    const struct vxd_image *image = is_file ? &job->colour : NULL;
    const void *bytes = NULL;
    enum vxd_status status;

    if (!is_file && input->colour_type != VOXELD__V1__VOLUME_COLOUR__VOLUME_COLOUR_RGB) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "colour_type",
                         "is %d; known: VOLUME_COLOUR_FILE, VOLUME_COLOUR_RGB",
                         (int)input->colour_type));
    }
    if (is_file) {
        VXD_TRY(decode(request, &input->colour, "colour", &job->colour, err));
        if (job->colour.sample_bytes != 1) {
            VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "colour",
                             "has samples of 16 bits; 8 are right"));
        }
    }
    if (own != NULL) {
        VXD_TRY(vxd_volume_read_camera(own, "colour_camera", image, &camera, err));
        VXD_TRY(vxd_volume_read_pose(input->t_depth_colour, "T_depth_colour",
                                     &frame->T_depth_colour, err));
        frame->has_colour_camera = true;
        frame->colour_camera = camera;
    } else if (is_file && ((int)image->width != camera.width ||
                           (int)image->height != camera.height)) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "colour",
                         "has %u x %u pixels, the depth image %d x %d; give the colour "
                         "camera of another one",
                         image->width, image->height, camera.width, camera.height));
    }
    if (is_file) {
        VXD_TRY(make_rgb(&job->colour, err));
        frame->colour = job->colour.data;
        return VXD_OK;
    }
    VXD_TRY(take_raw(request, &input->colour, "colour", 3 * n_pixels(&camera), 1, &bytes,
                     err));
    frame->colour = bytes;
out:
    return status;
}

/* Labels are bytes, or a picture of them. */
static enum vxd_status read_labels(struct vxd_request *request,
                                   const Voxeld__V1__VolumeIntegrateRequest *input,
                                   struct vxd_err *err)
{
    static const uint8_t png[4] = {0x89, 'P', 'N', 'G'};
    struct integrate_job *job = request->state;
    struct vxd_volume_frame *frame = &job->frame;
    size_t n = n_pixels(&frame->camera);
    enum vxd_status status;

    if (input->labels.len == n) {
        frame->labels = input->labels.data;
        return VXD_OK;
    }
    if (input->labels.len < sizeof png ||
        memcmp(input->labels.data, png, sizeof png) != 0) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "labels",
                         "has %zu bytes; one for each of %zu pixels is right, or a PNG "
                         "of 8 bits of grey",
                         input->labels.len, n));
    }
    VXD_TRY(decode(request, &input->labels, "labels", &job->labels, err));
    if (job->labels.n_channels != 1 || job->labels.sample_bytes != 1 ||
        (int)job->labels.width != frame->camera.width ||
        (int)job->labels.height != frame->camera.height) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "labels",
                         "is a picture of %u x %u pixels with %u channels of %u bits; "
                         "%d x %d with one of 8 bits is right",
                         job->labels.width, job->labels.height, job->labels.n_channels,
                         8 * job->labels.sample_bytes, frame->camera.width,
                         frame->camera.height));
    }
    frame->labels = job->labels.data;
out:
    return status;
}

enum vxd_status vxd_volume_integrate_check(struct vxd_request *request,
                                           struct vxd_err *err)
{
    const Voxeld__V1__VolumeIntegrateRequest *input =
        (const Voxeld__V1__VolumeIntegrateRequest *)request->input;
    struct integrate_job *job;
    struct vxd_volume_frame *frame;
    enum vxd_status status;

    VXD_TRY(vxd_volume_begin_check(request, sizeof *job, input->name, err));
    job = request->state;
    frame = &job->frame;
    VXD_TRY(vxd_volume_check_number(input->depth_scale, "depth_scale", 0, 1e6, err));
    VXD_TRY(
        vxd_volume_check_number(input->depth_min_m, "depth_min_m", 0, MAX_DEPTH_M, err));
    VXD_TRY(
        vxd_volume_check_number(input->depth_max_m, "depth_max_m", 0, MAX_DEPTH_M, err));
    VXD_TRY(vxd_volume_check_number(input->weight, "weight", 0, MAX_WEIGHT, err));
    VXD_TRY(vxd_volume_read_pose(input->t_map_camera, "T_map_camera",
                                 &frame->T_map_camera, err));
    frame->depth_scale = input->depth_scale;
    frame->depth_min_m = input->depth_min_m;
    frame->depth_max_m =
        input->depth_max_m > 0 ? input->depth_max_m : DEFAULT_DEPTH_MAX_M;
    frame->weight = input->weight;
    VXD_TRY(vxd_volume_check_number(input->carve_m, "carve_m", 0, MAX_DEPTH_M, err));
    frame->carve_m = input->carve_m;
    frame->weighting =
        input->inverse_square ? VXD_VOLUME_WEIGHT_INV_Z2 : VXD_VOLUME_WEIGHT_CONST;
    VXD_TRY(read_depth(request, input, err));
    if (input->colour.len > 0) {
        VXD_TRY(read_colour(request, input, err));
    }
    if (input->labels.len > 0) {
        VXD_TRY(read_labels(request, input, err));
    }
    request->cost_bytes = n_pixels(&frame->camera) * ENGINE_BYTES_A_PIXEL;
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

enum vxd_status vxd_volume_integrate_submit(struct vxd_request *request,
                                            struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__VolumeIntegrateRequest *input =
        (const Voxeld__V1__VolumeIntegrateRequest *)request->input;
    struct integrate_job *job = request->state;
    struct vxd_volumes *volumes = request->server->volumes;
    struct vxd_volume_frame frame = job->frame;
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
    VXD_TRY(upload(queue, job, &frame, err));
    vxd_volumes_allow(volumes, job->base.volume);
    status = vxd_volume_integrate(queue, job->base.volume->volume, &frame,
                                  &job->activation, err);
    if (status != VXD_OK) {
        vxd_volumes_explain(volumes, &job->base.volume->terms, job->base.volume, err);
        goto out;
    }
    request->output = &reply->base;
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
    vxd_volume_get_info(volume->volume, &info);
    volume->n_images++;
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

    vxd_device_free(queue, &job->device_labels);
    vxd_device_free(queue, &job->device_colour);
    vxd_device_free(queue, &job->device_depth);
    if (job->base.volume != NULL) { /* else it would stay beyond the limits of volumes */
        vxd_volume_forget_frame(queue, job->base.volume->volume);
    }
    vxd_volume_release(request, queue);
}
