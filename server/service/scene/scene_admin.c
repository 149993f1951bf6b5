// SPDX-License-Identifier: Apache-2.0
/* Scenes as a whole: create, drop, list, get. */
#include <inttypes.h>

#include "server/observe/log/log.h"
#include "server/instance/instance.h"
#include "server/registry/fields/registry_fields.h"
#include "server/registry/odometries/odometries.h"
#include "server/registry/registry.h"
#include "server/service/existing/existing.h"
#include "server/service/scene/scene.h"
#include "server/service/service.h"

/* --- create ----------------------------------------------------------------------------- */

struct create_job {
    struct vxd_scene_job base; /* first: request->state is both */
    struct vxd_scene_terms terms;
    struct vxd_scene_spec spec;
    Voxeld__V1__SceneCreateResponse *reply;
};

static void read_retention(const Voxeld__V1__SceneRetention *retention,
                           struct vxd_scene_terms *terms)
{
    uint32_t versions = retention != NULL ? retention->versions : 0;

    terms->keep_versions = versions > 0 ? versions : VXD_SCENE_KEEP_VERSIONS;
    terms->keep_seconds = retention != NULL ? retention->seconds : 0;
}

static enum vxd_status read_durability(const struct vxd_request *request,
                                       const Voxeld__V1__SceneDurability *durability,
                                       struct vxd_scene_terms *terms, struct vxd_err *err)
{
    if (durability == NULL) {
        return VXD_OK;
    }
    if (vxd_registry_get_journal(request->server->registry) == NULL) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, "durability",
                        "the server keeps nothing: it has no data_dir");
    }
    if (durability->journal_max_bytes > VXD_JOURNAL_MAX_BYTES) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "durability.journal_max_bytes",
                        "is %" PRIu64 ", at most 2^63 - 1 is possible",
                        durability->journal_max_bytes);
    }
    terms->durable = true;
    terms->fsync = (enum vxd_fsync)durability->fsync;
    terms->journal_max_bytes = durability->journal_max_bytes > 0
                                   ? durability->journal_max_bytes
                                   : VXD_SCENE_JOURNAL_BYTES;
    return VXD_OK;
}

enum vxd_status vxd_scene_create_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SceneCreateRequest *input =
        (const Voxeld__V1__SceneCreateRequest *)request->input;
    struct create_job *job = vxd_message_array(request->decoder, 1, sizeof *job, err);
    enum vxd_status status;

    if (job == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_noun_check_name(input->name, "name", err));
    VXD_TRY(vxd_scene_read_spec(request, input->spec, &job->spec, err));
    (void)snprintf(job->terms.name, sizeof job->terms.name, "%s", input->name);
    (void)snprintf(job->terms.owner, sizeof job->terms.owner, "%s",
                   request->principal.name);
    job->terms.max_bytes = input->max_bytes;
    read_retention(input->retention, &job->terms);
    VXD_TRY(read_durability(request, input->durability, &job->terms, err));
    request->state = job;
out:
    return status;
}

static void compare_specs(const struct vxd_scene_spec *has,
                          const struct vxd_scene_spec *wished,
                          struct vxd_differing *differing)
{
    static const char *const origin[3] = {"origin.x", "origin.y", "origin.z"};
    size_t n_before;

    vxd_differing_number(differing, "voxel_size_m", has->voxel_size_m,
                         wished->voxel_size_m);
    vxd_differing_number(differing, "depth", has->format.depth, wished->format.depth);
    vxd_differing_number(differing, "material_bits", has->format.material_bits,
                         wished->format.material_bits);
    vxd_differing_flag(differing, "track_free", has->format.tracks_free,
                       wished->format.tracks_free);
    n_before = differing->n;
    /* By default these follow from what was just compared. */
    for (int i = 0; i < 3 && n_before == 0; i++) {
        vxd_differing_number(differing, origin[i], has->origin_m[i], wished->origin_m[i]);
    }
    if (n_before == 0 && has->fusion != wished->fusion) {
        vxd_differing_text(differing, "fusion",
                           has->fusion == VXD_SCENE_LOG_ODDS ? "log-odds" : "last",
                           wished->fusion == VXD_SCENE_LOG_ODDS ? "log-odds" : "last");
    }
    vxd_differing_text(differing, "frame_id", has->frame_id, wished->frame_id);
    vxd_differing_number(differing, "palette's entries", (double)has->n_palette,
                         (double)wished->n_palette);
    /* Log-odds, or an entry of the palette. */
    vxd_differing_other(differing,
                        has->n_palette == wished->n_palette && has->n_palette > 0
                            ? "palette"
                            : "log_odds",
                        differing->n == 0 && !vxd_scene_spec_equal(has, wished));
}

