// SPDX-License-Identifier: Apache-2.0
/* Volumes in a picture of scenes. One after the other is cast by the picture's camera, which is brought into
 * metres from its origin, and put into the picture where it is nearer than what is there. Volumes change in
 * place, so they are cast on the write lane; all else is done on a read lane. */
#include <math.h>

#include "server/instance/instance.h"
#include "server/service/existing/existing.h"
#include "server/service/render/scene_render.h"
#include "server/service/service.h"

enum {
    MAX_PIXELS = 1 << 22,     /* of a picture with volumes, as of theirs alone */
    COMPOSE_PIXELS = 1 << 18, /* of a stage, about 10 ms of a core */
    FACE_NORMAL = 127         /* what a normal of 1 becomes */
};

static const Voxeld__V1__SceneRenderRequest *input_of(const struct vxd_request *request)
{
    return (const Voxeld__V1__SceneRenderRequest *)request->input;
}

/* --- check -------------------------------------------------------------------------------- */

/* The modes that volumes do not have, and why. */
static enum vxd_status check_mode(enum vxd_render_mode mode, struct vxd_err *err)
{
    const char *why =
        mode == VXD_RENDER_MATERIAL ? "RENDER_MATERIAL: they have none"
        : mode == VXD_RENDER_AGE    ? "RENDER_AGE: they keep no versions"
        : mode == VXD_RENDER_AO     ? "RENDER_AO: what occludes them is not found"
        : mode == VXD_RENDER_PATH   ? "RENDER_PATH: light is not followed between them"
                                    : NULL;

    return why == NULL
               ? VXD_OK
               : vxd_fail(err, VXD_INVALID_ARGUMENT, "volumes",
                          "have no mode %s; RENDER_COLOUR, RENDER_HEIGHT, "
                          "RENDER_DEPTH, RENDER_NORMAL and RENDER_LABEL are theirs",
                          why);
}

enum vxd_status vxd_render_check_volumes(const Voxeld__V1__SceneRenderRequest *input,
                                         const struct vxd_render_picture *picture,
                                         struct vxd_err *err)
{
    uint64_t n_pixels = (uint64_t)picture->width * picture->height;
    enum vxd_status status;

    if (input->n_volumes == 0) {
        return VXD_OK;
    }
    if (input->n_volumes > VXD_RENDER_MOST_VOLUMES) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "volumes",
                         "are %zu, there may be at most %d", input->n_volumes,
                         VXD_RENDER_MOST_VOLUMES));
    }
    for (size_t i = 0; i < input->n_volumes; i++) {
        VXD_TRY(vxd_noun_check_name(input->volumes[i], "volumes", err));
    }
    VXD_TRY(check_mode(picture->mode, err));
    if (picture->camera.kind == VXD_RENDER_ORTHOGRAPHIC) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "camera",
                         "is orthographic, whose rays are parallel; those of volumes go "
                         "out from one point: RENDER_PINHOLE from far away is close"));
    }
    if (input->clip != NULL) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "clip",
                         "goes not with volumes, which are not cut"));
    }
    if (n_pixels > MAX_PIXELS) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "width",
                         "%u x %u pixels are more than %d, which a picture with volumes "
                         "may have",
                         picture->width, picture->height, MAX_PIXELS));
    }
out:
    return status;
}

/* --- the volumes ----------------------------------------------------------------------------- */

enum vxd_status vxd_render_hold_volumes(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SceneRenderRequest *input = input_of(request);
    struct vxd_render_job *job = request->state;
    enum vxd_status status = VXD_OK;

    if (input->n_volumes == 0) {
        return VXD_OK;
    }
    job->volumes = vxd_message_pointers(request->decoder, input->n_volumes, err);
    if (job->volumes == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < input->n_volumes; i++) {
        const char *name = input->volumes[i];
        struct vxd_named_volume *volume =
            (struct vxd_named_volume *)vxd_names_hold(request->server->volumes, name);

        if (volume == NULL) {
            VXD_TRY(vxd_missing_volume(request, "volumes", name, err));
        }
        job->volumes[job->n_volumes++] = volume;
        if (job->picture.mode == VXD_RENDER_LABEL && !volume->spec.has_labels) {
            VXD_TRY(vxd_fail(err, VXD_FAILED_PRECONDITION, "volumes",
                             "the volume \"%s\" keeps no labels", name));
        }
    }
out:
    return status;
}

