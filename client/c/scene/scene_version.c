// SPDX-License-Identifier: Apache-2.0
/* Calls on versions of scenes: log, undo, redo, snapshots, branches, diffs, verify, collect. */
#include <string.h>

#include "client/c/scene/scene_call.h"

_Static_assert(
    (int)VOXELD_VERSION_MADE == (int)VOXELD__V1__SCENE_VERSION_KIND__SCENE_MADE &&
        (int)VOXELD_VERSION_EDITED == (int)VOXELD__V1__SCENE_VERSION_KIND__SCENE_EDITED &&
        (int)VOXELD_VERSION_INTEGRATED ==
            (int)VOXELD__V1__SCENE_VERSION_KIND__SCENE_INTEGRATED &&
        (int)VOXELD_VERSION_UNDONE == (int)VOXELD__V1__SCENE_VERSION_KIND__SCENE_UNDONE &&
        (int)VOXELD_VERSION_REDONE == (int)VOXELD__V1__SCENE_VERSION_KIND__SCENE_REDONE,
    "one set of numbers");

/* Makes the wire's version; NULL for the newest. */
static Voxeld__V1__SceneAt *build_at(const struct voxeld_scene_at *in,
                                     Voxeld__V1__SceneAt *out)
{
    voxeld__v1__scene_at__init(out);
    out->version = in->version;
    out->snapshot = vxd_text_or_empty(in->snapshot);
    return out->version > 0 || out->snapshot[0] != '\0' ? out : NULL;
}

/* Log ----------------------------------------------------------------------------------- */

enum voxeld_status voxeld_scene_get_log(struct voxeld_client *client,
                                        const struct voxeld_call *options,
                                        const char *scene, uint64_t below, uint32_t limit,
                                        struct voxeld_scene_log **out,
                                        struct voxeld_error *error)
{
    Voxeld__V1__SceneLogRequest body = VOXELD__V1__SCENE_LOG_REQUEST__INIT;
    struct vxd_exchange call;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(vxd_exchange_begin(&call, client, options, false));
    body.name = vxd_text_or_empty(scene);
    body.below = below;
    body.limit = limit;
    call.request.method_case = VOXELD__V1__REQUEST__METHOD_SCENE_LOG;
    call.request.scene_log = &body;
    VXD_TRY(vxd_exchange_send(&call));
    VXD_TRY(vxd_scene_log_open(&call, out));
out:
    return vxd_exchange_end(&call, status, error);
}

/* Undo ---------------------------------------------------------------------------------- */

/* Copies the reply to an undo or a redo, whose members are the same. */
static enum vxd_status copy_undone(struct vxd_exchange *call,
                                   const Voxeld__V1__SceneChange *change,
                                   uint64_t of_version, double engine_ms,
                                   struct voxeld_scene_undone *out)
{
    const Voxeld__V1__ResponseHeader *header = call->reply.response->header;
    struct voxeld_scene_undone undone = {
        .of_version = of_version,
        .engine_ms = engine_ms,
        .queue_ms = header->queue_ms,
        .total_ms = header->total_ms,
        .replayed = header->replayed,
    };
    enum vxd_status status = vxd_scene_change_copy(change, &undone.change, &call->err);

    if (status == VXD_OK && out != NULL) {
        *out = undone;
    }
    return status;
}

enum voxeld_status voxeld_scene_undo(struct voxeld_client *client,
                                     const struct voxeld_scene_undo_request *request,
                                     struct voxeld_scene_undone *out,
                                     struct voxeld_error *error)
{
    Voxeld__V1__SceneUndoRequest body = VOXELD__V1__SCENE_UNDO_REQUEST__INIT;
    const Voxeld__V1__SceneUndoResponse *response;
    struct vxd_exchange call;
    enum vxd_status status;

    VXD_TRY(vxd_exchange_begin(&call, client, &request->call, true));
    body.name = vxd_text_or_empty(request->scene);
    body.of_version = request->of_version;
    body.if_version = request->if_version;
    call.request.method_case = VOXELD__V1__REQUEST__METHOD_SCENE_UNDO;
    call.request.scene_undo = &body;
    VXD_TRY(vxd_exchange_send(&call));
    response = call.reply.response->scene_undo;
    VXD_TRY(copy_undone(&call, response->change, response->of_version,
                        response->engine_ms, out));
out:
    return vxd_exchange_end(&call, status, error);
}

enum voxeld_status voxeld_scene_redo(struct voxeld_client *client,
                                     const struct voxeld_scene_undo_request *request,
                                     struct voxeld_scene_undone *out,
                                     struct voxeld_error *error)
{
    Voxeld__V1__SceneRedoRequest body = VOXELD__V1__SCENE_REDO_REQUEST__INIT;
    const Voxeld__V1__SceneRedoResponse *response;
    struct vxd_exchange call;
    enum vxd_status status;