/* errors  ALREADY_EXISTS  says which parameters of the scene are others */
static enum vxd_status check_equal(const struct vxd_scene *scene,
                                   const struct create_job *job, struct vxd_err *err)
{
    const struct vxd_scene_terms *has = &scene->terms;
    const struct vxd_scene_terms *wished = &job->terms;
    struct vxd_differing differing = {.n = 0};

    compare_specs(&scene->spec, &job->spec, &differing);
    vxd_differing_number(&differing, "max_bytes", (double)has->max_bytes,
                         (double)wished->max_bytes);
    vxd_differing_number(&differing, "retention.versions", has->keep_versions,
                         wished->keep_versions);
    vxd_differing_number(&differing, "retention.seconds", (double)has->keep_seconds,
                         (double)wished->keep_seconds);
    vxd_differing_flag(&differing, "durability", has->durable, wished->durable);
    if (has->durable && wished->durable) {
        vxd_differing_other(&differing, "durability.fsync", has->fsync != wished->fsync);
        vxd_differing_number(&differing, "journal_max_bytes",
                             (double)has->journal_max_bytes,
                             (double)wished->journal_max_bytes);
    }
    return vxd_differing_check(&differing, "scene", has->name, err);
}

enum vxd_status vxd_scene_create_submit(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err)
{
    struct create_job *job = request->state;
    struct vxd_scenes *scenes = request->server->scenes;
    struct vxd_scene *scene = vxd_scenes_find(scenes, job->terms.name);
    enum vxd_status status = VXD_OK;

    job->base.scene = scene;
    job->reply = vxd_message_new(request->decoder,
                                 &voxeld__v1__scene_create_response__descriptor, err);
    if (job->reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(
        vxd_scene_choose_fusion(scene != NULL ? &scene->spec : NULL, &job->spec, err));
    if (scene != NULL) {
        VXD_TRY(check_equal(scene, job, err));
    }
    job->reply->existed = scene != NULL;
    if (scene == NULL) {
        VXD_TRY(
            vxd_scene_new(scenes, queue, &job->terms, &job->spec, &job->base.made, err));
        scene = job->base.made;
        VXD_TRY(vxd_scene_reserve(request, "name", err));
        VXD_TRY(vxd_scene_prepare(request, queue, VXD_RECORD_CREATE, 0, err));
    }
    VXD_TRY(vxd_decoder_create(vxd_scene_info_bytes(scene, true), NULL, &job->base.arena,
                               err));
    status = vxd_scene_new_info(job->base.arena, scene, true, &job->reply->scene, err);
    request->output = &job->reply->base;
out:
    return status;
}

static void show_made(struct vxd_request *request, bool committed)
{
    const struct create_job *job = request->state;

    if (committed) {
        vxd_scenes_publish(request->server->scenes, job->base.made);
        vxd_log(VXD_LOG_INFO, "scene made", "scene", job->terms.name, "by",
                job->terms.owner);
    }
}

enum vxd_status vxd_scene_create_finish(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err)
{
    const struct create_job *job = request->state;

