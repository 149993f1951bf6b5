// SPDX-License-Identifier: Apache-2.0
/* scene_render: the stages of a picture. */
#include <stdlib.h>

#include "gpu/svdag/store/store.h"
#include "proto/base/clock.h"
#include "server/instance/instance.h"
#include "server/service/render/scene_render.h"
#include "server/service/service.h"

enum {
    MAX_CELLS = 1 << 16, /* of an export of bounds: more than 33^3 */
    BAND = 8             /* rows of a part, so that the CPU's tiles are whole */
};

/* Rays of a stage: a few ms of a GPU, 20 ms of each thread of a CPU where they are slow. */
#define STAGE_RAYS_CUDA ((uint64_t)1 << 22)
#define STAGE_RAYS_THREAD ((uint64_t)12000)
/* Rays a second that pictures are refused by: where they are fast. */
#define FAST_RAYS_CUDA 4e9
#define FAST_RAYS_THREAD 6e6

static struct vxd_context_info context_of(const struct vxd_request *request)
{
    struct vxd_context_info info;

    vxd_context_get_info(request->server->context, &info);
    return info;
}

/* Refuses what cannot end in time, before any of it is drawn. */
static enum vxd_status check_time(const struct vxd_request *request, struct vxd_err *err)
{
    const struct vxd_render_job *job = request->state;
    struct vxd_context_info info = context_of(request);
    double rate = info.backend == VXD_BACKEND_CUDA ? FAST_RAYS_CUDA
                                                   : FAST_RAYS_THREAD * info.n_threads;
    double left_s = (double)(request->deadline_ns - vxd_clock_ns()) * 1e-9;
    double needed_s = (double)job->n_rays / rate;

    if (needed_s > left_s) {
        return vxd_fail(
            err, VXD_RESOURCE_EXHAUSTED, "width",
            "the picture needs up to %llu rays, at least %.1f s, and %.1f s are "
            "left: ask for fewer pixels, samples or bounces, or for more time",
            (unsigned long long)job->n_rays, needed_s, left_s > 0 ? left_s : 0.0);
    }
    return VXD_OK;
}

static enum vxd_status submit_bounds(struct vxd_request *request, struct vxd_queue *queue,
                                     struct vxd_err *err)
{
    struct vxd_render_job *job = request->state;
    struct vxd_scene_output none = {0};
    enum vxd_status status;

    job->cells = none;
    job->n_cells = none;
    VXD_TRY(vxd_scene_reserve_output(request, queue, MAX_CELLS, 3 * sizeof(int32_t),
                                     &job->cells, err));
    VXD_TRY(vxd_scene_reserve_output(request, queue, 1, sizeof(uint64_t), &job->n_cells,
                                     err));
    VXD_TRY(vxd_svdag_export_cells(queue, job->base.state.svdag, job->base.state.root,
                                   &job->box, 0, MAX_CELLS, job->cells.device, NULL, NULL,
                                   job->n_cells.device, err));
    VXD_TRY(vxd_scene_fetch_output(request, queue, &job->cells, err));
    VXD_TRY(vxd_scene_fetch_output(request, queue, &job->n_cells, err));
    job->step = VXD_RENDER_BOUND;
    request->more = true;
out:
    return status;
}

static enum vxd_status take_palette(struct vxd_request *request, struct vxd_err *err)
{
    struct vxd_render_job *job = request->state;
    const struct vxd_scene_spec *spec = &job->base.scene->spec;

    if (spec->n_palette == 0) {
        return VXD_OK;
    }
    job->palette =
        vxd_message_array(request->decoder, spec->n_palette, sizeof *job->palette, err);
    if (job->palette == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < spec->n_palette; i++) {
        job->palette[i] = spec->palette[i].rgb;
    }
    job->picture.palette = job->palette;
    job->picture.n_palette = (uint32_t)spec->n_palette;
    return VXD_OK;
}

