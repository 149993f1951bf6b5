// SPDX-License-Identifier: Apache-2.0
/* Where a scan was taken. In the first stage, on the write lane, keyframes are ranked and the nearest
 * ones held, with their poses; then, on read lanes, one is compared a stage. */
#include <stdlib.h>

#include "server/instance/instance.h"
#include "server/service/posegraph/posegraph_service.h"
#include "server/service/service.h"

#define DEFAULT_CELL_M 0.5

enum {
    MAX_CANDIDATES = 64,
    DEFAULT_CANDIDATES = 3
};

struct candidate {
    struct vxd_keyframe *keyframe; /* held */
    uint64_t id;
    double distance;
    struct vxd_rigid T_map_node;
    struct vxd_register_result result;
};

struct relocalize_job {
    struct vxd_posegraph_job base; /* first: request->state is both */
    struct vxd_posegraph_scan scan;
    struct vxd_keyframe *own; /* of_node: the keyframe that is looked for; held */
    double cell_m;
    size_t n_wanted;
    struct vxd_register_options options;
    struct candidate candidates[MAX_CANDIDATES];
    size_t n_candidates;
    size_t n_done;
    bool is_ranked;
    struct vxd_scan *source;
    Voxeld__V1__PosegraphRelocalizeResponse *reply;
};

/* --- check ------------------------------------------------------------------------------------- */

static enum vxd_status check_of_node(const Voxeld__V1__PosegraphRelocalizeRequest *input,
                                     struct vxd_err *err)
{
    const char *field = !input->of_node && input->id != 0            ? "id"
                        : !input->of_node && input->skip_recent != 0 ? "skip_recent"
                                                                     : NULL;

    if (field != NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field, "goes with of_node");
    }
    field = input->of_node && input->cloud != NULL        ? "cloud"
            : input->of_node && input->network[0] != '\0' ? "network"
            : input->of_node && input->n_descriptor > 0   ? "descriptor"
            : input->of_node && input->output[0] != '\0'  ? "output"
                                                          : NULL;
    return field == NULL ? VXD_OK
                         : vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                                    "is given beside of_node, whose keyframe has it");
}

enum vxd_status vxd_posegraph_relocalize_check(struct vxd_request *request,
                                               struct vxd_err *err)
{
    const Voxeld__V1__PosegraphRelocalizeRequest *input =
        (const Voxeld__V1__PosegraphRelocalizeRequest *)request->input;
    struct relocalize_job *job;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof *job, input->name, err));
    job = request->state;
    VXD_TRY(check_of_node(input, err));
    if (input->cell_m != 0 && input->cell_m < 0.01) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "cell_m", "is %g, must be 0.01 to 10",
                         input->cell_m));
    }
    job->cell_m = input->cell_m > 0 ? input->cell_m : DEFAULT_CELL_M;
    job->n_wanted = input->candidates > 0 ? input->candidates : DEFAULT_CANDIDATES;
    job->options = (struct vxd_register_options){.min_fitness = input->min_fitness,
                                                 .min_constraint = input->min_constraint};
    if (input->of_node) {
        return VXD_OK;
    }
    job->scan = (struct vxd_posegraph_scan){.cloud = input->cloud,
                                            .network = input->network,
                                            .output = input->output,
                                            .descriptor = input->descriptor,
                                            .n_descriptor = input->n_descriptor};
    VXD_TRY(vxd_posegraph_scan_check(request, &job->scan, err));
    if (input->network[0] == '\0' && input->n_descriptor == 0) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "network",
                         "is empty, and so is descriptor: one of the two is needed"));
    }
out:
    return status;
}

enum vxd_status vxd_posegraph_relocalize_prerequisite(struct vxd_request *request,
                                                      bool *waits, struct vxd_err *err)
{
    const struct relocalize_job *job = request->state;

    *waits = false;
    return job->scan.cloud != NULL
               ? vxd_posegraph_scan_prerequisite(request, &job->scan, waits, err)
               : VXD_OK;
}

enum vxd_status vxd_posegraph_relocalize_take(struct vxd_request *request,
                                              const ProtobufCMessage *output,
                                              struct vxd_err *err)
{
    struct relocalize_job *job = request->state;

    return vxd_posegraph_scan_take(&job->scan, output, err);
}

void vxd_posegraph_relocalize_forget(struct vxd_request *request)
{
    struct relocalize_job *job = request->state;

    if (job != NULL) {
        vxd_posegraph_scan_forget(&job->scan);
    }
}

/* --- candidates, on the write lane ------------------------------------------------------------------ */

