// SPDX-License-Identifier: Apache-2.0
/* Pose graphs as a whole: create, drop, list, get. */
#include <inttypes.h>

#include "server/instance/instance.h"
#include "server/registry/registry.h"
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
                                const struct vxd_named_posegraph *graph,
                                Voxeld__V1__PosegraphInfo **out, struct vxd_err *err)
{
    const struct vxd_posegraph_terms *terms = &graph->terms;
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
    info->unavailable = graph->durable.is_broken;
    if (!info->unavailable) {
        info->n_nodes = graph->content.n_nodes;
        info->n_edges = graph->content.n_edges;
        info->n_priors = graph->content.n_priors;
        info->n_keyframes = graph->content.n_keyframes;
        info->n_bytes = graph->content.n_bytes;
        VXD_TRY(list_versions(arena, &graph->content, info, err));
    }
    info->max_bytes = terms->max_bytes;
    info->generation = graph->generation;
    info->created_ns = graph->created_unix_ns;
    info->durable = terms->durable;
    if (terms->durable) {
        info->fsync = (Voxeld__V1__PosegraphFsync)terms->fsync;
        info->journal_max_bytes = terms->journal_max_bytes;
    }
    VXD_TRY(list_runs(request, arena, graph, info, err));
    *out = info;
out:
    return status;
}

/* --- create ------------------------------------------------------------------------------------ */

struct create_job {
    struct vxd_posegraph_job base; /* first: request->state is both */
    struct vxd_posegraph_terms terms;
    Voxeld__V1__PosegraphCreateResponse *reply;
};

static enum vxd_status read_durability(const struct vxd_request *request,
                                       struct vxd_posegraph_terms *terms,
                                       struct vxd_err *err)
{
    const Voxeld__V1__PosegraphCreateRequest *input =
        (const Voxeld__V1__PosegraphCreateRequest *)request->input;

    if (protobuf_c_enum_descriptor_get_value(&voxeld__v1__posegraph_fsync__descriptor,
                                             (int)input->fsync) == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "fsync",
                        "is %d; known: POSEGRAPH_FSYNC_ALWAYS, POSEGRAPH_FSYNC_EVERYSEC, "
                        "POSEGRAPH_FSYNC_OFF",
                        (int)input->fsync);
    }
    if (!input->durable) {
        return input->fsync == VOXELD__V1__POSEGRAPH_FSYNC__POSEGRAPH_FSYNC_ALWAYS &&
                       input->journal_max_bytes == 0
                   ? VXD_OK
                   : vxd_fail(err, VXD_INVALID_ARGUMENT,
                              input->journal_max_bytes > 0 ? "journal_max_bytes"
                                                           : "fsync",
                              "goes with durable");
    }
    if (vxd_registry_get_journal(request->server->registry) == NULL) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, "durable",
                        "the server keeps nothing: it has no data_dir");
    }
    if (input->journal_max_bytes > VXD_JOURNAL_MAX_BYTES) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "journal_max_bytes",
                        "is %" PRIu64 ", at most 2^63 - 1 is possible",
                        input->journal_max_bytes);
    }
    terms->durable = true;
    terms->fsync = (enum vxd_fsync)input->fsync;
    terms->journal_max_bytes = input->journal_max_bytes > 0 ? input->journal_max_bytes
                                                            : VXD_POSEGRAPH_JOURNAL_BYTES;
    return VXD_OK;
}

enum vxd_status vxd_posegraph_create_check(struct vxd_request *request,
                                           struct vxd_err *err)
{
    const Voxeld__V1__PosegraphCreateRequest *input =
        (const Voxeld__V1__PosegraphCreateRequest *)request->input;
    struct create_job *job;
    enum vxd_status status;

    VXD_TRY(vxd_posegraph_begin_check(request, sizeof *job, input->name, err));
    job = request->state;
    (void)snprintf(job->terms.name, sizeof job->terms.name, "%s", input->name);
    (void)snprintf(job->terms.owner, sizeof job->terms.owner, "%s",
                   request->principal.name);
    job->terms.max_bytes = input->max_bytes;
    status = read_durability(request, &job->terms, err);
out:
    return status;
}

