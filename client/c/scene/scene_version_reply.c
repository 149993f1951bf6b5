// SPDX-License-Identifier: Apache-2.0
/* Turns the wire's logs and differences into the public structs, checked as in
 * scene_reply.c. */
#include "client/c/scene/scene_call.h"

/* Log ----------------------------------------------------------------------------------- */

static void copy_version(const Voxeld__V1__SceneVersion *in,
                         struct voxeld_scene_version *out)
{
    *out = (struct voxeld_scene_version){
        .version = in->version,
        .kind = (enum voxeld_scene_version_kind)in->kind,
        .of_version = in->of_version,
        .stamp_ns = in->stamp_ns,
        .by = in->by,
        .client_id = in->client_id,
        .n_added = in->n_added,
        .n_removed = in->n_removed,
        .n_changed = in->n_changed,
        .n_freed = in->n_freed,
        .undone_by = in->undone_by,
    };
}

static enum vxd_status open_log(struct voxeld_scene_log *log, struct vxd_err *err)
{
    const Voxeld__V1__SceneLogResponse *in = vxd_result_reply(log)->response->scene_log;
    struct voxeld_scene_version *versions =
        vxd_reply_alloc(vxd_result_reply(log), in->n_versions, sizeof *versions);
    struct voxeld_scene_snapshot *snapshots =
        vxd_reply_alloc(vxd_result_reply(log), in->n_snapshots, sizeof *snapshots);

    if (versions == NULL || snapshots == NULL) {
        return vxd_reply_no_memory(err);
    }
    for (size_t i = 0; i < in->n_versions; i++) {
        copy_version(in->versions[i], &versions[i]);
        /* Versions must fall, so that a caller that goes on below the last one comes
         * to an end. */
        if (i > 0 && versions[i].version >= versions[i - 1].version) {
            return vxd_reply_bad(err, "versions", "not newest first");
        }
    }
    for (size_t i = 0; i < in->n_snapshots; i++) {
        snapshots[i] = (struct voxeld_scene_snapshot){
            .name = in->snapshots[i]->name,
            .version = in->snapshots[i]->version,
            .version_ns = in->snapshots[i]->version_ns,
            .taken_ns = in->snapshots[i]->taken_ns,
            .by = in->snapshots[i]->by,
        };
    }
    *log = (struct voxeld_scene_log){
        .versions = versions,
        .n_versions = in->n_versions,
        .snapshots = snapshots,
        .n_snapshots = in->n_snapshots,
        .version = in->version,
        .generation = in->generation,
        .oldest = in->oldest,
        .n_sharing = in->n_sharing,
    };
    return VXD_OK;
}

enum vxd_status vxd_scene_log_open(struct vxd_exchange *call,
                                   struct voxeld_scene_log **out)
{
    struct voxeld_scene_log *log = vxd_result_new(&call->reply, sizeof *log, &call->err);
    enum vxd_status status;

    if (log == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(open_log(log, &call->err));
    *out = log;
    return VXD_OK;
out:
    voxeld_scene_log_free(log);
    return status;
}

void voxeld_scene_log_free(struct voxeld_scene_log *log)
{
    vxd_result_free(log);
}

/* Differences --------------------------------------------------------------------------- */

static enum vxd_status open_diff(const Voxeld__V1__SceneDiffResponse *in,
                                 struct voxeld_scene_diff *d, struct vxd_err *err)
{
    const void *data = NULL;
    size_t shape[2] = {0, 3};
    enum vxd_status status;

    if (in->cells == NULL || in->cells->n_shape != 2 || in->cells->shape[0] < 0 ||
        (uint64_t)in->cells->shape[0] > in->n_cells) {
        return vxd_reply_bad(err, "cells",
                             "not three numbers a cell, of those there are");
    }
    d->n = shape[0] = (size_t)in->cells->shape[0];
    VXD_TRY(vxd_reply_tensor(in->cells, "cells", VOXELD__V1__DTYPE__INT32, shape, 2,
                             &data, err));
    d->cells = data;
    VXD_TRY(vxd_reply_tensor(in->changes, "changes", VOXELD__V1__DTYPE__UINT8, shape, 1,
                             &data, err));
    d->changes = data;
    d->n_cells = in->n_cells;
    d->from_version = in->from_version;
    d->to_version = in->to_version;
    d->generation = in->generation;
    d->cell_size_m = in->cell_size_m;
    d->frame_id = in->frame_id;
    d->engine_ms = in->engine_ms;
    vxd_reply_vec3(in->origin, d->origin_m);
out:
    return status;
}

enum vxd_status vxd_scene_diff_open(struct vxd_exchange *call,
                                    struct voxeld_scene_diff **out)
{
    struct voxeld_scene_diff *diff =
        vxd_result_new(&call->reply, sizeof *diff, &call->err);
    const Voxeld__V1__ResponseHeader *header;
    enum vxd_status status;

    if (diff == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    header = vxd_result_reply(diff)->response->header;
    diff->queue_ms = header->queue_ms;
    diff->total_ms = header->total_ms;
    diff->request_id = header->request_id;
    VXD_TRY(open_diff(vxd_result_reply(diff)->response->scene_diff, diff, &call->err));
    *out = diff;
    return VXD_OK;
out:
    voxeld_scene_diff_free(diff);
    return status;
}

void voxeld_scene_diff_free(struct voxeld_scene_diff *diff)
{
    vxd_result_free(diff);
}
