// SPDX-License-Identifier: Apache-2.0
/* Commits of requests on durable volumes: what the journal gets of them, and what happens when that
 * is decided. Every method that finds its volume by vxd_volume_open is journalled, whatever it
 * changes: as the blocks that it changed, unless it says more shortly what it did. */
#include "proto/base/clock.h"
#include "server/instance/instance.h"
#include "server/observe/log/log.h"
#include "server/service/volume/volume_service.h"

static bool has_changed(const struct vxd_volume_commit *commit)
{
    struct vxd_volume_info info;

    vxd_volume_get_info(commit->volume->volume, &info);
    return info.version != commit->entry.since || info.n_blocks != commit->n_blocks;
}

static enum vxd_status begin(struct vxd_request *request, struct vxd_err *err)
{
    struct vxd_volume_commit *commit = (struct vxd_volume_commit *)request->commit;

    if (commit->entry.kind == VXD_VOLUME_CHANGED && !has_changed(commit)) {
        commit->entry.kind = VXD_VOLUME_READ;
    }
    return vxd_volume_hand_over(request->server->volumes, commit->volume, request,
                                &commit->entry, err);
}

static void end(struct vxd_request *request, bool committed)
{
    struct vxd_volume_commit *commit = (struct vxd_volume_commit *)request->commit;
    struct vxd_volumes *volumes = request->server->volumes;

    if (committed && commit->entry.kind == VXD_VOLUME_MADE) {
        vxd_log(VXD_LOG_INFO, "durable volume made", "volume", commit->volume->terms.name,
                "by", commit->volume->terms.owner);
    }
    commit->is_ended = true;
    if (!committed && commit->copy != NULL &&
        vxd_volumes_peek(volumes, commit->copy->terms.name) == commit->copy) {
        vxd_volumes_remove(volumes, vxd_volumes_queue(volumes), commit->copy);
    }
    vxd_volume_end_change(volumes, commit->volume, &commit->entry, committed);
}

static void set_commit(struct vxd_request *request, struct vxd_volume_commit *commit,
                       struct vxd_named_volume *volume, enum vxd_volume_change_kind kind)
{
    commit->volume = volume;
    commit->entry.kind = kind;
    commit->base.begin = begin;
    commit->base.end = end;
    request->commit = &commit->base;
}

enum vxd_status vxd_volume_enlist(struct vxd_request *request, struct vxd_err *err)
{
    struct vxd_volume_job *job = request->state;
    struct vxd_volume_commit *commit = &job->commit;
    struct vxd_volumes *volumes = request->server->volumes;
    struct vxd_volume_info info;
    enum vxd_status status = VXD_OK;

    if (job->volume->durable.journal_id == 0 || commit->base.begin != NULL) {
        return VXD_OK; /* not durable, or another stage of the same request */
    }
    VXD_TRY(vxd_volume_check_visible(volumes, job->volume, err));
    if (request->method->changes == NULL || !request->method->changes(request)) {
        vxd_volume_conclude(request, commit, job->volume, VXD_VOLUME_READ);
        return VXD_OK;
    }
    VXD_TRY(vxd_volume_check_journal(volumes, job->volume, err));
    vxd_volume_get_info(job->volume->volume, &info);
    commit->entry.since = info.version;
    commit->n_blocks = info.n_blocks;
    commit->is_change = true;
    set_commit(request, commit, job->volume, VXD_VOLUME_CHANGED);
out:
    return status;
}

void vxd_volume_conclude(struct vxd_request *request, struct vxd_volume_commit *commit,
                         struct vxd_named_volume *volume,
                         enum vxd_volume_change_kind kind)
{
    bool is_read = kind == VXD_VOLUME_READ;

    if ((volume != NULL && volume->durable.journal_id == 0) ||
        (is_read && !vxd_volume_is_waiting(request->server->volumes, volume))) {
        return;
    }
    set_commit(request, commit, volume, kind);
}

void vxd_volume_end_commit(struct vxd_request *request, struct vxd_queue *queue,
                           struct vxd_volume_commit *commit)
{
    if (commit->is_change && !commit->is_ended && has_changed(commit)) {
        (void)vxd_queue_wait(queue, NULL); /* another queue brings the volume back */
        vxd_volume_mark_broken(request->server->volumes, commit->volume);
    }
}