enum vxd_status vxd_posegraph_create_submit(struct vxd_request *request,
                                            struct vxd_queue *queue, struct vxd_err *err)
{
    struct create_job *job = request->state;
    struct vxd_posegraphs *posegraphs = request->server->posegraphs;
    struct vxd_named_posegraph *graph = vxd_posegraphs_find(posegraphs, job->terms.name);
    enum vxd_status status = VXD_OK;

    (void)queue;
    job->reply = vxd_message_new(request->decoder,
                                 &voxeld__v1__posegraph_create_response__descriptor, err);
    if (job->reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    if (graph != NULL) {
        job->base.graph = graph;
        vxd_named_posegraph_hold(graph);
        VXD_TRY(vxd_posegraph_check_visible(posegraphs, graph, err));
    }
    if (graph != NULL &&
        (graph->terms.max_bytes != job->terms.max_bytes ||
         graph->terms.durable != job->terms.durable ||
         graph->terms.fsync != job->terms.fsync ||
         graph->terms.journal_max_bytes != job->terms.journal_max_bytes)) {
        VXD_TRY(vxd_fail(err, VXD_ALREADY_EXISTS, "name",
                         "the pose graph \"%s\" exists with other parameters",
                         job->terms.name));
    }
    job->reply->existed = graph != NULL;
    if (graph == NULL) {
        VXD_TRY(vxd_named_posegraph_new(posegraphs, &job->terms, &job->base.made, err));
        graph = job->base.made;
        if (graph->terms.durable) {
            vxd_posegraph_enter_journal(posegraphs, graph);
            VXD_TRY(vxd_posegraph_check_journal(posegraphs, graph, err));
        }
    }
    status = new_info(request, request->decoder, graph, &job->reply->posegraph, err);
out:
    return status;
}

enum vxd_status vxd_posegraph_create_finish(struct vxd_request *request,
                                            struct vxd_queue *queue, struct vxd_err *err)
{
    struct create_job *job = request->state;

    (void)queue;
    (void)err;
    request->output = &job->reply->base;
    if (job->base.made != NULL) {
        vxd_posegraphs_publish(request->server->posegraphs, job->base.made);
        vxd_posegraph_conclude(request, &job->base.commit, job->base.made,
                               VXD_POSEGRAPH_MADE);
    } else {
        vxd_posegraph_conclude(request, &job->base.commit, job->base.graph,
                               VXD_POSEGRAPH_READ);
    }
    return VXD_OK;
}

/* --- drop -------------------------------------------------------------------------------------- */

enum vxd_status vxd_posegraph_drop_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__PosegraphDropRequest *input =
        (const Voxeld__V1__PosegraphDropRequest *)request->input;

    return vxd_posegraph_begin_check(request, sizeof(struct vxd_posegraph_job),
                                     input->name, err);
}

enum vxd_status vxd_posegraph_drop_submit(struct vxd_request *request,
                                          struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__PosegraphDropRequest *input =
        (const Voxeld__V1__PosegraphDropRequest *)request->input;
    Voxeld__V1__PosegraphDropResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__posegraph_drop_response__descriptor, err);
    const struct vxd_posegraph_job *job = request->state;
    enum vxd_status status;

    (void)queue;
    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    status = vxd_posegraph_open(request, input->name, err);
    if (status == VXD_UNAVAILABLE && !job->graph->durable.is_leaving &&
        job->graph->durable.n_waiting == 0) {
        /* A graph that cannot be brought back from the disk may be dropped. */
        status =
            vxd_posegraph_check_journal(request->server->posegraphs, job->graph, err);
    }
    reply->existed = status == VXD_OK;
    request->output = &reply->base;
    return status == VXD_NOT_FOUND && input->missing_ok ? VXD_OK : status;
}

enum vxd_status vxd_posegraph_drop_finish(struct vxd_request *request,
                                          struct vxd_queue *queue, struct vxd_err *err)
{
    struct vxd_posegraph_job *job = request->state;

