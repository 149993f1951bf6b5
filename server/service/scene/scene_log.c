// SPDX-License-Identifier: Apache-2.0
/* The history of scenes: log, snapshots, branches. */
#include <inttypes.h>

#include "proto/base/clock.h"
#include "proto/base/name.h"
#include "server/observe/log/log.h"
#include "server/instance/instance.h"
#include "server/service/service.h"
#include "server/service/scene/scene.h"
#include "voxeld/v1/scene_version.pb-c.h"

enum {
    DEFAULT_ENTRIES = 100, /* of a log */
    /* Bytes of a message and its pointer in an arena, whose blocks are aligned. */
    ENTRY_BYTES =
        sizeof(Voxeld__V1__SceneVersion) + sizeof(Voxeld__V1__SceneSnapshot) + 128
};

/* --- log -------------------------------------------------------------------------------- */

enum vxd_status vxd_scene_log_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SceneLogRequest *input =
        (const Voxeld__V1__SceneLogRequest *)request->input;

    request->state =
        vxd_message_array(request->decoder, 1, sizeof(struct vxd_scene_job), err);
    if (request->state == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    return vxd_noun_check_name(input->name, "name", err);
}

/* Texts are the snapshot's own. */
static void show_snapshot(struct vxd_scene_snapshot *snapshot,
                          Voxeld__V1__SceneSnapshot *message)
{
    message->name = snapshot->name;
    message->by = snapshot->by;
    message->version = snapshot->version.number;
    message->version_ns = snapshot->version.unix_ns;
    message->taken_ns = snapshot->taken_unix_ns;
}

void vxd_scene_show_version(struct vxd_scene_version *version,
                            Voxeld__V1__SceneVersion *message)
{
    message->by = version->by;
    message->client_id = version->client_id;
    message->version = version->number;
    message->kind = (Voxeld__V1__SceneVersionKind)version->kind;
    message->of_version = version->of_version;
    message->undone_by = version->undone_by;
    message->stamp_ns = version->unix_ns;
    message->n_added = version->n_added;
    message->n_removed = version->n_removed;
    message->n_changed = version->n_changed;
    message->n_freed = version->n_freed;
}

static enum vxd_status fill_log(struct vxd_scene_job *job,
                                struct vxd_scene_version *versions, size_t n_versions,
                                struct vxd_scene_snapshot *snapshots, size_t n_snapshots,
                                Voxeld__V1__SceneLogResponse *reply, struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_decoder_create(4096 + (n_versions + n_snapshots) * ENTRY_BYTES, NULL,
                               &job->arena, err));
    reply->versions = vxd_message_pointers(job->arena, n_versions, err);
    reply->snapshots = vxd_message_pointers(job->arena, n_snapshots, err);
    if (reply->versions == NULL || reply->snapshots == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < n_versions; i++) {
        reply->versions[i] =
            vxd_message_new(job->arena, &voxeld__v1__scene_version__descriptor, err);
        if (reply->versions[i] == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        vxd_scene_show_version(&versions[i], reply->versions[i]);
        reply->n_versions = i + 1;
    }
    for (size_t i = 0; i < n_snapshots; i++) {
        reply->snapshots[i] =
            vxd_message_new(job->arena, &voxeld__v1__scene_snapshot__descriptor, err);
        if (reply->snapshots[i] == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        show_snapshot(&snapshots[i], reply->snapshots[i]);
        reply->n_snapshots = i + 1;
    }
out:
    return status;
}

enum vxd_status vxd_scene_log_submit(struct vxd_request *request, struct vxd_queue *queue,
                                     struct vxd_err *err)
{
    const Voxeld__V1__SceneLogRequest *input =
        (const Voxeld__V1__SceneLogRequest *)request->input;
    struct vxd_scene_job *job = request->state;
    Voxeld__V1__SceneLogResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__scene_log_response__descriptor, err);
    size_t n_most = input->limit > 0 ? input->limit : DEFAULT_ENTRIES;
    struct vxd_scene_log_summary summary;
    void *versions;
    void *snapshots;
    size_t n_versions;
    size_t n_snapshots;
    enum vxd_status status;

    (void)queue;
    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_scene_open(request, input->name, NULL, err));
    vxd_scene_get_log_summary(job->scene, &summary);
    n_most = n_most < summary.n_versions ? n_most : summary.n_versions;
    VXD_TRY(vxd_scene_take_host(request, n_most, sizeof(struct vxd_scene_version),
                                &versions, err));
    VXD_TRY(vxd_scene_take_host(request, summary.n_snapshots,
                                sizeof(struct vxd_scene_snapshot), &snapshots, err));
    n_versions = vxd_scene_copy_versions(job->scene, input->below, versions, n_most);
    n_snapshots = vxd_scene_copy_snapshots(job->scene, snapshots, summary.n_snapshots);
    VXD_TRY(fill_log(job, versions, n_versions, snapshots, n_snapshots, reply, err));
    reply->version = summary.version;
    reply->generation = job->scene->generation;
    reply->oldest = summary.oldest;
    reply->n_sharing = (uint32_t)summary.n_sharing;
    request->output = &reply->base;
out:
    return status;
}

/* --- snapshot --------------------------------------------------------------------------- */

