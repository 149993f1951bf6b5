// SPDX-License-Identifier: Apache-2.0
/* Commits of requests on durable pose graphs: what the journal gets of them, and what happens when that
 * is decided. */
#include "proto/base/clock.h"
#include "server/instance/instance.h"
#include "server/observe/log/log.h"
#include "server/service/posegraph/posegraph_service.h"

static enum vxd_status begin(struct vxd_request *request, struct vxd_err *err)
{
    struct vxd_posegraph_commit *commit = (struct vxd_posegraph_commit *)request->commit;

    return vxd_posegraph_hand_over(request->server->posegraphs, commit->graph, request,
                                   &commit->entry, err);
}

static void end(struct vxd_request *request, bool committed)
{
    struct vxd_posegraph_commit *commit = (struct vxd_posegraph_commit *)request->commit;

    if (committed && commit->entry.kind == VXD_POSEGRAPH_MADE) {
        vxd_log(VXD_LOG_INFO, "durable pose graph made", "posegraph",
                commit->graph->terms.name, "by", commit->graph->terms.owner);
    }
    commit->is_ended = true;
    vxd_posegraph_end_change(request->server->posegraphs, commit->graph, &commit->entry,
                             committed);
}

static void set_commit(struct vxd_request *request, struct vxd_posegraph_commit *commit,
                       struct vxd_named_posegraph *graph,
                       enum vxd_posegraph_change_kind kind)
{
    commit->graph = graph;
    commit->entry.kind = kind;
    commit->entry.unix_ns = vxd_clock_unix_ns();
    commit->base.begin = begin;
    commit->base.end = end;
    request->commit = &commit->base;
}

enum vxd_status vxd_posegraph_change(struct vxd_request *request,
                                     struct vxd_posegraph_record *record,
                                     struct vxd_err *err)
{
    struct vxd_posegraph_job *job = request->state;
    struct vxd_posegraph_commit *commit = &job->commit;
    struct vxd_posegraphs *posegraphs = request->server->posegraphs;
    struct vxd_named_posegraph *graph = job->graph;
    bool is_durable = graph->durable.journal_id != 0;
    enum vxd_status status;

    record->unix_ns = vxd_clock_unix_ns();
    (void)snprintf(record->author, sizeof record->author, "%s", request->principal.name);
    (void)snprintf(record->client, sizeof record->client, "%s", request->client_id);
    VXD_TRY(vxd_posegraphs_check_bytes(
        posegraphs, graph, vxd_posegraph_record_needs(&graph->content, record), err));
    if (is_durable) {
        VXD_TRY(vxd_posegraph_record_encode(record, &commit->entry.record, err));
        commit->entry.record_kind = record->kind;
    }
    VXD_TRY(vxd_posegraph_apply(&graph->content, record, err));
    vxd_posegraphs_account(posegraphs, graph);
    if (is_durable) {
        commit->is_applied = true;
        set_commit(request, commit, graph, VXD_POSEGRAPH_CHANGED);
    }
out:
    return status;
}

void vxd_posegraph_conclude(struct vxd_request *request,
                            struct vxd_posegraph_commit *commit,
                            struct vxd_named_posegraph *graph,
                            enum vxd_posegraph_change_kind kind)
{
    bool is_read = kind == VXD_POSEGRAPH_READ;

    if ((graph != NULL && graph->durable.journal_id == 0) ||
        (is_read && !vxd_posegraph_is_waiting(request->server->posegraphs, graph))) {
        return;
    }
    set_commit(request, commit, graph, kind);
}

void vxd_posegraph_end_commit(struct vxd_request *request,
                              struct vxd_posegraph_commit *commit)
{
    vxd_record_bytes_free(&commit->entry.record);
    if (commit->is_applied && !commit->is_ended) {
        commit->is_ended = true;
        vxd_posegraph_mark_broken(request->server->posegraphs, commit->graph);
    }
}