    (void)queue;
    (void)err;
    if (job->graph != NULL && job->graph->terms.durable) {
        vxd_posegraph_conclude(request, &job->commit, job->graph, VXD_POSEGRAPH_DROPPED);
    } else if (job->graph != NULL) {
        vxd_posegraphs_remove(request->server->posegraphs, job->graph);
    }
    return VXD_OK;
}

/* --- list -------------------------------------------------------------------------------------- */

struct list_job {
    struct vxd_posegraph_job base; /* first: request->state is both */
    struct vxd_decoder *arena; /* not the request's, whose budget depends on its size */
};

enum vxd_status vxd_posegraph_list_check(struct vxd_request *request, struct vxd_err *err)
{
    request->state = vxd_message_array(request->decoder, 1, sizeof(struct list_job), err);
    return request->state != NULL ? VXD_OK : VXD_RESOURCE_EXHAUSTED;
}

enum vxd_status vxd_posegraph_list_submit(struct vxd_request *request,
                                          struct vxd_queue *queue, struct vxd_err *err)
{
    struct vxd_posegraphs *posegraphs = request->server->posegraphs;
    struct list_job *job = request->state;
    Voxeld__V1__PosegraphListResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__posegraph_list_response__descriptor, err);
    struct vxd_posegraphs_usage usage;
    enum vxd_status status;

    (void)queue;
    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    vxd_posegraphs_get_usage(posegraphs, &usage);
    VXD_TRY(vxd_decoder_create((usage.n_posegraphs + 1) * MAX_INFO_BYTES, NULL,
                               &job->arena, err));
    reply->posegraphs = vxd_message_pointers(job->arena, usage.n_posegraphs, err);
    if (reply->posegraphs == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (struct vxd_named_posegraph *g = vxd_posegraphs_next(posegraphs, NULL); g != NULL;
         g = vxd_posegraphs_next(posegraphs, g)) {
        struct vxd_err why;

        (void)vxd_posegraph_check_visible(posegraphs, g, &why);
        VXD_TRY(new_info(request, job->arena, g, &reply->posegraphs[reply->n_posegraphs],
                         err));
        reply->n_posegraphs++;
    }
    reply->n_bytes = usage.n_bytes;
    reply->limit_bytes = usage.limit_bytes;
    request->output = &reply->base;
out:
    return status;
}

enum vxd_status vxd_posegraph_list_finish(struct vxd_request *request,
                                          struct vxd_queue *queue, struct vxd_err *err)
{
    struct list_job *job = request->state;

    (void)queue;
    (void)err;
    vxd_posegraph_conclude(request, &job->base.commit, NULL, VXD_POSEGRAPH_READ);
    return VXD_OK;
}

void vxd_posegraph_list_release(struct vxd_request *request, struct vxd_queue *queue)
{
    struct list_job *job = request->state;

    (void)queue;
    vxd_decoder_destroy(job->arena);
    job->arena = NULL;
}

/* --- get --------------------------------------------------------------------------------------- */

enum vxd_status vxd_posegraph_get_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__PosegraphGetRequest *input =
        (const Voxeld__V1__PosegraphGetRequest *)request->input;

    return vxd_posegraph_begin_check(request, sizeof(struct vxd_posegraph_job),
                                     input->name, err);
}

enum vxd_status vxd_posegraph_get_submit(struct vxd_request *request,
                                         struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__PosegraphGetRequest *input =
        (const Voxeld__V1__PosegraphGetRequest *)request->input;
    Voxeld__V1__PosegraphGetResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__posegraph_get_response__descriptor, err);
    struct vxd_posegraph_job *job = request->state;
    enum vxd_status status;

    (void)queue;
    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_posegraph_open(request, input->name, err));
    request->output = &reply->base;
    status = new_info(request, request->decoder, job->graph, &reply->posegraph, err);
out:
    return status;
}

/* Of methods whose reply submit has made. */
enum vxd_status vxd_posegraph_done(struct vxd_request *request, struct vxd_queue *queue,
                                   struct vxd_err *err)
{
    (void)request;
    (void)queue;
    (void)err;
    return VXD_OK;
}
