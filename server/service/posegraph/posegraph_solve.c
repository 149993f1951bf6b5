// SPDX-License-Identifier: Apache-2.0
/* A search for the best poses: a copy of the graph in the first stage, on the write lane; then, on read
 * lanes, the solver's preparation, a step a stage, and what the reply shows. */
#include <stdlib.h>

#include "proto/base/clock.h"
#include "server/instance/instance.h"
#include "server/service/posegraph/posegraph_service.h"
#include "server/service/service.h"

enum {
    MAX_COVARIANCES = 1024
};

enum solve_stage {
    COPY = 0,
    PREPARE,
    STEPS,
    REPLY
};

struct solve_job {
    struct vxd_posegraph_job base; /* first: request->state is both */
    struct vxd_posegraph_options options;
    struct vxd_request *waiting; /* NULL: the client's own */
    enum solve_stage stage;
    int run; /* its number in the list of those that run, from 0; -1: none */
    struct vxd_posegraph graph; /* of arrays of the job's own */
    struct vxd_rigid *poses;
    uint64_t *ids;
    bool *fixed;
    struct vxd_posegraph_edge *edges;
    struct vxd_posegraph_prior *priors;
    uint32_t *covariance_of;
    struct vxd_posegraph_solver *solver;
    Voxeld__V1__PosegraphSolveResponse *reply;
};

/* --- check -------------------------------------------------------------------------------------- */

enum vxd_status vxd_posegraph_solve_check(struct vxd_request *request,
                                          struct vxd_err *err)
{
    const Voxeld__V1__PosegraphSolveRequest *input =
        (const Voxeld__V1__PosegraphSolveRequest *)request->input;
    struct solve_job *job;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof *job, input->name, err));
    job = request->state;
    job->run = -1;
    job->options = (struct vxd_posegraph_options){
        .start = input->start == VOXELD__V1__POSEGRAPH_START__POSEGRAPH_START_KEEP
                     ? VXD_POSEGRAPH_KEEP
                     : VXD_POSEGRAPH_CHORDAL,
        .max_iterations = (int)input->max_iterations,
        .relative_tolerance = input->relative_tolerance};
    if (input->n_covariance_of > MAX_COVARIANCES) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "covariance_of",
                         "has %zu ids, at most %d are possible", input->n_covariance_of,
                         MAX_COVARIANCES));
    }
out:
    return status;
}

void vxd_posegraph_solve_for(struct vxd_request *request, struct vxd_request *waiting)
{
    ((struct solve_job *)request->state)->waiting = waiting;
}

/* --- the copy, on the write lane ------------------------------------------------------------------ */

static enum vxd_status copy_content(struct solve_job *job,
                                    const struct vxd_posegraph_content *content,
                                    struct vxd_err *err)
{
    const struct vxd_posegraph_version *newest = vxd_posegraph_find_version(content, 0);
    size_t n = content->n_nodes;

    job->poses = malloc((n + 1) * sizeof *job->poses);
    job->ids = malloc((n + 1) * sizeof *job->ids);
    job->fixed = malloc((n + 1) * sizeof *job->fixed);
    job->edges = malloc((content->n_edges + 1) * sizeof *job->edges);
    job->priors = malloc((content->n_priors + 1) * sizeof *job->priors);
    if (job->poses == NULL || job->ids == NULL || job->fixed == NULL ||
        job->edges == NULL || job->priors == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "no memory for a copy of the pose graph");
    }
    for (size_t i = 0; i < n; i++) {
        job->poses[i] = newest->poses[i];
        job->ids[i] = content->nodes[i].id;
        job->fixed[i] = content->nodes[i].fixed;
    }
    if (content->n_edges > 0) {
        memcpy(job->edges, content->edges, content->n_edges * sizeof *job->edges);
    }
    if (content->n_priors > 0) {
        memcpy(job->priors, content->priors, content->n_priors * sizeof *job->priors);
    }
    job->graph = (struct vxd_posegraph){.n_nodes = n,
                                        .T_map_node = job->poses,
                                        .ids = job->ids,
                                        .fixed = job->fixed,
                                        .n_edges = content->n_edges,
                                        .edges = job->edges,
                                        .n_priors = content->n_priors,
                                        .priors = job->priors};
    return VXD_OK;
}