/* The engine's name of a field as the message has it. */
static void rename_field(struct vxd_err *err)
{
    static const char *const names[][2] = {{"camera.eye", "view.eye"},
                                           {"camera.target", "view.target"},
                                           {"camera.up", "view.up"},
                                           {"camera.fov_y_deg", "fov_y_deg"},
                                           {"camera.view_height", "view_height_m"},
                                           {"camera.elevations_deg", "elevations_deg"},
                                           {"ao_radius", "ao_radius_m"},
                                           {"z_low", "z_low_m"},
                                           {"z_high", "z_high_m"}};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(err->field, names[i][0]) == 0) {
            (void)snprintf(err->field, sizeof err->field, "%s", names[i][1]);
        }
    }
}

static enum vxd_status begin_drawing(struct vxd_request *request, struct vxd_queue *queue,
                                     struct vxd_err *err)
{
    const Voxeld__V1__SceneRenderRequest *input =
        (const Voxeld__V1__SceneRenderRequest *)request->input;
    struct vxd_render_job *job = request->state;
    size_t n_pixels = (size_t)job->picture.width * job->picture.height;
    enum vxd_status status;

    VXD_TRY(check_time(request, err));
    VXD_TRY(take_palette(request, err));
    vxd_render_set_camera(job, input);
    if (job->picture.mode == VXD_RENDER_AGE) {
        VXD_TRY(vxd_render_open_versions(request, queue, err));
    }
    VXD_TRY(vxd_render_set_materials(request, err));
    status = vxd_render_plan_create(queue, &job->picture, &job->layer.plan, err);
    if (status != VXD_OK) {
        rename_field(err);
        return status;
    }
    VXD_TRY(vxd_scene_reserve_output(request, queue, n_pixels, sizeof(uint32_t),
                                     &job->layer.pixels, err));
    VXD_TRY(vxd_render_open_others(request, queue, err));
    job->step = VXD_RENDER_DRAW;
out:
    return status;
}

/* The next part of about as many rays as a stage casts; the cursor moves on. */
static struct vxd_render_rect next_part(const struct vxd_request *request,
                                        struct vxd_render_job *job)
{
    const struct vxd_render_picture *picture = &job->picture;
    struct vxd_context_info info = context_of(request);
    uint64_t budget = info.backend == VXD_BACKEND_CUDA
                          ? STAGE_RAYS_CUDA
                          : STAGE_RAYS_THREAD * (uint64_t)info.n_threads;
    uint64_t n_pixels = budget / vxd_render_rays_of_pixel(picture) + 1;
    uint32_t band = n_pixels >= (uint64_t)BAND * BAND ? BAND : 1;
    struct vxd_render_rect part = {job->x, job->y, picture->width - job->x, band};

    if (n_pixels / band < part.width) { /* a piece of the band */
        part.width = (uint32_t)(n_pixels / band);
        part.width -= part.width > BAND && band > 1 ? part.width % BAND : 0;
    } else if (job->x == 0 && n_pixels / picture->width > band) { /* several bands */
        uint64_t n_bands = n_pixels / picture->width / band;
        uint64_t most = (picture->height - job->y - 1) / band + 1;

        part.height = (uint32_t)((n_bands < most ? n_bands : most) * band);
    }
    if (part.height > picture->height - job->y) {
        part.height = picture->height - job->y;
    }
    job->x += part.width;
    if (job->x == picture->width) {
        job->x = 0;
        job->y += part.height;
    }
    return part;
}

/* Queues the copies of all that was drawn. */
static enum vxd_status fetch(struct vxd_request *request, struct vxd_queue *queue,
                             struct vxd_err *err)
{
    struct vxd_render_job *job = request->state;
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; i <= job->n_others; i++) {
        const struct vxd_scene_state *state;
        struct vxd_render_layer *layer = vxd_render_layer_of(job, i, &state);

        VXD_TRY(vxd_scene_fetch_output(request, queue, &layer->pixels, err));
        VXD_TRY(vxd_scene_fetch_output(request, queue, &layer->depths, err));
    }
out:
    return status;
}