    (void)queue;
    (void)err;
    if (job->base.made != NULL) {
        vxd_scene_conclude(request, show_made);
    }
    return VXD_OK;
}

/* --- drop ------------------------------------------------------------------------------- */

enum vxd_status vxd_scene_drop_check(struct vxd_request *request, struct vxd_err *err)
{
    return vxd_noun_begin_check(
        request, sizeof(struct vxd_scene_job),
        ((const Voxeld__V1__SceneDropRequest *)request->input)->name, err);
}

enum vxd_status vxd_scene_drop_submit(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__SceneDropRequest *input =
        (const Voxeld__V1__SceneDropRequest *)request->input;
    Voxeld__V1__SceneDropResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__scene_drop_response__descriptor, err);
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    status = vxd_scene_open(request, input->name, NULL, err);
    reply->existed = status == VXD_OK;
    request->output = &reply->base;
    if (status == VXD_OK) {
        return vxd_scene_prepare(request, queue, VXD_RECORD_DROP, 0, err);
    }
    return status == VXD_NOT_FOUND && input->missing_ok ? VXD_OK : status;
}

static void show_dropped(struct vxd_request *request, bool committed)
{
    const struct vxd_scene_job *job = request->state;
    struct vxd_scenes *scenes = request->server->scenes;

    if (committed) {
        vxd_log(VXD_LOG_INFO, "scene dropped", "scene", job->scene->terms.name, "by",
                request->principal.name);
        vxd_scenes_remove(scenes, NULL, job->scene);
        vxd_fields_drop_scene(request->server->fields, NULL, job->scene->generation);
        vxd_odometries_drop_beside(request->server->odometries, VXD_ODOMETRY_OF_SCENE,
                                   job->scene->terms.name);
    }
}

enum vxd_status vxd_scene_drop_finish(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err)
{
    const struct vxd_scene_job *job = request->state;

    (void)err;
    if (job->scene != NULL) {
        vxd_scene_conclude(request, show_dropped);
        if (request->commit == NULL) {
            vxd_scene_close(request, queue);
        }
    }
    return VXD_OK;
}

/* --- list ------------------------------------------------------------------------------- */

enum vxd_status vxd_scene_list_check(struct vxd_request *request, struct vxd_err *err)
{
    struct vxd_scene_job *job = vxd_message_array(request->decoder, 1, sizeof *job, err);

    request->state = job;
    return job != NULL ? VXD_OK : VXD_RESOURCE_EXHAUSTED;
}

/* Drops the scenes that are held. */
static enum vxd_status new_list(struct vxd_scene_job *job, struct vxd_scene *const *held,
                                size_t n, Voxeld__V1__SceneListResponse *reply,
                                struct vxd_err *err)
{
    size_t n_bytes = 4096 + n * sizeof(void *);
    enum vxd_status status;

    for (size_t i = 0; i < n; i++) {
        n_bytes += vxd_scene_info_bytes(held[i], false);
    }
    VXD_TRY(vxd_decoder_create(n_bytes, NULL, &job->arena, err));
    reply->scenes = vxd_message_pointers(job->arena, n, err);
    if (reply->scenes == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < n; i++) {
        VXD_TRY(vxd_scene_new_info(job->arena, held[i], false, &reply->scenes[i], err));
        reply->n_scenes = i + 1;
    }
out:
    return status;
}

enum vxd_status vxd_scene_list_submit(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err)
{
    struct vxd_scenes *scenes = request->server->scenes;
    Voxeld__V1__SceneListResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__scene_list_response__descriptor, err);
    struct vxd_scenes_usage usage;
    struct vxd_scene **held;
    void *block;
    size_t n;
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    vxd_scenes_get_usage(scenes, &usage);
    status =
        vxd_scene_take_host(request, usage.n_scenes + 1, sizeof(void *), &block, err);
    if (status != VXD_OK) {
        return status;
    }
    held = block;
    n = vxd_scenes_list(scenes, held, usage.n_scenes + 1);
    status = new_list(request->state, held, n, reply, err);
    for (size_t i = 0; i < n; i++) {
        vxd_scene_drop(held[i], queue);
    }
    reply->n_bytes = usage.n_bytes;
    reply->limit_bytes = usage.limit_bytes;
    request->output = &reply->base;
    return status;
}