/* The keyframe that is looked for itself, and which order of keyframes is near it. */
static enum vxd_status find_own(struct vxd_request *request,
                                const struct vxd_posegraph_content *content,
                                uint32_t *order, struct vxd_err *err)
{
    const Voxeld__V1__PosegraphRelocalizeRequest *input =
        (const Voxeld__V1__PosegraphRelocalizeRequest *)request->input;
    struct relocalize_job *job = request->state;
    uint32_t node = vxd_posegraph_find(content, input->id);

    if (node == UINT32_MAX || content->nodes[node].keyframe == NULL) {
        return vxd_fail(err, VXD_NOT_FOUND, "id", "node %llu %s",
                        (unsigned long long)input->id,
                        node == UINT32_MAX ? "is not there" : "has no keyframe");
    }
    if (content->nodes[node].keyframe->n_descriptor == 0) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, "id",
                        "the keyframe of node %llu has no descriptor",
                        (unsigned long long)input->id);
    }
    job->own = vxd_keyframe_hold(content->nodes[node].keyframe);
    *order = content->nodes[node].keyframe_order;
    return VXD_OK;
}

static enum vxd_status rank(struct vxd_request *request,
                            const struct vxd_posegraph_content *content,
                            struct vxd_err *err)
{
    const Voxeld__V1__PosegraphRelocalizeRequest *input =
        (const Voxeld__V1__PosegraphRelocalizeRequest *)request->input;
    struct relocalize_job *job = request->state;
    const struct vxd_posegraph_version *newest = vxd_posegraph_find_version(content, 0);
    struct vxd_relocalize_candidate found[MAX_CANDIDATES];
    const float **descriptors = calloc(content->n_nodes + 1, sizeof *descriptors);
    const float *query = job->scan.descriptor;
    size_t n_query = job->scan.n_descriptor;
    uint32_t order = 0;
    enum vxd_status status = VXD_OK;

    if (descriptors == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for candidates"));
    }
    if (input->of_node) {
        VXD_TRY(find_own(request, content, &order, err));
        query = job->own->descriptor;
        n_query = job->own->n_descriptor;
    }
    if (content->n_descriptor > 0 && n_query != content->n_descriptor) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT,
                         input->network[0] != '\0' ? "network" : "descriptor",
                         "gives %zu values; those of the graph's keyframes have %u",
                         n_query, content->n_descriptor));
    }
    for (size_t i = 0; i < content->n_nodes; i++) {
        const struct vxd_posegraph_node *node = &content->nodes[i];
        uint32_t apart = node->keyframe_order > order ? node->keyframe_order - order
                                                      : order - node->keyframe_order;

        if (node->keyframe != NULL && node->keyframe->n_descriptor > 0 &&
            (!input->of_node || (apart > 0 && apart > input->skip_recent))) {
            descriptors[i] = node->keyframe->descriptor;
            job->reply->n_keyframes++;
        }
    }
    job->n_candidates = vxd_relocalize_rank(query, descriptors, content->n_nodes, n_query,
                                            job->n_wanted, found);
    for (size_t i = 0; i < job->n_candidates; i++) {
        job->candidates[i] = (struct candidate){
            .keyframe = vxd_keyframe_hold(content->nodes[found[i].index].keyframe),
            .id = content->nodes[found[i].index].id,
            .distance = found[i].distance,
            .T_map_node = newest->poses[found[i].index]};
    }
out:
    free(descriptors);
    return status;
}

static enum vxd_status begin(struct vxd_request *request, struct vxd_queue *queue,
                             struct vxd_err *err)
{
    const Voxeld__V1__PosegraphRelocalizeRequest *input =
        (const Voxeld__V1__PosegraphRelocalizeRequest *)request->input;
    struct relocalize_job *job = request->state;
    const struct vxd_named_posegraph *graph;
    enum vxd_status status;

    VXD_TRY(vxd_posegraph_peek(request, input->name, &graph, err));
    if (graph == NULL) {
        return VXD_OK;
    }
    job->reply = vxd_message_new(
        request->decoder, &voxeld__v1__posegraph_relocalize_response__descriptor, err);
    if (job->reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(rank(request, &graph->content, err));
    if (!input->of_node && job->n_candidates > 0) {
        VXD_TRY(vxd_posegraph_scan_fetch(&job->scan, queue, err));
    }
    job->is_ranked = true;
    vxd_posegraph_go_on_reading(request);
out:
    return status;
}

/* --- comparisons, on read lanes ---------------------------------------------------------------------- */

static enum vxd_status compare(struct vxd_request *request, struct vxd_err *err)
{
    struct relocalize_job *job = request->state;
    struct candidate *candidate = &job->candidates[job->n_done];
    struct vxd_scan *target = NULL;
    enum vxd_status status = VXD_OK;