/* What follows once the first scene's pixels are those of all scenes, and of the volumes so far. */
static void go_on(struct vxd_request *request)
{
    const Voxeld__V1__SceneRenderRequest *input =
        (const Voxeld__V1__SceneRenderRequest *)request->input;

    vxd_render_next_volume(request, input->encode == VOXELD__V1__RENDER_ENCODE__RENDER_PNG
                                        ? VXD_RENDER_ENCODE
                                        : VXD_RENDER_DONE);
}

static enum vxd_status draw(struct vxd_request *request, struct vxd_queue *queue,
                            struct vxd_err *err)
{
    struct vxd_render_job *job = request->state;
    struct vxd_render_rect part = next_part(request, job);
    const struct vxd_scene_state *state;
    struct vxd_render_layer *layer =
        vxd_render_layer_of(job, job->n_layers_drawn, &state);
    enum vxd_status status;

    VXD_TRY(vxd_render_draw(queue, layer->plan, state->svdag, state->root, &part,
                            layer->pixels.device, err));
    if (layer->depth_plan != NULL) {
        VXD_TRY(vxd_render_draw(queue, layer->depth_plan, state->svdag, state->root,
                                &part, layer->depths.device, err));
    }
    request->more = true;
    if (job->y < job->picture.height) {
        return VXD_OK;
    }
    job->n_layers_drawn++;
    job->x = 0;
    job->y = 0;
    if (job->n_layers_drawn > job->n_others) {
        VXD_TRY(fetch(request, queue, err));
        job->step = VXD_RENDER_MERGE;
        if (job->n_others + job->n_volumes == 0) {
            go_on(request);
        }
    }
out:
    return status;
}

enum vxd_status vxd_scene_render_submit(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__SceneRenderRequest *input =
        (const Voxeld__V1__SceneRenderRequest *)request->input;
    struct vxd_render_job *job = request->state;
    enum vxd_status status;

    request->more = false;
    if (job->step == VXD_RENDER_OPEN) {
        VXD_TRY(vxd_scene_open(request, input->name, input->at, err));
        VXD_TRY(vxd_render_hold_volumes(request, err));
        vxd_render_begin_bounds(job);
        if (vxd_render_needs_bounds(input)) {
            return submit_bounds(request, queue, err);
        }
        VXD_TRY(begin_drawing(request, queue, err));
    } else if (job->step == VXD_RENDER_BOUND) {
        if (vxd_render_narrow_bounds(job)) {
            return submit_bounds(request, queue, err);
        }
        vxd_scene_free_blocks(request, queue);
        VXD_TRY(begin_drawing(request, queue, err));
    }
    if (job->step == VXD_RENDER_MERGE) {
        vxd_render_merge_others(job);
        go_on(request);
    } else if (job->step == VXD_RENDER_CAST) {
        VXD_TRY(vxd_render_cast_volume(request, queue, err));
    } else if (job->step == VXD_RENDER_COMPOSE) {
        if (vxd_render_compose_volume(request, queue)) {
            go_on(request);
        }
    } else if (job->step == VXD_RENDER_ENCODE) {
        VXD_TRY(vxd_render_encode_band(request, err));
        request->more = job->step != VXD_RENDER_DONE;
    } else {
        VXD_TRY(draw(request, queue, err));
    }
out:
    return status;
}

enum vxd_status vxd_scene_render_finish(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err)
{
    Voxeld__V1__SceneRenderResponse *reply;
    enum vxd_status status;

    VXD_TRY(vxd_render_new_reply(request, &reply, err));
    request->output = &reply->base;
    vxd_scene_close(request, queue);
out:
    return status;
}

void vxd_scene_render_release(struct vxd_request *request, struct vxd_queue *queue)
{
    struct vxd_render_job *job = request->state;

    vxd_render_plan_destroy(queue, job->layer.plan);
    vxd_render_plan_destroy(queue, job->layer.depth_plan);
    job->layer.plan = NULL;
    job->layer.depth_plan = NULL;
    vxd_render_release_others(request, queue);
    vxd_render_release_volumes(request, queue);
    vxd_png_destroy(job->png);
    job->png = NULL;
    free(job->file);
    job->file = NULL;
    vxd_scene_release(request, queue);
}