static enum vxd_status find_covariances(struct vxd_request *request,
                                        const struct vxd_posegraph_content *content,
                                        struct vxd_err *err)
{
    const Voxeld__V1__PosegraphSolveRequest *input =
        (const Voxeld__V1__PosegraphSolveRequest *)request->input;
    struct solve_job *job = request->state;

    job->covariance_of =
        malloc((input->n_covariance_of + 1) * sizeof *job->covariance_of);
    if (job->covariance_of == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for covariances");
    }
    for (size_t i = 0; i < input->n_covariance_of; i++) {
        job->covariance_of[i] = vxd_posegraph_find(content, input->covariance_of[i]);
        if (job->covariance_of[i] == UINT32_MAX) {
            return vxd_fail(err, VXD_NOT_FOUND, "covariance_of", "there is no node %llu",
                            (unsigned long long)input->covariance_of[i]);
        }
    }
    return VXD_OK;
}

static void list_run(struct vxd_request *request, const struct vxd_named_posegraph *graph)
{
    struct solve_job *job = request->state;
    struct vxd_posegraph_run run = {.generation = graph->named.generation,
                                    .started_unix_ns = vxd_clock_unix_ns()};

    (void)snprintf(run.name, sizeof run.name, "%s", graph->named.terms.name);
    (void)snprintf(run.request_id, sizeof run.request_id, "%s",
                   job->waiting != NULL ? job->waiting->id : request->id);
    job->run = vxd_posegraphs_begin_run(request->server->posegraphs, &run);
}