    VXD_TRY(vxd_exchange_begin(&call, client, &request->call, true));
    body.name = vxd_text_or_empty(request->scene);
    body.of_version = request->of_version;
    body.if_version = request->if_version;
    call.request.method_case = VOXELD__V1__REQUEST__METHOD_SCENE_REDO;
    call.request.scene_redo = &body;
    VXD_TRY(vxd_exchange_send(&call));
    response = call.reply.response->scene_redo;
    VXD_TRY(copy_undone(&call, response->change, response->of_version,
                        response->engine_ms, out));
out:
    return vxd_exchange_end(&call, status, error);
}

/* Snapshots and branches ---------------------------------------------------------------- */

enum voxeld_status voxeld_scene_take_snapshot(
    struct voxeld_client *client, const struct voxeld_scene_snapshot_request *request,
    struct voxeld_scene_snapshot_taken *out, struct voxeld_error *error)
{
    Voxeld__V1__SceneSnapshotRequest body = VOXELD__V1__SCENE_SNAPSHOT_REQUEST__INIT;
    Voxeld__V1__SceneAt at;
    const Voxeld__V1__SceneSnapshot *taken;
    struct vxd_exchange call;
    enum vxd_status status;

    VXD_TRY(vxd_exchange_begin(&call, client, &request->call, true));
    body.name = vxd_text_or_empty(request->scene);
    body.snapshot = vxd_text_or_empty(request->snapshot);
    body.at = build_at(&request->at, &at);
    body.replace = request->replace;
    call.request.method_case = VOXELD__V1__REQUEST__METHOD_SCENE_SNAPSHOT;
    call.request.scene_snapshot = &body;
    VXD_TRY(vxd_exchange_send(&call));
    taken = call.reply.response->scene_snapshot->snapshot;
    if (taken == NULL) {
        status = vxd_reply_bad(&call.err, "snapshot", "a snapshot of no version");
        goto out;
    }
    if (out != NULL) {
        *out = (struct voxeld_scene_snapshot_taken){
            .version = taken->version,
            .version_ns = taken->version_ns,
            .taken_ns = taken->taken_ns,
            .replayed = call.reply.response->header->replayed,
        };
    }
out:
    return vxd_exchange_end(&call, status, error);
}

enum voxeld_status voxeld_scene_drop_snapshot(struct voxeld_client *client,
                                              const struct voxeld_call *options,
                                              const char *scene, const char *snapshot,
                                              struct voxeld_error *error)
{
    Voxeld__V1__SceneSnapshotRequest body = VOXELD__V1__SCENE_SNAPSHOT_REQUEST__INIT;
    struct vxd_exchange call;
    enum vxd_status status;

    VXD_TRY(vxd_exchange_begin(&call, client, options, true));
    body.name = vxd_text_or_empty(scene);
    body.snapshot = vxd_text_or_empty(snapshot);
    body.drop = true;
    call.request.method_case = VOXELD__V1__REQUEST__METHOD_SCENE_SNAPSHOT;
    call.request.scene_snapshot = &body;
    VXD_TRY(vxd_exchange_send(&call));
out:
    return vxd_exchange_end(&call, status, error);
}

enum voxeld_status voxeld_scene_branch(struct voxeld_client *client,
                                       const struct voxeld_scene_branch_request *request,
                                       struct voxeld_scenes **out, uint64_t *of_version,
                                       struct voxeld_error *error)
{
    Voxeld__V1__SceneBranchRequest body = VOXELD__V1__SCENE_BRANCH_REQUEST__INIT;
    Voxeld__V1__SceneAt at;
    Voxeld__V1__SceneBranchResponse *response;
    struct vxd_exchange call;
    uint64_t began_as;
    enum vxd_status status;

    if (out != NULL) {
        *out = NULL;
    }
    VXD_TRY(vxd_exchange_begin(&call, client, &request->call, true));
    body.name = vxd_text_or_empty(request->scene);
    body.new_name = vxd_text_or_empty(request->new_scene);
    body.at = build_at(&request->at, &at);
    call.request.method_case = VOXELD__V1__REQUEST__METHOD_SCENE_BRANCH;
    call.request.scene_branch = &body;
    VXD_TRY(vxd_exchange_send(&call));
    response = call.reply.response->scene_branch;
    began_as = response->of_version;
    if (out != NULL) {
        VXD_TRY(vxd_scenes_open(&call, &response->scene, 1, out));
    }
    if (of_version != NULL) {
        *of_version = began_as;
    }
out:
    return vxd_exchange_end(&call, status, error);
}

