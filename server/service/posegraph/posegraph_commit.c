// SPDX-License-Identifier: Apache-2.0
/* Changes of pose graphs, and what the journal gets of them. */
#include "proto/base/clock.h"
#include "server/instance/instance.h"
#include "server/service/posegraph/posegraph_service.h"

enum vxd_status vxd_posegraph_change(struct vxd_request *request,
                                     struct vxd_posegraph_record *record,
                                     struct vxd_err *err)
{
    struct vxd_posegraph_job *job = request->state;
    struct vxd_named_commit *commit = &job->commit;
    struct vxd_named_posegraph *graph = job->graph;
    bool is_durable = graph->named.durable.journal_id != 0;
    enum vxd_status status;

    record->unix_ns = vxd_clock_unix_ns();
    (void)snprintf(record->author, sizeof record->author, "%s", request->principal.name);
    (void)snprintf(record->client, sizeof record->client, "%s", request->client_id);
    VXD_TRY(vxd_posegraph_check_bytes(
        graph, vxd_posegraph_record_needs(&graph->content, record), err));
    if (is_durable) {
        VXD_TRY(vxd_posegraph_record_encode(record, &commit->entry.record, err));
        commit->entry.record_kind = (uint32_t)record->kind;
    }
    VXD_TRY(vxd_posegraph_apply(&graph->content, record, err));
    vxd_named_account(&graph->named);
    if (is_durable) {
        commit->has_changed = true;
        vxd_named_set_commit(request, commit, graph->named.names, &graph->named,
                             VXD_NAMED_CHANGED);
    }
out:
    return status;
}

void vxd_posegraph_conclude(struct vxd_request *request, struct vxd_named_commit *commit,
                            struct vxd_named_posegraph *graph, enum vxd_named_change kind)
{
    vxd_named_conclude(request, commit, request->server->posegraphs,
                       graph != NULL ? &graph->named : NULL, kind);
}
