// SPDX-License-Identifier: Apache-2.0
/* Commits of requests on durable volumes. Every method that finds its volume by vxd_volume_open is
 * journalled, whatever it changes: as the blocks that it changed, unless it says more shortly what it
 * did. */
#include "server/instance/instance.h"
#include "server/service/volume/volume_service.h"

static bool has_changed(const struct vxd_volume_commit *commit)
{
    const struct vxd_named_volume *volume =
        (const struct vxd_named_volume *)commit->base.named;
    struct vxd_volume_info info;

    vxd_volume_get_info(volume->state.volume, &info);
    return info.version != commit->entry.since || info.n_blocks != commit->n_blocks;
}

static enum vxd_status begin(struct vxd_request *request, struct vxd_err *err)
{
    struct vxd_volume_commit *commit = (struct vxd_volume_commit *)request->commit;

    if (commit->entry.base.kind == VXD_NAMED_CHANGED && !has_changed(commit)) {
        commit->entry.base.kind = VXD_NAMED_READ;
    }
    return vxd_named_commit_begin(request, err);
}

static void end(struct vxd_request *request, bool committed)
{
    const struct vxd_volume_commit *commit =
        (const struct vxd_volume_commit *)request->commit;
    struct vxd_names *volumes = request->server->volumes;
    struct vxd_named_volume *copy = commit->copy;

    if (!committed && copy != NULL &&
        vxd_volumes_peek(volumes, copy->named.terms.name) == copy) {
        vxd_named_remove(&copy->named, vxd_names_queue(volumes));
    }
    vxd_named_commit_end(request, committed);
}

static void set_commit(struct vxd_request *request, struct vxd_volume_commit *commit,
                       struct vxd_named_volume *volume, enum vxd_named_change kind)
{
    commit->base.more = &commit->entry.base;
    vxd_named_set_commit(request, &commit->base, request->server->volumes,
                         volume != NULL ? &volume->named : NULL, kind);
    commit->base.base.begin = begin;
    commit->base.base.end = end;
}

enum vxd_status vxd_volume_enlist(struct vxd_request *request, struct vxd_err *err)
{
    struct vxd_volume_job *job = request->state;
    struct vxd_volume_commit *commit = &job->commit;
    struct vxd_named *named = &job->volume->named;
    struct vxd_volume_info info;
    enum vxd_status status = VXD_OK;

    if (named->durable.journal_id == 0 || commit->base.base.begin != NULL) {
        return VXD_OK; /* not durable, or another stage of the same request */
    }
    VXD_TRY(vxd_named_check_visible(named, err));
    if (request->method->changes == NULL || !request->method->changes(request)) {
        vxd_volume_conclude(request, commit, job->volume, VXD_NAMED_READ);
        return VXD_OK;
    }
    VXD_TRY(vxd_named_check_journal(named, 0, err));
    vxd_volume_get_info(job->volume->state.volume, &info);
    commit->entry.since = info.version;
    commit->n_blocks = info.n_blocks;
    commit->is_change = true;
    set_commit(request, commit, job->volume, VXD_NAMED_CHANGED);
out:
    return status;
}

void vxd_volume_conclude(struct vxd_request *request, struct vxd_volume_commit *commit,
                         struct vxd_named_volume *volume, enum vxd_named_change kind)
{
    const struct vxd_named *named = volume != NULL ? &volume->named : NULL;

    if ((named == NULL || named->durable.journal_id != 0) &&
        (kind != VXD_NAMED_READ ||
         vxd_named_is_waiting(request->server->volumes, named))) {
        set_commit(request, commit, volume, kind);
    }
}

void vxd_volume_end_commit(struct vxd_queue *queue, struct vxd_volume_commit *commit)
{
    commit->base.has_changed =
        commit->is_change && !commit->base.is_ended && has_changed(commit);
    if (commit->base.has_changed) {
        (void)vxd_queue_wait(queue, NULL); /* another queue brings the volume back */
    }
    vxd_named_end_commit(&commit->base);
}