/* Differences --------------------------------------------------------------------------- */

enum voxeld_status voxeld_scene_get_diff(struct voxeld_client *client,
                                         const struct voxeld_scene_diff_request *request,
                                         struct voxeld_scene_diff **out,
                                         struct voxeld_error *error)
{
    Voxeld__V1__SceneDiffRequest body = VOXELD__V1__SCENE_DIFF_REQUEST__INIT;
    Voxeld__V1__SceneBox box = VOXELD__V1__SCENE_BOX__INIT;
    Voxeld__V1__SceneAt from;
    Voxeld__V1__SceneAt to;
    Voxeld__V1__Vec3 low;
    Voxeld__V1__Vec3 high;
    struct vxd_exchange call;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(vxd_exchange_begin(&call, client, &request->call, false));
    box.low = vxd_scene_vec3(request->box.low, &low);
    box.high = vxd_scene_vec3(request->box.high, &high);
    body.name = vxd_text_or_empty(request->scene);
    body.from = build_at(&request->from, &from);
    body.to = build_at(&request->to, &to);
    body.to_name = vxd_text_or_empty(request->to_scene);
    body.level = request->level;
    body.box = request->has_box ? &box : NULL;
    body.in_voxels = request->in_voxels;
    body.first = request->first;
    body.limit = request->limit;
    call.request.method_case = VOXELD__V1__REQUEST__METHOD_SCENE_DIFF;
    call.request.scene_diff = &body;
    VXD_TRY(vxd_exchange_send(&call));
    VXD_TRY(vxd_scene_diff_open(&call, out));
out:
    return vxd_exchange_end(&call, status, error);
}

/* Care ---------------------------------------------------------------------------------- */

enum voxeld_status voxeld_scene_verify(struct voxeld_client *client,
                                       const struct voxeld_call *options,
                                       const char *scene,
                                       struct voxeld_scene_verified *out,
                                       struct voxeld_error *error)
{
    Voxeld__V1__SceneVerifyRequest body = VOXELD__V1__SCENE_VERIFY_REQUEST__INIT;
    const Voxeld__V1__SceneVerifyResponse *response;
    struct vxd_exchange call;
    enum vxd_status status;

    VXD_TRY(vxd_exchange_begin(&call, client, options, false));
    body.name = vxd_text_or_empty(scene);
    call.request.method_case = VOXELD__V1__REQUEST__METHOD_SCENE_VERIFY;
    call.request.scene_verify = &body;
    VXD_TRY(vxd_exchange_send(&call));
    response = call.reply.response->scene_verify;
    if (strlen(response->digest) >= sizeof out->digest) {
        status = vxd_reply_bad(&call.err, "digest", "longer than digests are");
        goto out;
    }
    if (out != NULL) {
        *out = (struct voxeld_scene_verified){
            .n_versions = response->n_versions,
            .n_roots = response->n_roots,
            .n_nodes = response->n_nodes,
            .engine_ms = response->engine_ms,
        };
        (void)snprintf(out->digest, sizeof out->digest, "%s", response->digest);
    }
out:
    return vxd_exchange_end(&call, status, error);
}

enum voxeld_status voxeld_scene_collect(struct voxeld_client *client,
                                        const struct voxeld_call *options,
                                        const char *scene,
                                        struct voxeld_scene_collected *out,
                                        struct voxeld_error *error)
{
    Voxeld__V1__SceneCollectRequest body = VOXELD__V1__SCENE_COLLECT_REQUEST__INIT;
    const Voxeld__V1__SceneCollectResponse *response;
    struct vxd_exchange call;
    enum vxd_status status;

    VXD_TRY(vxd_exchange_begin(&call, client, options, true));
    body.name = vxd_text_or_empty(scene);
    call.request.method_case = VOXELD__V1__REQUEST__METHOD_SCENE_COLLECT;
    call.request.scene_collect = &body;
    VXD_TRY(vxd_exchange_send(&call));
    response = call.reply.response->scene_collect;
    if (out != NULL) {
        *out = (struct voxeld_scene_collected){
            .n_bytes_before = response->n_bytes_before,
            .n_bytes_after = response->n_bytes_after,
            .n_nodes_before = response->n_nodes_before,
            .n_nodes_after = response->n_nodes_after,
            .n_slices = response->n_slices,
            .longest_slice_ms = response->longest_slice_ms,
            .engine_ms = response->engine_ms,
            .replayed = call.reply.response->header->replayed,
        };
    }
out:
    return vxd_exchange_end(&call, status, error);
}
