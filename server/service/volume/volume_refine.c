// SPDX-License-Identifier: Apache-2.0
/* Refines a volume by the shading of keyframes, in stages between which other requests run. Nothing
 * is changed before the last stage: a request that fails, expires or is cancelled leaves the volume as
 * it was, and so does the end of the server. */
#include "gpu/refine/refine.h"
#include "server/instance/instance.h"
#include "server/service/service.h"
#include "server/service/volume/volume_service.h"

/* Work of a stage, nanoseconds of a CPU thread: some 20 ms on the CPU, and a few on a GPU. */
#define STAGE_NS_CPU 2e7
#define STAGE_NS_CUDA 1e9

enum {
    IMAGE_BYTES_A_PIXEL = 14 /* upload, grey and colour */
};

struct refine_job {
    struct vxd_volume_job base; /* first: request->state is both */
    struct vxd_volume_refining refining;
    struct vxd_image *images; /* n_keyframes, decoded; freed by forget */
    struct vxd_refine_keyframe *keyframes;
    size_t n_keyframes;
    struct vxd_refine_options options;
    struct vxd_named_terms terms; /* of the new volume */
    uint64_t version;
    const struct vxd_volume
        *engine; /* the volume's, which a failure of the disk replaces */
    Voxeld__V1__VolumeRefineResponse *reply;
};

/* --- check ------------------------------------------------------------------------------ */

static enum vxd_status read_options(const Voxeld__V1__VolumeRefineRequest *input,
                                    struct vxd_refine_options *out, struct vxd_err *err)
{
    vxd_refine_options_init(out);
    out->smooth = input->smooth > 0 ? input->smooth : out->smooth;
    out->init = input->init > 0 ? input->init : out->init;
    out->chroma = input->chroma > 0 ? input->chroma : out->chroma;
    out->light = input->light > 0 ? input->light : out->light;
    if (input->upsample > 0 && input->into[0] == '\0') {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "into",
                        "is empty, but halved voxels need a new volume");
    }
    out->band_m = input->band_m;
    out->min_weight = input->min_weight;
    out->subvolume_m = input->subvolume_m;
    out->depth_max_m = input->depth_max_m;
    out->solver = (enum vxd_refine_solver)input->solver;
    out->learning_rate =
        input->learning_rate > 0 ? input->learning_rate : out->learning_rate;
    out->rounds = input->rounds > 0 ? (int)input->rounds : out->rounds;
    out->iterations = input->iterations > 0 ? (int)input->iterations : out->iterations;
    out->cg_iterations =
        input->cg_iterations > 0 ? (int)input->cg_iterations : out->cg_iterations;
    out->upsample = (int)input->upsample;
    out->keep_distances = input->keep_distances;
    out->keep_albedo = input->keep_albedo;
    out->keep_poses = input->keep_poses;
    out->refine_intrinsics = input->refine_intrinsics;
    out->max_unknowns =
        input->max_unknowns < SIZE_MAX ? (size_t)input->max_unknowns : SIZE_MAX;
    out->makes_volume = input->into[0] != '\0';
    if (out->rounds * out->iterations > VXD_REFINE_MAX_STEPS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "iterations",
                        "are %d with those of all rounds, must be at most %d",
                        out->rounds * out->iterations, VXD_REFINE_MAX_STEPS);
    }
    return VXD_OK;
}

static enum vxd_status read_keyframes(struct vxd_request *request,
                                      const Voxeld__V1__VolumeRefineRequest *input,
                                      struct vxd_err *err)
{
    struct refine_job *job = request->state;
    size_t n = input->n_keyframes;
    enum vxd_status status = VXD_OK;