static enum vxd_status copy_graph(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__PosegraphSolveRequest *input =
        (const Voxeld__V1__PosegraphSolveRequest *)request->input;
    struct solve_job *job = request->state;
    const struct vxd_named_posegraph *graph;
    enum vxd_status status;

    VXD_TRY(vxd_posegraph_peek(request, input->name, &graph, err));
    if (graph == NULL) {
        return VXD_OK;
    }
    if (graph->content.n_nodes == 0) {
        VXD_TRY(vxd_fail(err, VXD_FAILED_PRECONDITION, "name",
                         "the pose graph \"%s\" has no nodes", input->name));
    }
    job->reply = vxd_message_new(request->decoder,
                                 &voxeld__v1__posegraph_solve_response__descriptor, err);
    if (job->reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(copy_content(job, &graph->content, err));
    VXD_TRY(find_covariances(request, &graph->content, err));
    job->reply->version = vxd_posegraph_find_version(&graph->content, 0)->version;
    job->reply->generation = graph->named.generation;
    list_run(request, graph);
    vxd_posegraph_go_on_reading(request);
    job->stage = PREPARE;
out:
    return status;
}

/* --- the search, on read lanes --------------------------------------------------------------------- */

static enum vxd_status prepare(struct vxd_request *request, struct vxd_err *err)
{
    struct solve_job *job = request->state;
    enum vxd_status status;

    job->options.max_bytes = (size_t)vxd_names_limit_bytes(request->server->posegraphs);
    status = vxd_posegraph_solver_create(vxd_context_pool(request->server->context),
                                         &job->graph, &job->options, &job->solver, err);
    if (status == VXD_RESOURCE_EXHAUSTED && err != NULL &&
        strcmp(err->field, "max_bytes") == 0) {
        (void)snprintf(err->field, sizeof err->field, "limits.posegraph_bytes");
    }
    job->stage = STEPS;
    return status;
}

static enum vxd_status step(struct vxd_request *request, struct vxd_err *err)
{
    struct solve_job *job = request->state;
    struct vxd_posegraph_stats stats;
    bool done = false;
    enum vxd_status status;

    VXD_TRY(vxd_posegraph_solver_step(job->solver, &done, err));
    vxd_posegraph_solver_get_progress(job->solver, &stats);
    vxd_posegraphs_note_run(request->server->posegraphs, job->run, stats.n_iterations,
                            stats.cost);
    job->stage = done ? REPLY : STEPS;
out:
    return status;
}

static enum vxd_status make_reply(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__PosegraphSolveRequest *input =
        (const Voxeld__V1__PosegraphSolveRequest *)request->input;
    struct solve_job *job = request->state;
    Voxeld__V1__PosegraphSolveResponse *reply = job->reply;
    const struct vxd_rigid *poses = vxd_posegraph_solver_poses(job->solver);
    size_t n = job->graph.n_nodes;
    struct vxd_posegraph_stats stats;
    void *array;
    enum vxd_status status;

    VXD_TRY(vxd_posegraph_tensor(request, VXD_UINT64, n, 0, &reply->ids, &array, err));
    memcpy(array, job->ids, n * sizeof *job->ids);
    VXD_TRY(vxd_posegraph_tensor(request, VXD_FLOAT64, n, 7, &reply->poses, &array, err));
    for (size_t i = 0; i < n; i++) {
        memcpy((double *)array + 7 * i, poses[i].t_m, 3 * sizeof(double));
        memcpy((double *)array + 7 * i + 3, poses[i].q, 4 * sizeof(double));
    }
    VXD_TRY(vxd_posegraph_tensor(request, VXD_FLOAT64, input->n_covariance_of, 36,
                                 &reply->covariance, &array, err));
    VXD_TRY(vxd_posegraph_solver_covariance(job->solver, job->covariance_of,
                                            input->n_covariance_of, array, err));
    vxd_posegraph_solver_get_stats(job->solver, &stats);
    reply->n_nodes = n;
    reply->n_covariance = input->n_covariance_of;
    reply->initial_cost = stats.initial_cost;
    reply->cost = stats.cost;
    reply->n_iterations = (uint32_t)stats.n_iterations;
    reply->converged = stats.converged;
    reply->n_outliers = stats.n_outliers;
    request->output = &reply->base;
out:
    return status;
}

static enum vxd_status run_stage(struct vxd_request *request, struct vxd_err *err)
{
    const struct solve_job *job = request->state;

    if (job->waiting != NULL && vxd_request_is_over(job->waiting)) {
        return vxd_fail(err, VXD_CANCELLED, NULL,
                        "nobody waits for the optimization any more");
    }
    request->more = job->stage != REPLY;
    switch (job->stage) {
    case COPY:
        request->more = false; /* unless it is to come again, or has gone on */
        return copy_graph(request, err);
    case PREPARE:
        return prepare(request, err);
    case STEPS:
        return step(request, err);
    case REPLY:
    default:
        return make_reply(request, err);
    }
}

/* It runs no more. Before the reply, so that whoever has it does not see the search among those that
 * run, on whichever lane the next request looks. */
static void end_run(struct vxd_request *request)
{
    struct solve_job *job = request->state;

    vxd_posegraphs_end_run(request->server->posegraphs, job->run);
    job->run = -1;
}

enum vxd_status vxd_posegraph_solve_submit(struct vxd_request *request,
                                           struct vxd_queue *queue, struct vxd_err *err)
{
    enum vxd_status status = run_stage(request, err);

    (void)queue;
    if (status != VXD_OK) {
        end_run(request);
    }
    return status;
}

enum vxd_status vxd_posegraph_solve_finish(struct vxd_request *request,
                                           struct vxd_queue *queue, struct vxd_err *err)
{
    const struct solve_job *job = request->state;

    (void)queue;
    (void)err;
    end_run(request);
    job->reply->engine_ms = (double)request->engine_ns / 1e6;
    return VXD_OK;
}

void vxd_posegraph_solve_release(struct vxd_request *request, struct vxd_queue *queue)
{
    struct solve_job *job = request->state;

    (void)queue;
    end_run(request); /* where it was given up */
    vxd_posegraph_solver_destroy(job->solver);
    job->solver = NULL;
    for (size_t i = 0; i < job->base.n_arrays; i++) {
        free(job->base.arrays[i]);
    }
    job->base.n_arrays = 0;
    free(job->covariance_of);
    free(job->priors);
    free(job->edges);
    free(job->fixed);
    free(job->ids);
    free(job->poses);
    job->covariance_of = NULL;
    job->priors = NULL;
    job->edges = NULL;
    job->fixed = NULL;
    job->ids = NULL;
    job->poses = NULL;
}
