// SPDX-License-Identifier: Apache-2.0
/* Several scenes in one picture: each is drawn by itself from the same camera, with its depths, and
 * of every pixel the nearest scene is shown. They have frames of their own, so the camera is brought
 * into each one's voxels by way of metres. */
#include <math.h>

#include "server/instance/instance.h"
#include "server/service/render/scene_render.h"
#include "server/service/service.h"

struct vxd_render_other {
    struct vxd_scene *scene;      /* held */
    struct vxd_scene_state state; /* pinned */
    struct vxd_render_layer layer;
};

static const Voxeld__V1__SceneRenderRequest *input_of(const struct vxd_request *request)
{
    return (const Voxeld__V1__SceneRenderRequest *)request->input;
}

enum vxd_status vxd_render_check_others(const Voxeld__V1__SceneRenderRequest *input,
                                        struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    if (input->n_others > VXD_RENDER_MOST_OTHERS) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "others",
                         "are %zu, there may be at most %d", input->n_others,
                         VXD_RENDER_MOST_OTHERS));
    }
    if (input->n_others > 0 && input->mode == VOXELD__V1__RENDER_MODE__RENDER_AGE) {
        VXD_TRY(
            vxd_fail(err, VXD_INVALID_ARGUMENT, "others",
                     "go with all modes but RENDER_AGE, as each has its own versions"));
    }
    for (size_t i = 0; i < input->n_others; i++) {
        if (vxd_noun_check_name(input->others[i]->name, "name", err) != VXD_OK) {
            (void)snprintf(err->field, sizeof err->field, "others.name");
            return VXD_INVALID_ARGUMENT;
        }
        VXD_TRY(vxd_scene_check_at(input->others[i]->at, "others.at", err));
    }
out:
    return status;
}

/* Brings a place from voxels of one scene to those of another. */
static void move_place(const struct vxd_scene_spec *from, const struct vxd_scene_spec *to,
                       const double place[3], double out[3])
{
    for (int i = 0; i < 3; i++) {
        double metres = place[i] * from->voxel_size_m + from->origin_m[i];

        out[i] = (metres - to->origin_m[i]) / to->voxel_size_m;
    }
}

/* The picture as it is of another scene. */
static enum vxd_status move_picture(struct vxd_request *request,
                                    const struct vxd_render_other *other,
                                    struct vxd_render_picture *out, struct vxd_err *err)
{
    const struct vxd_render_job *job = request->state;
    const struct vxd_scene_spec *from = &job->base.scene->spec;
    const struct vxd_scene_spec *to = &other->scene->spec;
    const struct vxd_render_picture *picture = &job->picture;
    double ratio = from->voxel_size_m / to->voxel_size_m;
    double shift = (from->origin_m[2] - to->origin_m[2]) / to->voxel_size_m;
    uint32_t *palette;

    *out = *picture;
    move_place(from, to, picture->camera.eye, out->camera.eye);
    move_place(from, to, picture->camera.target, out->camera.target);
    out->camera.view_height = picture->camera.view_height * ratio;
    out->voxel_size_m = to->voxel_size_m;
    out->ao_radius = fmin(picture->ao_radius * ratio, VXD_RENDER_MAX_PLACE);
    out->z_low = picture->z_low * ratio + shift;
    out->z_high = picture->z_high * ratio + shift;
    out->n_textures = 0;
    out->n_regions = 0;
    out->has_clip = false;
    out->palette = NULL;
    out->n_palette = 0;
    if (to->n_palette == 0) {
        return VXD_OK;
    }
    palette = vxd_message_array(request->decoder, to->n_palette, sizeof *palette, err);
    if (palette == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < to->n_palette; i++) {
        palette[i] = to->palette[i].rgb;
    }
    out->palette = palette;
    out->n_palette = (uint32_t)to->n_palette;
    return VXD_OK;
}

/* Plans and memory of one scene's pixels and depths; where the picture is of depths, they are its
 * pixels. */
static enum vxd_status make_layer(struct vxd_request *request, struct vxd_queue *queue,
                                  const struct vxd_render_picture *picture,
                                  struct vxd_render_layer *layer, struct vxd_err *err)
{
    size_t n_pixels = (size_t)picture->width * picture->height;
    struct vxd_render_picture depths = *picture;
    enum vxd_status status = VXD_OK;