enum vxd_status vxd_scene_snapshot_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SceneSnapshotRequest *input =
        (const Voxeld__V1__SceneSnapshotRequest *)request->input;
    enum vxd_status status;

    VXD_TRY(
        vxd_noun_begin_check(request, sizeof(struct vxd_scene_job), input->name, err));
    VXD_TRY(vxd_noun_check_name(input->snapshot, "snapshot", err));
    VXD_TRY(vxd_scene_check_at(input->at, "at", err));
    if (input->drop && (input->at != NULL || input->replace)) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "drop",
                         "goes without `at` and `replace`"));
    }
out:
    return status;
}

enum vxd_status vxd_scene_snapshot_submit(struct vxd_request *request,
                                          struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__SceneSnapshotRequest *input =
        (const Voxeld__V1__SceneSnapshotRequest *)request->input;
    struct vxd_scene_job *job = request->state;
    Voxeld__V1__SceneSnapshotResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__scene_snapshot_response__descriptor, err);
    struct vxd_scene_snapshot *snapshot;
    void *block;
    enum vxd_status status;

    (void)queue;
    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    /* Everything that the reply needs comes first, since what is done afterwards cannot
     * fail. */
    reply->snapshot =
        vxd_message_new(request->decoder, &voxeld__v1__scene_snapshot__descriptor, err);
    if (reply->snapshot == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_scene_open(request, input->name, input->at, err));
    VXD_TRY(vxd_scene_take_host(request, 1, sizeof *snapshot, &block, err));
    snapshot = block;
    *snapshot = (struct vxd_scene_snapshot){.taken_unix_ns = vxd_clock_unix_ns()};
    (void)snprintf(snapshot->name, sizeof snapshot->name, "%s", input->snapshot);
    (void)snprintf(snapshot->by, sizeof snapshot->by, "%s", request->principal.name);
    VXD_TRY(vxd_scene_check_snapshot(job->scene, &job->state, input->drop, input->replace,
                                     snapshot, err));
    show_snapshot(snapshot, reply->snapshot);
    request->output = &reply->base;
    if (vxd_scene_is_durable(job->scene)) {
        VXD_TRY(
            vxd_scene_commit_snapshot(job->scene, request, snapshot, input->drop, err));
    }
    vxd_scene_set_snapshot(job->scene, snapshot, input->drop);
out:
    return status;
}

/* --- branch ----------------------------------------------------------------------------- */

struct branch_job {
    struct vxd_scene_job base; /* first: request->state is both */
    Voxeld__V1__SceneBranchResponse *reply;
};

enum vxd_status vxd_scene_branch_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__SceneBranchRequest *input =
        (const Voxeld__V1__SceneBranchRequest *)request->input;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof(struct branch_job), input->name, err));
    VXD_TRY(vxd_noun_check_name(input->new_name, "new_name", err));
    VXD_TRY(vxd_scene_check_at(input->at, "at", err));
out:
    return status;
}

enum vxd_status vxd_scene_branch_submit(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__SceneBranchRequest *input =
        (const Voxeld__V1__SceneBranchRequest *)request->input;
    struct branch_job *job = request->state;
    struct vxd_scenes *scenes = request->server->scenes;
    struct vxd_scene *taken;
    struct vxd_scene_terms terms;
    enum vxd_status status;

    job->reply = vxd_message_new(request->decoder,
                                 &voxeld__v1__scene_branch_response__descriptor, err);
    if (job->reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_scene_open(request, input->name, input->at, err));
    taken = vxd_scenes_find(scenes, input->new_name);
    if (taken != NULL) {
        vxd_scene_drop(taken, queue);
        VXD_TRY(vxd_fail(err, VXD_ALREADY_EXISTS, "new_name",
                         "there is a scene \"%s\" already", input->new_name));
    }
    terms = job->base.scene->terms;
    (void)snprintf(terms.name, sizeof terms.name, "%s", input->new_name);
    (void)snprintf(terms.owner, sizeof terms.owner, "%s", request->principal.name);
    VXD_TRY(vxd_scene_branch(job->base.scene, &job->base.state, &terms, queue,
                             &job->base.made, err));
    VXD_TRY(vxd_scene_reserve(request, "new_name", err));
    VXD_TRY(vxd_scene_prepare(request, queue, VXD_RECORD_BRANCH, job->base.state.version,
                              err));
    VXD_TRY(vxd_decoder_create(vxd_scene_info_bytes(job->base.made, true), NULL,
                               &job->base.arena, err));
    VXD_TRY(vxd_scene_new_info(job->base.arena, job->base.made, true, &job->reply->scene,
                               err));
    job->reply->of_version = job->base.state.version;
    request->output = &job->reply->base;
out:
    return status;
}

static void show_branch(struct vxd_request *request, bool committed)
{
    const struct branch_job *job = request->state;

    if (committed) {
        vxd_scenes_publish(request->server->scenes, job->base.made);
        vxd_log(VXD_LOG_INFO, "scene branched", "scene", job->base.made->terms.name, "of",
                job->base.scene->terms.name);
    }
}

enum vxd_status vxd_scene_branch_finish(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err)
{
    (void)queue;
    (void)err;
    vxd_scene_conclude(request, show_branch);
    return VXD_OK;
}
