// SPDX-License-Identifier: Apache-2.0
/* Commits of requests on durable things: what the journal gets of them, and what happens when that is
 * decided. */
#include "server/registry/named/named_internal.h"

static struct vxd_named_entry *entry_of(struct vxd_named_commit *commit)
{
    return commit->more != NULL ? commit->more : &commit->entry;
}

enum vxd_status vxd_named_commit_begin(struct vxd_request *request, struct vxd_err *err)
{
    struct vxd_named_commit *commit = (struct vxd_named_commit *)request->commit;

    return vxd_named_hand_over(commit->names, commit->named, request, entry_of(commit),
                               err);
}

void vxd_named_commit_end(struct vxd_request *request, bool committed)
{
    struct vxd_named_commit *commit = (struct vxd_named_commit *)request->commit;
    struct vxd_named *named = commit->named;

    if (committed && entry_of(commit)->kind == VXD_NAMED_MADE) {
        commit->names->calls->log(VXD_REGISTRY_MADE, named->terms.name,
                                  named->terms.owner);
    }
    commit->is_ended = true;
    vxd_named_end_change(named, entry_of(commit), committed);
}

void vxd_named_set_commit(struct vxd_request *request, struct vxd_named_commit *commit,
                          struct vxd_names *names, struct vxd_named *named,
                          enum vxd_named_change kind)
{
    commit->names = names;
    commit->named = named;
    entry_of(commit)->kind = kind;
    commit->base.begin = vxd_named_commit_begin;
    commit->base.end = vxd_named_commit_end;
    request->commit = &commit->base;
}

void vxd_named_conclude(struct vxd_request *request, struct vxd_named_commit *commit,
                        struct vxd_names *names, struct vxd_named *named,
                        enum vxd_named_change kind)
{
    if ((named == NULL || named->durable.journal_id != 0) &&
        (kind != VXD_NAMED_READ || vxd_named_is_waiting(names, named))) {
        vxd_named_set_commit(request, commit, names, named, kind);
    }
}

void vxd_named_end_commit(struct vxd_named_commit *commit)
{
    if (commit->has_changed && !commit->is_ended) {
        commit->is_ended = true;
        vxd_named_mark_broken(commit->named);
    }
    vxd_record_bytes_free(&commit->entry.record);
}