    depths.mode = VXD_RENDER_DEPTH;
    if (layer->plan == NULL) {
        VXD_TRY(vxd_render_plan_create(queue, picture, &layer->plan, err));
        VXD_TRY(vxd_scene_reserve_output(request, queue, n_pixels, sizeof(uint32_t),
                                         &layer->pixels, err));
    }
    if (picture->mode != VXD_RENDER_DEPTH) {
        VXD_TRY(vxd_render_plan_create(queue, &depths, &layer->depth_plan, err));
        VXD_TRY(vxd_scene_reserve_output(request, queue, n_pixels, sizeof(float),
                                         &layer->depths, err));
    }
out:
    return status;
}

static enum vxd_status open_other(struct vxd_request *request, struct vxd_queue *queue,
                                  size_t i, struct vxd_err *err)
{
    const Voxeld__V1__RenderScene *wanted = input_of(request)->others[i];
    struct vxd_render_job *job = request->state;
    struct vxd_render_other *other = &job->others[i];
    const struct vxd_scene_at at = {
        .version = wanted->at != NULL ? wanted->at->version : 0,
        .snapshot = wanted->at != NULL ? wanted->at->snapshot : NULL};
    struct vxd_render_picture picture;
    enum vxd_status status;

    other->scene = vxd_scenes_find(request->server->scenes, wanted->name);
    if (other->scene == NULL) {
        VXD_TRY(vxd_fail(err, VXD_NOT_FOUND, "others.name", "there is no scene \"%s\"",
                         wanted->name));
    }
    VXD_TRY(vxd_scene_pin(other->scene, &at, &other->state, err));
    VXD_TRY(move_picture(request, other, &picture, err));
    status = vxd_render_find_clip(&other->scene->spec, input_of(request)->clip, &picture)
                 ? VXD_OK
                 : VXD_NOT_FOUND;
    if (status != VXD_OK) { /* nothing of it is in the clip box */
        other->state.root = VXD_SVDAG_EMPTY;
    }
    status = make_layer(request, queue, &picture, &other->layer, err);
    if (status == VXD_INVALID_ARGUMENT) {
        (void)snprintf(err->field, sizeof err->field, "others");
    }
out:
    return status;
}

enum vxd_status vxd_render_open_others(struct vxd_request *request,
                                       struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__SceneRenderRequest *input = input_of(request);
    struct vxd_render_job *job = request->state;
    enum vxd_status status = VXD_OK;

    if (input->n_others + input->n_volumes == 0) {
        return VXD_OK;
    }
    VXD_TRY(make_layer(request, queue, &job->picture, &job->layer, err));
    if (input->n_others == 0) {
        return VXD_OK;
    }
    job->others =
        vxd_message_array(request->decoder, input->n_others, sizeof *job->others, err);
    if (job->others == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    memset(job->others, 0, input->n_others * sizeof *job->others);
    job->n_others = input->n_others;
    for (size_t i = 0; i < job->n_others; i++) {
        VXD_TRY(open_other(request, queue, i, err));
    }
out:
    return status;
}

struct vxd_render_layer *vxd_render_layer_of(struct vxd_render_job *job, size_t i,
                                             const struct vxd_scene_state **state)
{
    *state = i == 0 ? &job->base.state : &job->others[i - 1].state;
    return i == 0 ? &job->layer : &job->others[i - 1].layer;
}

float *vxd_render_depths_of(const struct vxd_render_layer *layer)
{
    const void *bytes =
        layer->depth_plan != NULL ? layer->depths.bytes : layer->pixels.bytes;

    return (float *)(uintptr_t)bytes;
}

void vxd_render_merge_others(struct vxd_render_job *job)
{
    size_t n = (size_t)job->picture.width * job->picture.height;
    uint32_t *pixels = (uint32_t *)(uintptr_t)job->layer.pixels.bytes;
    float *nearest = vxd_render_depths_of(&job->layer);

    for (size_t k = 0; k < job->n_others; k++) {
        const struct vxd_render_layer *layer = &job->others[k].layer;
        const uint32_t *others = layer->pixels.bytes;
        const float *depths = vxd_render_depths_of(layer);

        for (size_t i = 0; i < n; i++) {
            if (depths[i] < nearest[i]) {
                nearest[i] = depths[i];
                pixels[i] = others[i];
            }
        }
    }
}

void vxd_render_release_others(struct vxd_request *request, struct vxd_queue *queue)
{
    struct vxd_render_job *job = request->state;

    for (size_t i = 0; i < job->n_others; i++) {
        struct vxd_render_other *other = &job->others[i];

        vxd_render_plan_destroy(queue, other->layer.plan);
        vxd_render_plan_destroy(queue, other->layer.depth_plan);
        if (other->scene != NULL) {
            vxd_scene_unpin(request->server->scenes, &other->state, queue);
            vxd_scene_drop(other->scene, queue);
        }
    }
    job->n_others = 0;
}