/* --- get -------------------------------------------------------------------------------- */

enum vxd_status vxd_scene_get_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SceneGetRequest *input =
        (const Voxeld__V1__SceneGetRequest *)request->input;
    enum vxd_status status =
        vxd_noun_begin_check(request, sizeof(struct vxd_scene_job), input->name, err);

    request->bulk = !input->uncounted; /* it walks the whole scene */
    return status == VXD_OK ? vxd_scene_check_at(input->at, "at", err) : status;
}

static Voxeld__V1__Vec3 *new_corner(struct vxd_scene_job *job, const int64_t voxel[3],
                                    struct vxd_err *err)
{
    const struct vxd_scene_spec *spec = &job->scene->spec;
    Voxeld__V1__Vec3 *corner =
        vxd_message_new(job->arena, &voxeld__v1__vec3__descriptor, err);

    if (corner != NULL) {
        corner->x = spec->origin_m[0] + (double)voxel[0] * spec->voxel_size_m;
        corner->y = spec->origin_m[1] + (double)voxel[1] * spec->voxel_size_m;
        corner->z = spec->origin_m[2] + (double)voxel[2] * spec->voxel_size_m;
    }
    return corner;
}

static enum vxd_status set_bounds(struct vxd_request *request, struct vxd_queue *queue,
                                  Voxeld__V1__SceneInfo *info, struct vxd_err *err)
{
    struct vxd_scene_job *job = request->state;
    int64_t low[3];
    int64_t high[3];
    enum vxd_status status;

    if (info->n_occupied == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_scene_find_bounds(request, queue, low, high, err));
    info->occupied_low = new_corner(job, low, err);
    info->occupied_high = new_corner(job, high, err);
    status = info->occupied_low != NULL && info->occupied_high != NULL
                 ? VXD_OK
                 : VXD_RESOURCE_EXHAUSTED;
out:
    return status;
}

enum vxd_status vxd_scene_get_submit(struct vxd_request *request, struct vxd_queue *queue,
                                     struct vxd_err *err)
{
    const Voxeld__V1__SceneGetRequest *input =
        (const Voxeld__V1__SceneGetRequest *)request->input;
    struct vxd_scene_job *job = request->state;
    Voxeld__V1__SceneGetResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__scene_get_response__descriptor, err);
    struct vxd_svdag_summary summary = {0};
    struct vxd_svdag_summary pinned = {0};
    Voxeld__V1__SceneInfo *info;
    char digest[33];
    enum vxd_status status;

    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_scene_open(request, input->name, input->at, err));
    if (!input->uncounted) {
        VXD_TRY(
            vxd_svdag_verify(queue, job->state.svdag, job->state.root, &summary, err));
    }
    if (!input->uncounted && job->state.pins != VXD_SVDAG_EMPTY) {
        VXD_TRY(vxd_svdag_verify(queue, job->state.svdag, job->state.pins, &pinned, err));
    }
    VXD_TRY(vxd_decoder_create(vxd_scene_info_bytes(job->scene, true), NULL, &job->arena,
                               err));
    VXD_TRY(vxd_scene_new_info(job->arena, job->scene, true, &info, err));
    (void)snprintf(digest, sizeof digest, "%016" PRIx64 "%016" PRIx64, summary.digest[0],
                   summary.digest[1]);
    info->digest =
        vxd_message_text(job->arena, digest, input->uncounted ? 0 : strlen(digest), err);
    if (info->digest == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    /* The numbers are those of the root that was walked, whatever came since. */
    info->version = job->state.version;
    info->changed_ns = job->state.changed_unix_ns;
    info->n_occupied = summary.n_occupied;
    info->n_free = summary.n_free;
    info->n_pinned = pinned.n_occupied;
    info->live_node_bytes = summary.node_bytes;
    VXD_TRY(set_bounds(request, queue, info, err));
    reply->scene = info;
    request->output = &reply->base;
out:
    return status;
}
