// SPDX-License-Identifier: Apache-2.0
/* The poses that a search found become a version. The search is a request of the server's own
 * (posegraph_solve.c), which runs before this one's turn on the write lane comes; so that lane is not
 * held while it searches. */
#include <math.h>
#include <stdlib.h>

#include "server/instance/instance.h"
#include "server/request/request.h"
#include "server/service/posegraph/posegraph_service.h"
#include "server/service/service.h"

struct optimize_job {
    struct vxd_posegraph_job base; /* first: request->state is both */
    struct vxd_rigid *poses; /* that were found, of the first nodes; freed by forget */
    size_t n_found;
    uint64_t version; /* which the search began with */
    uint64_t generation;
    double engine_ms;
    double cost;
    Voxeld__V1__PosegraphOptimizeResponse *reply;
};

enum vxd_status vxd_posegraph_optimize_check(struct vxd_request *request,
                                             struct vxd_err *err)
{
    const Voxeld__V1__PosegraphOptimizeRequest *input =
        (const Voxeld__V1__PosegraphOptimizeRequest *)request->input;
    struct optimize_job *job;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof *job, input->name, err));
    job = request->state;
    job->reply = vxd_message_new(
        request->decoder, &voxeld__v1__posegraph_optimize_response__descriptor, err);
    status = job->reply != NULL ? VXD_OK : VXD_RESOURCE_EXHAUSTED;
out:
    return status;
}

enum vxd_status vxd_posegraph_optimize_prerequisite(struct vxd_request *request,
                                                    bool *waits, struct vxd_err *err)
{
    const Voxeld__V1__PosegraphOptimizeRequest *from =
        (const Voxeld__V1__PosegraphOptimizeRequest *)request->input;
    struct vxd_request *search = NULL;
    Voxeld__V1__PosegraphSolveRequest *input;
    enum vxd_status status;

    *waits = true;
    VXD_TRY(vxd_request_create_prerequisite(
        request, vxd_method_by_name(request->server->methods, "posegraph_solve"), &search,
        err));
    input = vxd_message_new(search->decoder,
                            &voxeld__v1__posegraph_solve_request__descriptor, err);
    if (input == NULL) {
        VXD_TRY(VXD_RESOURCE_EXHAUSTED);
    }
    input->name = from->name;
    input->max_iterations = from->max_iterations;
    input->relative_tolerance = from->relative_tolerance;
    input->start = from->start;
    search->input = &input->base;
    VXD_TRY(search->method->check(search, err));
    vxd_posegraph_solve_for(search, request);
    return vxd_request_submit_prerequisite(search, err);
out:
    if (search != NULL) {
        vxd_request_drop(search);
    }
    return status;
}

enum vxd_status vxd_posegraph_optimize_take(struct vxd_request *request,
                                            const ProtobufCMessage *output,
                                            struct vxd_err *err)
{
    const Voxeld__V1__PosegraphSolveResponse *found =
        (const Voxeld__V1__PosegraphSolveResponse *)output;
    struct optimize_job *job = request->state;
    const double *rows = (const double *)(const void *)found->poses->data.data;

    job->n_found = (size_t)found->n_nodes;
    job->poses = malloc((job->n_found + 1) * sizeof *job->poses);
    if (job->poses == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for poses");
    }
    for (size_t i = 0; i < job->n_found; i++) {
        memcpy(job->poses[i].t_m, rows + 7 * i, 3 * sizeof *rows);
        memcpy(job->poses[i].q, rows + 7 * i + 3, 4 * sizeof *rows);
    }
    job->version = found->version;
    job->generation = found->generation;
    job->engine_ms = found->engine_ms;
    job->cost = found->cost;
    job->reply->initial_cost = found->initial_cost;
    job->reply->cost = found->cost;
    job->reply->n_iterations = found->n_iterations;
    job->reply->converged = found->converged;
    job->reply->n_outliers = found->n_outliers;
    return VXD_OK;
}

void vxd_posegraph_optimize_forget(struct vxd_request *request)
{
    struct optimize_job *job = request->state;

    if (job != NULL) {
        free(job->poses);
    }
}

/* The poses of all nodes: those that were added meanwhile move along with the last one that was
 * searched for. */
static void complete(const struct optimize_job *job,
                     const struct vxd_posegraph_version *newest, struct vxd_rigid *poses)
{
    size_t last = job->n_found - 1;
    struct vxd_rigid back;
    struct vxd_rigid moved;

    memcpy(poses, job->poses, job->n_found * sizeof *poses);
    vxd_rigid_inverse(&newest->poses[last], &back);
    vxd_rigid_compose(&job->poses[last], &back, &moved);
    for (size_t i = job->n_found; i < newest->n; i++) {
        vxd_rigid_compose(&moved, &newest->poses[i], &poses[i]);
    }
}

static double find_farthest(const struct vxd_posegraph_version *before,
                            const struct vxd_rigid *after)
{
    double most = 0;

    for (size_t i = 0; i < before->n; i++) {
        double square = 0;

        for (int k = 0; k < 3; k++) {
            double d = after[i].t_m[k] - before->poses[i].t_m[k];

            square += d * d;
        }
        most = fmax(most, square);
    }
    return sqrt(most);
}

enum vxd_status vxd_posegraph_optimize_submit(struct vxd_request *request,
                                              struct vxd_queue *queue,
                                              struct vxd_err *err)
{
    const Voxeld__V1__PosegraphOptimizeRequest *input =
        (const Voxeld__V1__PosegraphOptimizeRequest *)request->input;
    struct optimize_job *job = request->state;
    struct vxd_posegraph_record record = {.kind = VXD_POSEGRAPH_RECORD_POSES};
    const struct vxd_posegraph_version *newest;
    struct vxd_named_posegraph *graph;
    struct vxd_rigid *poses = NULL;
    enum vxd_status status;

    (void)queue;
    VXD_TRY(vxd_posegraph_open(request, input->name, err));
    graph = job->base.graph;
    newest = vxd_posegraph_find_version(&graph->content, 0);
    if (graph->named.generation != job->generation || newest == NULL ||
        newest->version != job->version || newest->n < job->n_found) {
        VXD_TRY(vxd_fail(err, VXD_ABORTED, NULL,
                         "another optimization of the pose graph \"%s\" has ended "
                         "meanwhile, or it was made anew; ask again",
                         input->name));
    }
    poses = malloc(newest->n * sizeof *poses);
    if (poses == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for poses"));
    }
    complete(job, newest, poses);
    job->reply->max_moved_m = find_farthest(newest, poses);
    record.version = newest->version + 1;
    record.cost = job->cost;
    record.n_poses = newest->n;
    record.poses = poses;
    VXD_TRY(vxd_posegraph_change(request, &record, err));
    job->reply->version = record.version;
    job->reply->n_nodes = record.n_poses;
    request->output = &job->reply->base;
out:
    free(poses);
    return status;
}

enum vxd_status vxd_posegraph_optimize_finish(struct vxd_request *request,
                                              struct vxd_queue *queue,
                                              struct vxd_err *err)
{
    const struct optimize_job *job = request->state;

    (void)queue;
    (void)err;
    job->reply->engine_ms = job->engine_ms + (double)request->engine_ns / 1e6;
    return VXD_OK;
}