/* What of scenes were faces' axes becomes what of volumes are directions. */
static void scale_normals(struct vxd_render_job *job)
{
    size_t n = (size_t)job->picture.width * job->picture.height;
    uint32_t *pixels = (uint32_t *)(uintptr_t)job->layer.pixels.bytes;

    for (size_t i = 0; i < n; i++) {
        uint32_t scaled = 0;

        for (int k = 0; k < 3; k++) {
            int8_t part = (int8_t)(uint8_t)(pixels[i] >> (8 * k));

            scaled |= (uint32_t)(uint8_t)(part * FACE_NORMAL) << (8 * k);
        }
        pixels[i] = scaled;
    }
}

void vxd_render_next_volume(struct vxd_request *request, enum vxd_render_step then)
{
    struct vxd_render_job *job = request->state;

    if (job->n_volumes > 0 && job->n_composed == 0 &&
        job->picture.mode == VXD_RENDER_NORMAL) {
        scale_normals(job);
    }
    if (job->n_composed < job->n_volumes) {
        job->step = VXD_RENDER_CAST;
        request->lane = VXD_LANE_WRITE;
    } else {
        job->step = then;
    }
    request->more = job->step != VXD_RENDER_DONE;
}

/* The picture as it is of a volume. */
static enum vxd_status move_picture(const struct vxd_render_job *job,
                                    const struct vxd_named_volume *volume,
                                    struct vxd_render_picture *out, struct vxd_err *err)
{
    const struct vxd_render_picture *picture = &job->picture;
    const struct vxd_scene_spec *from = &job->base.scene->spec;
    const double *origin = volume->spec.origin_m;
    double shift = from->origin_m[2] - origin[2];

    *out = (struct vxd_render_picture){.camera = picture->camera,
                                       .mode = picture->mode,
                                       .width = picture->width,
                                       .height = picture->height,
                                       .voxel_size_m = 1,
                                       .samples = 1};
    vxd_render_set_sky(out);
    memcpy(out->sun_direction, picture->sun_direction, sizeof out->sun_direction);
    out->sun = picture->sun;
    out->ambient = picture->ambient;
    out->z_low = picture->z_low * from->voxel_size_m + shift;
    out->z_high = picture->z_high * from->voxel_size_m + shift;
    for (int i = 0; i < 3; i++) {
        double by = from->origin_m[i] - origin[i];

        out->camera.eye[i] = picture->camera.eye[i] * from->voxel_size_m + by;
        out->camera.target[i] = picture->camera.target[i] * from->voxel_size_m + by;
        if (fabs(out->camera.eye[i]) > VXD_VOLUME_MAX_DISTANCE_M) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "volumes",
                            "the camera is farther than %g m from the origin of \"%s\", "
                            "which is at %g, %g, %g",
                            VXD_VOLUME_MAX_DISTANCE_M, volume->named.terms.name,
                            origin[0], origin[1], origin[2]);
        }
    }
    return VXD_OK;
}

/* The engine's name of a field as the message has it. */
static enum vxd_status rename_field(const struct vxd_render_job *job,
                                    enum vxd_status status, struct vxd_err *err)
{
    if (status == VXD_INVALID_ARGUMENT) {
        (void)snprintf(err->field, sizeof err->field, "%s",
                       job->picture.camera.kind == VXD_RENDER_LIDAR ? "elevations_deg"
                                                                    : "volumes");
    } else if (status == VXD_RESOURCE_EXHAUSTED &&
               strcmp(err->field, "depth_max_m") == 0) {
        (void)snprintf(err->field, sizeof err->field, "width");
    }
    return status;
}

