// SPDX-License-Identifier: Apache-2.0
/* Pose graphs as a whole: create, drop, list, get. */
#include "server/instance/instance.h"
#include "server/service/noun/noun.h"
#include "server/service/posegraph/posegraph_service.h"
#include "server/service/service.h"

enum {
    MAX_INFO_BYTES = 16384 /* of one PosegraphInfo with all that it may have */
};

/* --- what is said of a graph ---------------------------------------------------------------- */

static enum vxd_status list_versions(struct vxd_decoder *arena,
                                     const struct vxd_posegraph_content *content,
                                     Voxeld__V1__PosegraphInfo *info, struct vxd_err *err)
{
    info->versions = vxd_message_pointers(arena, (size_t)content->n_versions, err);
    if (info->versions == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; i < content->n_versions; i++) {
        Voxeld__V1__PosegraphVersion *version =
            vxd_message_new(arena, &voxeld__v1__posegraph_version__descriptor, err);

        if (version == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        version->version = content->versions[i].version;
        version->n_nodes = content->versions[i].n;
        version->cost = content->versions[i].cost;
        version->created_ns = content->versions[i].unix_ns;
        info->version = version->version;
        info->versions[info->n_versions++] = version;
    }
    return VXD_OK;
}

static enum vxd_status list_runs(struct vxd_request *request, struct vxd_decoder *arena,
                                 const struct vxd_named_posegraph *graph,
                                 Voxeld__V1__PosegraphInfo *info, struct vxd_err *err)
{
    struct vxd_posegraph_run runs[VXD_POSEGRAPHS_MAX_RUNNING];
    size_t n = vxd_posegraphs_list_runs(request->server->posegraphs, graph, runs);

    info->running = vxd_message_pointers(arena, n, err);
    if (info->running == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < n; i++) {
        Voxeld__V1__PosegraphRunning *running =
            vxd_message_new(arena, &voxeld__v1__posegraph_running__descriptor, err);

        if (running == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        running->request_id =
            vxd_message_text(arena, runs[i].request_id, strlen(runs[i].request_id), err);
        if (running->request_id == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        running->n_iterations = (uint32_t)runs[i].n_iterations;
        running->cost = runs[i].cost;
        running->started_ns = runs[i].started_unix_ns;
        info->running[info->n_running++] = running;
    }
    return VXD_OK;
}

static enum vxd_status new_info(struct vxd_request *request, struct vxd_decoder *arena,
                                const struct vxd_named *named, ProtobufCMessage **out,
                                struct vxd_err *err)
{
    const struct vxd_named_posegraph *graph = (const struct vxd_named_posegraph *)named;
    const struct vxd_named_terms *terms = &graph->named.terms;
    Voxeld__V1__PosegraphInfo *info =
        vxd_message_new(arena, &voxeld__v1__posegraph_info__descriptor, err);
    enum vxd_status status = VXD_OK;

    if (info == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    info->name = vxd_message_text(arena, terms->name, strlen(terms->name), err);
    info->owner = vxd_message_text(arena, terms->owner, strlen(terms->owner), err);
    if (info->name == NULL || info->owner == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    info->unavailable = graph->named.durable.is_broken;
    if (!info->unavailable) {
        info->n_nodes = graph->content.n_nodes;
        info->n_edges = graph->content.n_edges;
        info->n_priors = graph->content.n_priors;
        info->n_keyframes = graph->content.n_keyframes;
        info->n_bytes = graph->content.n_bytes;
        VXD_TRY(list_versions(arena, &graph->content, info, err));
    }
    info->max_bytes = terms->max_bytes;
    info->generation = graph->named.generation;
    info->created_ns = graph->named.created_unix_ns;
    info->durable = terms->durable;
    if (terms->durable) {
        info->fsync = (Voxeld__V1__PosegraphFsync)terms->fsync;
        info->journal_max_bytes = terms->journal_max_bytes;
    }
    VXD_TRY(list_runs(request, arena, graph, info, err));
    *out = &info->base;
out:
    return status;
}

/* --- create ------------------------------------------------------------------------------------ */

enum vxd_status vxd_posegraph_create_check(struct vxd_request *request,
                                           struct vxd_err *err)
{
    const Voxeld__V1__PosegraphCreateRequest *input =
        (const Voxeld__V1__PosegraphCreateRequest *)request->input;
    const struct vxd_noun_durability durability = {.one = "pose graph",
                                                   .durable = input->durable,
                                                   .fsync = (int)input->fsync,
                                                   .journal_max_bytes =
                                                       input->journal_max_bytes};
    struct vxd_noun_create *job;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof *job, input->name, err));
    job = request->state;
    (void)snprintf(job->terms.name, sizeof job->terms.name, "%s", input->name);
    (void)snprintf(job->terms.owner, sizeof job->terms.owner, "%s",
                   request->principal.name);
    job->terms.max_bytes = input->max_bytes;
    status = vxd_noun_read_durability(request, &durability, &job->terms, err);
out:
    return status;
}

static enum vxd_status make(struct vxd_request *request, struct vxd_queue *queue,
                            struct vxd_named **out, struct vxd_err *err)
{
    const struct vxd_noun_create *job = request->state;
    struct vxd_named_posegraph *made = NULL;
    enum vxd_status status =
        vxd_named_posegraph_new(request->server->posegraphs, &job->terms, &made, err);

    (void)queue;
    *out = made != NULL ? &made->named : NULL;
    return status;
}

static const struct vxd_noun_maker maker = {.one = "pose graph", .make = make};

/* --- list, get, drop ---------------------------------------------------------------------------- */

static struct vxd_names *get_names(const struct vxd_server *server)
{
    return server->posegraphs;
}

const struct vxd_noun_service vxd_posegraph_service = {.names = get_names,
                                                       .max_info_bytes = MAX_INFO_BYTES,
                                                       .list_field = "posegraphs",
                                                       .info_field = "posegraph",
                                                       .new_info = new_info,
                                                       .maker = &maker,
                                                       .missing = vxd_missing_posegraph};