    if (job->source == NULL) {
        VXD_TRY(
            vxd_scan_create(job->own != NULL ? job->own->points : job->scan.points,
                            job->own != NULL ? job->own->n_points : job->scan.n_points,
                            job->cell_m, &job->source, err));
    }
    VXD_TRY(vxd_scan_create(candidate->keyframe->points, candidate->keyframe->n_points,
                            job->cell_m, &target, err));
    VXD_TRY(vxd_scan_register(vxd_context_pool(request->server->context), target,
                              job->source, &job->options, &candidate->result, err));
    job->n_done++;
out:
    vxd_scan_destroy(target);
    return status;
}

static const char *reason_of(enum vxd_register_verdict verdict)
{
    switch (verdict) {
    case VXD_REGISTER_BARE:
        return "too few upright surfaces";
    case VXD_REGISTER_UNFIT:
        return "the surfaces do not lie on each other";
    case VXD_REGISTER_SINGULAR:
        return "a direction is not held";
    case VXD_REGISTER_OK:
        break;
    }
    return "";
}

/* Accepted ones first, the best fit first. */
static int compare_candidates(const void *a, const void *b)
{
    const struct candidate *x = a;
    const struct candidate *y = b;
    bool x_ok = x->result.verdict == VXD_REGISTER_OK;
    bool y_ok = y->result.verdict == VXD_REGISTER_OK;

    if (x_ok != y_ok) {
        return x_ok ? -1 : 1;
    }
    if (x->result.fitness != y->result.fitness) {
        return x->result.fitness > y->result.fitness ? -1 : 1;
    }
    return (x->id > y->id) - (x->id < y->id);
}

static Voxeld__V1__PosegraphMatch *new_match(struct vxd_decoder *decoder,
                                             const struct candidate *candidate,
                                             struct vxd_err *err)
{
    const struct vxd_register_result *result = &candidate->result;
    Voxeld__V1__PosegraphMatch *match =
        vxd_message_new(decoder, &voxeld__v1__posegraph_match__descriptor, err);
    struct vxd_rigid T_map_sensor;

    if (match == NULL) {
        return NULL;
    }
    vxd_rigid_compose(&candidate->T_map_node, &result->T_target_source, &T_map_sensor);
    match->id = candidate->id;
    match->descriptor_distance = candidate->distance;
    match->accepted = result->verdict == VXD_REGISTER_OK;
    match->reason = (char *)(uintptr_t)reason_of(result->verdict);
    match->t_node_sensor = vxd_posegraph_new_pose(decoder, &result->T_target_source, err);
    match->t_map_sensor = vxd_posegraph_new_pose(decoder, &T_map_sensor, err);
    match->fitness = result->fitness;
    match->rmse_m = result->rmse_m;
    match->constraint = result->constraint;
    match->information = vxd_message_array(decoder, 36, sizeof(double), err);
    if (match->t_node_sensor == NULL || match->t_map_sensor == NULL ||
        match->information == NULL) {
        return NULL;
    }
    memcpy(match->information, result->information, sizeof result->information);
    match->n_information = 36;
    return match;
}

static enum vxd_status make_reply(struct vxd_request *request, struct vxd_err *err)
{
    struct relocalize_job *job = request->state;
    Voxeld__V1__PosegraphRelocalizeResponse *reply = job->reply;

    qsort(job->candidates, job->n_candidates, sizeof *job->candidates,
          compare_candidates);
    reply->matches = vxd_message_pointers(request->decoder, job->n_candidates, err);
    if (reply->matches == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    for (size_t i = 0; i < job->n_candidates; i++) {
        reply->matches[i] = new_match(request->decoder, &job->candidates[i], err);
        if (reply->matches[i] == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        reply->n_matches++;
        reply->n_accepted += reply->matches[i]->accepted ? 1 : 0;
    }
    request->output = &reply->base;
    return VXD_OK;
}

enum vxd_status vxd_posegraph_relocalize_submit(struct vxd_request *request,
                                                struct vxd_queue *queue,
                                                struct vxd_err *err)
{
    struct relocalize_job *job = request->state;
    enum vxd_status status;

    if (!job->is_ranked) {
        return begin(request, queue, err);
    }
    if (job->n_done < job->n_candidates) {
        VXD_TRY(compare(request, err));
    }
    if (job->n_done < job->n_candidates) {
        request->more = true;
        return VXD_OK;
    }
    status = make_reply(request, err);
out:
    return status;
}

enum vxd_status vxd_posegraph_relocalize_finish(struct vxd_request *request,
                                                struct vxd_queue *queue,
                                                struct vxd_err *err)
{
    const struct relocalize_job *job = request->state;

    (void)queue;
    (void)err;
    job->reply->engine_ms = (double)request->engine_ns / 1e6;
    return VXD_OK;
}

void vxd_posegraph_relocalize_release(struct vxd_request *request,
                                      struct vxd_queue *queue)
{
    struct relocalize_job *job = request->state;

    for (size_t i = 0; i < job->n_candidates; i++) {
        vxd_keyframe_drop(job->candidates[i].keyframe);
    }
    job->n_candidates = 0;
    vxd_keyframe_drop(job->own);
    job->own = NULL;
    vxd_scan_destroy(job->source);
    job->source = NULL;
    vxd_posegraph_scan_free(&job->scan, queue);
}
