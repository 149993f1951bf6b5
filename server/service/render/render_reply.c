// SPDX-License-Identifier: Apache-2.0
/* From pixels to what a client gets: a tensor, or a PNG or JPEG file. */
#include <math.h>

#include "client/files/image/files_image.h"
#include "server/service/render/scene_render.h"
#include "server/service/service.h"

enum {
    PNG_LEVEL = 1, /* a frame that is sent at once */
    DEFAULT_QUALITY = 90,
    CHANNELS = 3
};

static size_t n_pixels(const struct vxd_render_job *job)
{
    return (size_t)job->picture.width * job->picture.height;
}

/* Three bytes of each pixel: colours, or of normals the int8. `bias` is added to each. */
static enum vxd_status take_bytes(struct vxd_request *request, int scale, int bias,
                                  uint8_t **out, struct vxd_err *err)
{
    const struct vxd_render_job *job = request->state;
    const uint32_t *pixels = job->pixels.bytes;
    size_t n = n_pixels(job);
    void *block;
    uint8_t *bytes;
    enum vxd_status status;

    VXD_TRY(vxd_scene_take_host(request, n, CHANNELS, &block, err));
    bytes = block;
    for (size_t i = 0; i < n; i++) {
        for (int k = 0; k < CHANNELS; k++) {
            uint8_t byte = (uint8_t)(pixels[i] >> (8 * k));

            bytes[CHANNELS * i + (size_t)k] =
                scale == 1 ? byte : (uint8_t)((int8_t)byte * scale + bias);
        }
    }
    *out = bytes;
out:
    return status;
}

/* Depths as millimetres, materials as they are; what is not there is 0, or 65535. */
static enum vxd_status take_halves(struct vxd_request *request, uint16_t **out,
                                   struct vxd_err *err)
{
    const struct vxd_render_job *job = request->state;
    const uint32_t *pixels = job->pixels.bytes;
    size_t n = n_pixels(job);
    void *block;
    uint16_t *halves;
    enum vxd_status status;

    VXD_TRY(vxd_scene_take_host(request, n, sizeof *halves, &block, err));
    halves = block;
    for (size_t i = 0; i < n; i++) {
        if (job->picture.mode == VXD_RENDER_DEPTH) {
            float depth;
            double mm;

            memcpy(&depth, &pixels[i], sizeof depth);
            mm = (double)depth * 1000;
            halves[i] = isinf(depth) ? 0
                        : mm < 65535 ? (uint16_t)fmax(floor(mm + 0.5), 1)
                                     : UINT16_MAX;
        } else {
            halves[i] = pixels[i] > UINT16_MAX ? UINT16_MAX : (uint16_t)pixels[i];
        }
    }
    *out = halves;
out:
    return status;
}

static enum vxd_status show_pixels(struct vxd_request *request,
                                   Voxeld__V1__SceneRenderResponse *reply,
                                   struct vxd_err *err)
{
    const struct vxd_render_job *job = request->state;
    bool is_normal = job->picture.mode == VXD_RENDER_NORMAL;
    uint8_t *bytes;
    enum vxd_status status;

    if (job->picture.mode == VXD_RENDER_DEPTH ||
        job->picture.mode == VXD_RENDER_MATERIAL) {
        return vxd_scene_show(
            request, job->picture.mode == VXD_RENDER_DEPTH ? VXD_FLOAT32 : VXD_INT32,
            n_pixels(job), 0, job->pixels.bytes, &reply->pixels, err);
    }
    VXD_TRY(take_bytes(request, 1, 0, &bytes, err));
    status = vxd_scene_show(request, is_normal ? VXD_INT8 : VXD_UINT8, n_pixels(job),
                            CHANNELS, bytes, &reply->pixels, err);
out:
    return status;
}

static enum vxd_status encode(struct vxd_request *request,
                              const Voxeld__V1__SceneRenderRequest *input,
                              struct vxd_err *err)
{
    struct vxd_render_job *job = request->state;
    struct vxd_image image = {.width = job->picture.width,
                              .height = job->picture.height,
                              .n_channels = CHANNELS,
                              .sample_bytes = 1};
    uint8_t *bytes = NULL;
    uint16_t *halves = NULL;
    enum vxd_status status;

    if (job->picture.mode == VXD_RENDER_DEPTH ||
        job->picture.mode == VXD_RENDER_MATERIAL) {
        VXD_TRY(take_halves(request, &halves, err));
        image.n_channels = 1;
        image.sample_bytes = sizeof *halves;
        image.data = halves;
    } else {
        bool is_normal = job->picture.mode == VXD_RENDER_NORMAL;

        VXD_TRY(
            take_bytes(request, is_normal ? 127 : 1, is_normal ? 128 : 0, &bytes, err));
        image.data = bytes;
    }
    status = input->encode == VOXELD__V1__RENDER_ENCODE__RENDER_PNG
                 ? vxd_png_encode(&image, PNG_LEVEL, &job->file, &job->n_file, err)
                 : vxd_jpeg_encode(
                       &image, input->quality > 0 ? (int)input->quality : DEFAULT_QUALITY,
                       &job->file, &job->n_file, err);
out:
    return status;
}

static enum vxd_status new_place(struct vxd_request *request, const double place[3],
                                 bool is_direction, Voxeld__V1__Vec3 **out,
                                 struct vxd_err *err)
{
    const struct vxd_render_job *job = request->state;
    const struct vxd_scene_spec *spec = &job->base.scene->spec;
    Voxeld__V1__Vec3 *v =
        vxd_message_new(request->decoder, &voxeld__v1__vec3__descriptor, err);

    if (v == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    v->x = is_direction ? place[0] : place[0] * spec->voxel_size_m + spec->origin_m[0];
    v->y = is_direction ? place[1] : place[1] * spec->voxel_size_m + spec->origin_m[1];
    v->z = is_direction ? place[2] : place[2] * spec->voxel_size_m + spec->origin_m[2];
    *out = v;
    return VXD_OK;
}

enum vxd_status vxd_render_new_reply(struct vxd_request *request,
                                     Voxeld__V1__SceneRenderResponse **out,
                                     struct vxd_err *err)
{
    const Voxeld__V1__SceneRenderRequest *input =
        (const Voxeld__V1__SceneRenderRequest *)request->input;
    const struct vxd_render_job *job = request->state;
    Voxeld__V1__SceneRenderResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__scene_render_response__descriptor, err);
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    reply->version = job->base.state.version;
    reply->generation = job->base.scene->generation;
    reply->engine_ms = (double)request->engine_ns / 1e6;
    reply->width = job->picture.width;
    reply->height = job->picture.height;
    reply->n_rays = job->n_rays;
    reply->view =
        vxd_message_new(request->decoder, &voxeld__v1__render_view__descriptor, err);
    if (reply->view == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(new_place(request, job->picture.camera.eye, false, &reply->view->eye, err));
    VXD_TRY(
        new_place(request, job->picture.camera.target, false, &reply->view->target, err));
    VXD_TRY(new_place(request, job->picture.camera.up, true, &reply->view->up, err));
    if (input->encode == VOXELD__V1__RENDER_ENCODE__RENDER_TENSOR) {
        VXD_TRY(show_pixels(request, reply, err));
    } else {
        VXD_TRY(encode(request, input, err));
        reply->image.data = job->file;
        reply->image.len = job->n_file;
    }
    *out = reply;
out:
    return status;
}