    if (n < 1 || n > VXD_REFINE_MAX_KEYFRAMES) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "keyframes",
                        "there are %zu, must be 1 to %d", n, VXD_REFINE_MAX_KEYFRAMES);
    }
    job->images = vxd_message_array(request->decoder, n, sizeof *job->images, err);
    job->keyframes = vxd_message_array(request->decoder, n, sizeof *job->keyframes, err);
    if (job->images == NULL || job->keyframes == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    job->n_keyframes = n;
    for (size_t i = 0; i < n; i++) {
        struct vxd_refine_keyframe *keyframe = &job->keyframes[i];

        VXD_TRY(vxd_volume_read_keyframe(request, input->keyframes[i], i, &job->images[i],
                                         &keyframe->camera, &keyframe->T_map_camera,
                                         &keyframe->colour, err));
        request->cost_bytes += (size_t)keyframe->camera.width *
                               (size_t)keyframe->camera.height * IMAGE_BYTES_A_PIXEL;
    }
out:
    return status;
}

enum vxd_status vxd_volume_refine_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__VolumeRefineRequest *input =
        (const Voxeld__V1__VolumeRefineRequest *)request->input;
    const struct vxd_noun_durability durability = {.one = "volume",
                                                   .durable = input->durable,
                                                   .fsync = (int)input->fsync,
                                                   .journal_max_bytes =
                                                       input->journal_max_bytes};
    struct refine_job *job;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof *job, input->name, err));
    job = request->state;
    if (input->into[0] != '\0') {
        VXD_TRY(vxd_noun_check_name(input->into, "into", err));
    }
    if (input->durable && input->into[0] == '\0') {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "durable",
                         "is of a new volume, and `into` is empty"));
    }
    (void)snprintf(job->terms.name, sizeof job->terms.name, "%s", input->into);
    (void)snprintf(job->terms.owner, sizeof job->terms.owner, "%s",
                   request->principal.name);
    VXD_TRY(vxd_noun_read_durability(request, &durability, &job->terms, err));
    VXD_TRY(read_options(input, &job->options, err));
    VXD_TRY(read_keyframes(request, input, err));
out:
    return status;
}

void vxd_volume_refine_forget(struct vxd_request *request)
{
    struct refine_job *job = request->state;

    for (size_t i = 0; job != NULL && i < job->n_keyframes; i++) {
        vxd_image_clear(&job->images[i]);
    }
}

/* --- on the lane ------------------------------------------------------------------------ */

static enum vxd_status check_free(struct vxd_names *volumes, const char *name,
                                  struct vxd_err *err)
{
    return name[0] == '\0' || vxd_volumes_peek(volumes, name) == NULL
               ? VXD_OK
               : vxd_fail(err, VXD_ALREADY_EXISTS, "into",
                          "there is a volume \"%s\" already", name);
}

/* Finds the volume, which is not listed for a change before there is one. */
static enum vxd_status begin(struct vxd_request *request, struct vxd_queue *queue,
                             struct vxd_err *err)
{
    const Voxeld__V1__VolumeRefineRequest *input =
        (const Voxeld__V1__VolumeRefineRequest *)request->input;
    struct refine_job *job = request->state;
    struct vxd_names *volumes = request->server->volumes;
    struct vxd_named_volume *volume = vxd_volumes_find(volumes, input->name);
    struct vxd_volume_info info;
    enum vxd_status status;

