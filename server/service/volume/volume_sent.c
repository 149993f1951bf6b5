// SPDX-License-Identifier: Apache-2.0
/* Images as messages bring them: files are decoded, raw ones are checked, in check, so that the lane
 * only computes. */
#include <stdlib.h>

#include "server/instance/instance.h"
#include "server/service/service.h"
#include "server/service/volume/volume_service.h"

enum {
    MAX_IMAGE_BYTES = 4 * VXD_VOLUME_MAX_PIXELS,
    DECODED_BYTES_A_PIXEL = 7 /* RGBA, and RGB made of it */
};

static size_t n_pixels(const struct vxd_volume_camera *camera)
{
    return (size_t)camera->width * (size_t)camera->height;
}

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
                                  const struct vxd_volume_sent *sent,
                                  struct vxd_image *depth, struct vxd_volume_frame *frame,
                                  struct vxd_err *err)
{
    bool is_file = sent->depth_type == VOXELD__V1__VOLUME_DEPTH__VOLUME_DEPTH_FILE;
    bool is_float = sent->depth_type == VOXELD__V1__VOLUME_DEPTH__VOLUME_DEPTH_FLOAT32;
    size_t element_bytes = is_float ? sizeof(float) : sizeof(uint16_t);
    enum vxd_status status;

    frame->dtype = is_float ? VXD_FLOAT32 : VXD_UINT16;
    if (!is_file) {
        VXD_TRY(
            vxd_volume_read_camera(sent->camera, "camera", NULL, &frame->camera, err));
        return take_raw(request, &sent->depth, "depth",
                        n_pixels(&frame->camera) * element_bytes, element_bytes,
                        &frame->depth, err);
    }
    VXD_TRY(decode(request, &sent->depth, "depth", depth, err));
    if (depth->n_channels != 1 || depth->sample_bytes != 2) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "depth",
                         "is a picture of %u channels of %u bits; a PNG of one channel "
                         "of 16 bits is right",
                         depth->n_channels, 8 * depth->sample_bytes));
    }
    VXD_TRY(vxd_volume_read_camera(sent->camera, "camera", depth, &frame->camera, err));
    frame->depth = depth->data;
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
                                   const struct vxd_volume_sent *sent,
                                   struct vxd_image *colour,
                                   struct vxd_volume_frame *frame, struct vxd_err *err)
{
    const Voxeld__V1__VolumeCamera *own = sent->colour_camera;
    struct vxd_volume_camera camera = frame->camera;
    bool is_file = sent->colour_type == VOXELD__V1__VOLUME_COLOUR__VOLUME_COLOUR_FILE;
    const struct vxd_image *image = is_file ? colour : NULL;
    const void *bytes = NULL;
    enum vxd_status status;

    if (is_file) {
        VXD_TRY(decode(request, &sent->colour, "colour", colour, err));
        if (colour->sample_bytes != 1) {
            VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "colour",
                             "has samples of 16 bits; 8 are right"));
        }
    }
    if (own != NULL) {
        VXD_TRY(vxd_volume_read_camera(own, "colour_camera", image, &camera, err));
        VXD_TRY(vxd_volume_read_pose(sent->T_depth_colour, "T_depth_colour",
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
        VXD_TRY(make_rgb(colour, err));
        frame->colour = colour->data;
        return VXD_OK;
    }
    VXD_TRY(take_raw(request, &sent->colour, "colour", 3 * n_pixels(&camera), 1, &bytes,
                     err));
    frame->colour = bytes;
out:
    return status;
}

enum vxd_status vxd_volume_read_images(struct vxd_request *request,
                                       const struct vxd_volume_sent *sent,
                                       struct vxd_image *depth, struct vxd_image *colour,
                                       struct vxd_volume_frame *frame,
                                       struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(read_depth(request, sent, depth, frame, err));
    if (sent->colour.len > 0) {
        VXD_TRY(read_colour(request, sent, colour, frame, err));
    }
out:
    return status;
}

/* Labels are bytes, or a picture of them. */
/* Has an error name keyframes[index] and its field. */
static void name_keyframe(size_t index, struct vxd_err *err)
{
    const char *part = strcmp(err->field, "T_depth_colour") == 0       ? "T_map_camera"
                       : strncmp(err->field, "colour_camera", 13) == 0 ? err->field + 7
                                                                       : err->field;
    char field[sizeof err->field];

    (void)snprintf(field, sizeof field, "keyframes[%zu].%.36s", index, part);
    (void)snprintf(err->field, sizeof err->field, "%s", field);
}

enum vxd_status vxd_volume_read_keyframe(struct vxd_request *request,
                                         const Voxeld__V1__VolumeKeyframe *keyframe,
                                         size_t index, struct vxd_image *image,
                                         struct vxd_volume_camera *camera,
                                         struct vxd_volume_pose *pose,
                                         const uint8_t **colour, struct vxd_err *err)
{
    const struct vxd_volume_sent sent = {.colour = keyframe->colour,
                                         .colour_type = keyframe->colour_type,
                                         .colour_camera = keyframe->camera,
                                         .T_depth_colour = keyframe->t_map_camera};
    struct vxd_volume_frame frame = {0};
    enum vxd_status status;

    if (keyframe->camera == NULL || keyframe->colour.len == 0) {
        char field[64];

        (void)snprintf(field, sizeof field, "keyframes[%zu].%s", index,
                       keyframe->camera == NULL ? "camera" : "colour");
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field, "is missing");
    }
    status = read_colour(request, &sent, image, &frame, err);
    if (status != VXD_OK) {
        name_keyframe(index, err);
        return status;
    }
    *camera = frame.colour_camera;
    *pose = frame.T_depth_colour;
    *colour = frame.colour;
    return VXD_OK;
}

enum vxd_status vxd_volume_read_labels(struct vxd_request *request,
                                       const ProtobufCBinaryData *sent,
                                       struct vxd_image *image,
                                       struct vxd_volume_frame *frame,
                                       struct vxd_err *err)
{
    static const uint8_t png[4] = {0x89, 'P', 'N', 'G'};
    size_t n = n_pixels(&frame->camera);
    enum vxd_status status;

    if (sent->len == n) {
        frame->labels = sent->data;
        return VXD_OK;
    }
    if (sent->len < sizeof png || memcmp(sent->data, png, sizeof png) != 0) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "labels",
                         "has %zu bytes; one for each of %zu pixels is right, or a PNG "
                         "of 8 bits of grey",
                         sent->len, n));
    }
    VXD_TRY(decode(request, sent, "labels", image, err));
    if (image->n_channels != 1 || image->sample_bytes != 1 ||
        (int)image->width != frame->camera.width ||
        (int)image->height != frame->camera.height) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "labels",
                         "is a picture of %u x %u pixels with %u channels of %u bits; "
                         "%d x %d with one of 8 bits is right",
                         image->width, image->height, image->n_channels,
                         8 * image->sample_bytes, frame->camera.width,
                         frame->camera.height));
    }
    frame->labels = image->data;
out:
    return status;
}
