// SPDX-License-Identifier: Apache-2.0
/* From pixels to what a client gets: a tensor, or a PNG or JPEG file. */
#include <math.h>

#include "server/service/render/scene_render.h"
#include "server/service/service.h"

enum {
    PNG_LEVEL = 1,      /* a frame that is sent at once */
    PNG_PART = 1 << 20, /* samples of a stage */
    DEFAULT_QUALITY = 90,
    CHANNELS = 3,
    NORMAL_SCALE = 127 /* of files, and of pixels with volumes */
};

static size_t n_pixels(const struct vxd_render_job *job)
{
    return (size_t)job->picture.width * job->picture.height;
}

/* What a normal of length 1 is in the pixels: whole axes of faces, or directions of surfaces. */
static int normal_scale(const struct vxd_render_job *job)
{
    return job->n_volumes > 0 ? NORMAL_SCALE : 1;
}

/* Whether a file has a uint16 of each pixel, not three bytes. */
static bool has_halves(const struct vxd_render_job *job)
{
    return job->picture.mode == VXD_RENDER_DEPTH ||
           job->picture.mode == VXD_RENDER_MATERIAL;
}

/* Three bytes of each of n pixels: colours, or of normals the int8. Where there is a `bias`, it is added to
 * each, times `scale`. */
static void put_bytes(const uint32_t *pixels, size_t n, int scale, int bias, uint8_t *out)
{
    for (size_t i = 0; i < n; i++) {
        for (int k = 0; k < CHANNELS; k++) {
            uint8_t byte = (uint8_t)(pixels[i] >> (8 * k));

            out[CHANNELS * i + (size_t)k] =
                bias == 0 ? byte : (uint8_t)((int8_t)byte * scale + bias);
        }
    }
}

static enum vxd_status take_bytes(struct vxd_request *request, uint8_t **out,
                                  struct vxd_err *err)
{
    const struct vxd_render_job *job = request->state;
    void *block;
    enum vxd_status status;

    VXD_TRY(vxd_scene_take_host(request, n_pixels(job), CHANNELS, &block, err));
    put_bytes(job->layer.pixels.bytes, n_pixels(job), 1, 0, block);
    *out = block;
out:
    return status;
}

/* Depths as millimetres, materials as they are; what is not there is 0, or 65535. */
static void put_halves(const uint32_t *pixels, size_t n, bool is_depth, uint16_t *out)
{
    for (size_t i = 0; i < n; i++) {
        if (is_depth) {
            float depth;
            double mm;

            memcpy(&depth, &pixels[i], sizeof depth);
            mm = (double)depth * 1000;
            out[i] = isinf(depth) ? 0
                     : mm < 65535 ? (uint16_t)fmax(floor(mm + 0.5), 1)
                                  : UINT16_MAX;
        } else {
            out[i] = pixels[i] > UINT16_MAX ? UINT16_MAX : (uint16_t)pixels[i];
        }
    }
}

/* Rows of a band: as many as hold about PNG_PART samples. */
static uint32_t count_band_rows(const struct vxd_render_job *job)
{
    uint32_t n = (uint32_t)PNG_PART / (job->picture.width * CHANNELS);

    n = n > 0 ? n : 1;
    return n < job->picture.height ? n : job->picture.height;
}

static enum vxd_status begin_png(struct vxd_request *request, struct vxd_err *err)
{
    struct vxd_render_job *job = request->state;
    const struct vxd_image image = {.width = job->picture.width,
                                    .height = job->picture.height,
                                    .n_channels = has_halves(job) ? 1 : CHANNELS,
                                    .sample_bytes = has_halves(job) ? 2 : 1};
    enum vxd_status status;

    VXD_TRY(vxd_scene_take_host(request, (size_t)count_band_rows(job) * image.width,
                                CHANNELS, &job->band, err));
    VXD_TRY(vxd_png_begin(&image, PNG_LEVEL, &job->png, err));
out:
    return status;
}

enum vxd_status vxd_render_encode_band(struct vxd_request *request, struct vxd_err *err)
{
    struct vxd_render_job *job = request->state;
    uint32_t width = job->picture.width;
    uint32_t left = job->picture.height - job->n_encoded;
    uint32_t n_rows = count_band_rows(job);
    const uint32_t *pixels =
        (const uint32_t *)job->layer.pixels.bytes + (size_t)job->n_encoded * width;
    enum vxd_status status;

    if (job->png == NULL) {
        VXD_TRY(begin_png(request, err));
    }
    n_rows = n_rows < left ? n_rows : left;
    if (has_halves(job)) {
        put_halves(pixels, (size_t)n_rows * width, job->picture.mode == VXD_RENDER_DEPTH,
                   job->band);
    } else {
        bool is_normal = job->picture.mode == VXD_RENDER_NORMAL;

        put_bytes(pixels, (size_t)n_rows * width, NORMAL_SCALE / normal_scale(job),
                  is_normal ? 128 : 0, job->band);
    }
    VXD_TRY(vxd_png_write_rows(job->png, job->band, n_rows, err));
    job->n_encoded += n_rows;
    if (n_rows == left) {
        VXD_TRY(vxd_png_take_file(job->png, &job->file, &job->n_file, err));
        job->step = VXD_RENDER_DONE;
    }
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

    if (has_halves(job)) {
        return vxd_scene_show(
            request, job->picture.mode == VXD_RENDER_DEPTH ? VXD_FLOAT32 : VXD_INT32,
            n_pixels(job), 0, job->layer.pixels.bytes, &reply->pixels, err);
    }
    VXD_TRY(take_bytes(request, &bytes, err));
    status = vxd_scene_show(request, is_normal ? VXD_INT8 : VXD_UINT8, n_pixels(job),
                            CHANNELS, bytes, &reply->pixels, err);
out:
    return status;
}

/* JPEG is of colours alone, and fast enough to be made at once. */
static enum vxd_status encode_jpeg(struct vxd_request *request, uint32_t quality,
                                   struct vxd_err *err)
{
    struct vxd_render_job *job = request->state;
    struct vxd_image image = {.width = job->picture.width,
                              .height = job->picture.height,
                              .n_channels = CHANNELS,
                              .sample_bytes = 1};
    uint8_t *bytes;
    enum vxd_status status;

    VXD_TRY(take_bytes(request, &bytes, err));
    image.data = bytes;
    VXD_TRY(vxd_jpeg_encode(&image, quality > 0 ? (int)quality : DEFAULT_QUALITY,
                            &job->file, &job->n_file, err));
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
    reply->normal_scale =
        job->picture.mode == VXD_RENDER_NORMAL ? (uint32_t)normal_scale(job) : 0;
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
        if (input->encode == VOXELD__V1__RENDER_ENCODE__RENDER_JPEG) {
            VXD_TRY(encode_jpeg(request, input->quality, err));
        }
        reply->image.data = job->file;
        reply->image.len = job->n_file;
    }
    *out = reply;
out:
    return status;
}