    if (volume == NULL) {
        return vxd_fail(err, VXD_NOT_FOUND, "name", "there is no volume \"%s\"",
                        input->name);
    }
    vxd_named_hold(&volume->named);
    job->base.volume = volume;
    VXD_TRY(vxd_named_check_visible(&volume->named, err));
    VXD_TRY(check_free(volumes, job->terms.name, err));
    if (volume->refining != NULL) {
        VXD_TRY(vxd_fail(err, VXD_FAILED_PRECONDITION, "name",
                         "the volume \"%s\" is being refined already", input->name));
    }
    if (!job->options.makes_volume && !volume->spec.has_albedo) {
        VXD_TRY(vxd_fail(err, VXD_FAILED_PRECONDITION, "into",
                         "is empty, but the volume \"%s\" keeps no albedo: name a new "
                         "volume, or create one with albedo",
                         input->name));
    }
    vxd_volume_get_info(volume->state.volume, &info);
    if (job->options.makes_volume) {
        job->terms.max_bytes = volume->named.terms.max_bytes;
        /* Of a surface four times as many blocks are there with half of the edge. */
        VXD_TRY(vxd_names_check_copy(
            volumes, &job->terms, (uint64_t)info.n_bytes << (2 * job->options.upsample),
            err));
    }
    job->version = info.version;
    job->engine = volume->state.volume;
    VXD_TRY(vxd_refine_create(queue, volume->state.volume, job->keyframes,
                              job->n_keyframes, &job->options, &job->refining.refine,
                              err));
    volume->refining = &job->refining;
    request->bulk = true;
    request->is_preparing = true;
    atomic_store(&request->ends_when_over, true);
    request->more = true;
out:
    return status;
}

/* Whether the volume is still the one that is refined. */
static enum vxd_status check_unchanged(const struct vxd_request *request,
                                       struct vxd_err *err)
{
    struct refine_job *job = request->state;
    struct vxd_named_volume *volume = job->base.volume;
    struct vxd_volume_info info;

    vxd_volume_get_info(volume->state.volume, &info);
    if (job->refining.is_cancelled) {
        return vxd_fail(err, VXD_ABORTED, NULL, "the refinement was cancelled");
    }
    if (info.version != job->version || volume->state.volume != job->engine ||
        vxd_volumes_peek(request->server->volumes, volume->named.terms.name) != volume) {
        return vxd_fail(err, VXD_ABORTED, NULL,
                        "the volume \"%s\" was changed while it was refined",
                        volume->named.terms.name);
    }
    return VXD_OK;
}

/* The new volume gets its name. */
static enum vxd_status keep_made(struct vxd_request *request, struct vxd_queue *queue,
                                 struct vxd_err *err)
{
    struct refine_job *job = request->state;
    struct vxd_names *volumes = request->server->volumes;
    struct vxd_volume *made = vxd_refine_take_volume(job->refining.refine);
    struct vxd_volume_info info;
    enum vxd_status status;

    vxd_volume_get_info(made, &info);
    status = check_free(volumes, job->terms.name, err);
    if (status == VXD_OK) {
        status = vxd_names_check_copy(volumes, &job->terms, info.n_bytes, err);
    }
    if (status != VXD_OK) {
        vxd_volume_destroy(queue, made);
        return status;
    }
    info.spec.max_bytes = 0;
    info.spec.capacity = 0;
    VXD_TRY(vxd_named_volume_new(volumes, queue, &job->terms, &info.spec, made,
                                 &job->base.made, err));
    job->base.made->state.n_images = job->base.volume->state.n_images;
    VXD_TRY(vxd_named_enter_journal(&job->base.made->named, err));
out:
    return status;
}

static enum vxd_status show_losses(struct vxd_request *request, struct vxd_err *err)
{
    struct refine_job *job = request->state;
    const struct vxd_refine_loss *losses = vxd_refine_losses(job->refining.refine);
    Voxeld__V1__VolumeRefineResponse *reply = job->reply;
    struct vxd_refine_progress progress;