static enum vxd_status open_volume(struct vxd_request *request, struct vxd_queue *queue,
                                   struct vxd_err *err)
{
    struct vxd_render_job *job = request->state;
    struct vxd_names *names = request->server->volumes;
    struct vxd_named_volume *volume = job->volumes[job->n_composed];
    struct vxd_volume_sight *view = &job->view;
    enum vxd_status status;

    VXD_TRY(vxd_named_check_visible(&volume->named, err));
    if (vxd_named_is_waiting(names, &volume->named)) {
        vxd_volume_conclude(request, &job->read, job->n_volumes == 1 ? volume : NULL,
                            VXD_NAMED_READ);
    }
    *view = (struct vxd_volume_sight){
        .casting = {.volume = volume,
                    .args = {.weight_threshold = input_of(request)->min_weight,
                             .passes_backs = true}}};
    VXD_TRY(move_picture(job, volume, &view->picture, err));
    VXD_TRY(vxd_volume_find_box(queue, view, err));
    status = vxd_volume_aim(request, view, 0, err);
    VXD_TRY(rename_field(job, status, err));
    VXD_TRY(vxd_render_plan_create(queue, &view->picture, &job->light, err));
    status = vxd_volume_plan_casting(request, queue, &view->casting, err);
    VXD_TRY(rename_field(job, status, err));
    VXD_TRY(vxd_volume_reserve_seen(request, &job->base.query.columns, queue, view, err));
    job->n_rows = 0;
out:
    return status;
}

enum vxd_status vxd_render_cast_volume(struct vxd_request *request,
                                       struct vxd_queue *queue, struct vxd_err *err)
{
    struct vxd_render_job *job = request->state;
    bool is_done;
    enum vxd_status status = VXD_OK;

    if (job->light == NULL) {
        VXD_TRY(open_volume(request, queue, err));
    }
    VXD_TRY(vxd_volume_cast_rows(queue, &job->view.casting, &is_done, err));
    if (is_done) {
        VXD_TRY(vxd_columns_fetch(&job->base.query.columns, queue, err));
        job->step = VXD_RENDER_COMPOSE;
        /* A reply that waits for the journal is handed over by the write lane. */
        request->lane = request->commit == NULL ? VXD_LANE_READ : VXD_LANE_WRITE;
    }
    request->more = true;
out:
    return status;
}

/* Forgets the volume that was cast. */
static void close_volume(struct vxd_render_job *job, struct vxd_queue *queue)
{
    vxd_render_plan_destroy(queue, job->light);
    job->light = NULL;
    vxd_columns_free(&job->base.query.columns, queue);
}

bool vxd_render_compose_volume(struct vxd_request *request, struct vxd_queue *queue)
{
    struct vxd_render_job *job = request->state;
    const struct vxd_render_seen seen = vxd_volume_seen(&job->view);
    uint32_t left = job->picture.height - job->n_rows;
    uint32_t n = COMPOSE_PIXELS / job->picture.width;
    bool is_depth = job->picture.mode == VXD_RENDER_DEPTH;

    n = n > 0 ? n : 1;
    n = n < left ? n : left;
    vxd_render_compose_rows(
        job->light, &seen, job->n_rows, n, vxd_render_depths_of(&job->layer),
        is_depth ? NULL : (uint32_t *)(uintptr_t)job->layer.pixels.bytes);
    job->n_rows += n;
    request->more = true;
    if (n < left) {
        return false;
    }
    close_volume(job, queue);
    job->n_composed++;
    return true;
}

void vxd_render_release_volumes(struct vxd_request *request, struct vxd_queue *queue)
{
    struct vxd_render_job *job = request->state;

    close_volume(job, queue);
    vxd_volume_end_commit(queue, &job->read);
    for (size_t i = 0; i < job->n_volumes; i++) {
        vxd_named_drop(&job->volumes[i]->named, queue);
    }
    job->n_volumes = 0;
}