    vxd_refine_get_progress(job->refining.refine, &progress);
    reply->n_voxels = progress.n_voxels;
    reply->n_subvolumes = progress.n_subvolumes;
    reply->losses = vxd_message_array(request->decoder, progress.n_losses,
                                      sizeof(Voxeld__V1__VolumeRefineLoss *), err);
    if (reply->losses == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < progress.n_losses; i++) {
        Voxeld__V1__VolumeRefineLoss *loss = vxd_message_new(
            request->decoder, &voxeld__v1__volume_refine_loss__descriptor, err);

        if (loss == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        loss->level = (uint32_t)losses[i].level;
        loss->round = (uint32_t)losses[i].round;
        loss->data = losses[i].data;
        loss->smooth = losses[i].smooth;
        loss->init = losses[i].init;
        loss->chroma = losses[i].chroma;
        loss->light = losses[i].light;
        loss->rejected = losses[i].rejected;
        reply->losses[i] = loss;
    }
    reply->n_losses = progress.n_losses;
    return VXD_OK;
}

static enum vxd_status show_keyframes(struct vxd_request *request, struct vxd_err *err)
{
    struct refine_job *job = request->state;
    Voxeld__V1__VolumeRefineResponse *reply = job->reply;

    reply->keyframes =
        vxd_message_array(request->decoder, job->n_keyframes,
                          sizeof(Voxeld__V1__VolumeRefinedKeyframe *), err);
    if (reply->keyframes == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < job->n_keyframes; i++) {
        Voxeld__V1__VolumeRefinedKeyframe *out = vxd_message_new(
            request->decoder, &voxeld__v1__volume_refined_keyframe__descriptor, err);
        struct vxd_volume_camera camera;
        struct vxd_volume_pose pose;

        if (out == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        vxd_refine_get_keyframe(job->refining.refine, i, &camera, &pose);
        out->camera = vxd_message_new(request->decoder,
                                      &voxeld__v1__volume_camera__descriptor, err);
        out->t_map_camera = vxd_volume_new_pose(request->decoder, &pose, err);
        if (out->camera == NULL || out->t_map_camera == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        vxd_volume_show_camera(&camera, out->camera);
        reply->keyframes[i] = out;
    }
    reply->n_keyframes = job->n_keyframes;
    return VXD_OK;
}

/* The last stage: the result takes its place, and the reply is made. What may fail comes before the
 * volume changes. */
static enum vxd_status end(struct vxd_request *request, struct vxd_queue *queue,
                           struct vxd_err *err)
{
    struct refine_job *job = request->state;
    enum vxd_status status;

    job->reply = vxd_message_new(request->decoder,
                                 &voxeld__v1__volume_refine_response__descriptor, err);
    if (job->reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(show_losses(request, err));
    VXD_TRY(show_keyframes(request, err));
    VXD_TRY(vxd_volume_enlist(request, err));
    if (job->options.makes_volume) {
        VXD_TRY(keep_made(request, queue, err));
    } else {
        VXD_TRY(vxd_refine_apply(queue, job->refining.refine,
                                 job->base.volume->state.volume, err));
    }
    VXD_TRY(vxd_volume_new_info(
        request->decoder, job->options.makes_volume ? job->base.made : job->base.volume,
        &job->reply->volume, err));
    request->output = &job->reply->base;
out:
    return status;
}

enum vxd_status vxd_volume_refine_submit(struct vxd_request *request,
                                         struct vxd_queue *queue, struct vxd_err *err)
{
    struct refine_job *job = request->state;
    bool is_cuda = vxd_context_backend(vxd_queue_context(queue)) == VXD_BACKEND_CUDA;
    bool is_done = false;
    enum vxd_status status;

    if (job->refining.refine == NULL) {
        return begin(request, queue, err);
    }
    VXD_TRY(check_unchanged(request, err));
    VXD_TRY(vxd_refine_step(queue, job->refining.refine, job->base.volume->state.volume,
                            is_cuda ? STAGE_NS_CUDA : STAGE_NS_CPU, &is_done, err));
    request->more = !is_done;
    request->is_preparing = !is_done;
    if (is_done) {
        atomic_store(&request->ends_when_over, false);
        VXD_TRY(end(request, queue, err));
    }
out:
    return status;
}

enum vxd_status vxd_volume_refine_finish(struct vxd_request *request,
                                         struct vxd_queue *queue, struct vxd_err *err)
{
    struct refine_job *job = request->state;
    struct vxd_volume_commit *commit = &job->base.commit;

    (void)queue;
    (void)err;
    job->reply->engine_ms = (double)request->engine_ns / 1e6;
    if (!job->options.makes_volume) {
        return VXD_OK;
    }
    request->commit = NULL; /* the volume itself is not changed */
    commit->is_change = false;
    vxd_named_publish(&job->base.made->named);
    if (job->terms.durable) {
        commit->entry.copied_from = job->base.volume;
        vxd_volume_conclude(request, commit, job->base.made, VXD_NAMED_MADE);
    } else {
        commit->copy = job->base.made;
        vxd_volume_conclude(request, commit, job->base.volume, VXD_NAMED_READ);
    }
    return VXD_OK;
}

void vxd_volume_refine_release(struct vxd_request *request, struct vxd_queue *queue)
{
    struct refine_job *job = request->state;

    if (job->base.volume != NULL && job->base.volume->refining == &job->refining) {
        job->base.volume->refining = NULL;
    }
    vxd_refine_destroy(queue, job->refining.refine);
    job->refining.refine = NULL;
    vxd_volume_release(request, queue);
}

/* --- how far it is, and its end ----------------------------------------------------------- */

enum vxd_status vxd_volume_refine_status_check(struct vxd_request *request,
                                               struct vxd_err *err)
{
    return vxd_noun_begin_check(
        request, sizeof(struct vxd_volume_job),
        ((const Voxeld__V1__VolumeRefineStatusRequest *)request->input)->name, err);
}

enum vxd_status vxd_volume_refine_status_submit(struct vxd_request *request,
                                                struct vxd_queue *queue,
                                                struct vxd_err *err)
{
    const Voxeld__V1__VolumeRefineStatusRequest *input =
        (const Voxeld__V1__VolumeRefineStatusRequest *)request->input;
    Voxeld__V1__VolumeRefineStatusResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__volume_refine_status_response__descriptor, err);
    const struct vxd_volume_refining *refining;
    struct vxd_refine_progress progress;
    enum vxd_status status;

    (void)queue;
    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_volume_open(request, input->name, err));
    refining = ((struct vxd_volume_job *)request->state)->volume->refining;
    if (refining != NULL) {
        vxd_refine_get_progress(refining->refine, &progress);
        reply->running = true;
        reply->fraction = progress.fraction;
        reply->level = (uint32_t)progress.level;
        reply->n_voxels = progress.n_voxels;
        reply->n_losses = progress.n_losses;
        if (progress.n_losses > 0) {
            const struct vxd_refine_loss *loss =
                vxd_refine_losses(refining->refine) + progress.n_losses - 1;

            reply->energy = loss->data + loss->smooth + loss->init + loss->chroma;
        }
    }
    request->output = &reply->base;
out:
    return status;
}

enum vxd_status vxd_volume_refine_cancel_check(struct vxd_request *request,
                                               struct vxd_err *err)
{
    return vxd_noun_begin_check(
        request, sizeof(struct vxd_volume_job),
        ((const Voxeld__V1__VolumeRefineCancelRequest *)request->input)->name, err);
}

enum vxd_status vxd_volume_refine_cancel_submit(struct vxd_request *request,
                                                struct vxd_queue *queue,
                                                struct vxd_err *err)
{
    const Voxeld__V1__VolumeRefineCancelRequest *input =
        (const Voxeld__V1__VolumeRefineCancelRequest *)request->input;
    Voxeld__V1__VolumeRefineCancelResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__volume_refine_cancel_response__descriptor, err);
    struct vxd_volume_refining *refining;
    enum vxd_status status;

    (void)queue;
    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_volume_open(request, input->name, err));
    refining = ((struct vxd_volume_job *)request->state)->volume->refining;
    reply->was_running = refining != NULL;
    if (refining != NULL) {
        refining->is_cancelled = true;
    }
    request->output = &reply->base;
out:
    return status;
}
