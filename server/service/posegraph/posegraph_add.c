// SPDX-License-Identifier: Apache-2.0
/* Nodes, edges and priors of a message, as the graph takes them. */
#include <stdlib.h>

#include "server/instance/instance.h"
#include "server/service/posegraph/posegraph_service.h"
#include "server/service/service.h"

enum {
    MAX_ITEMS = 1 << 21, /* of one request */
    FIELD_BYTES = 64
};

struct add_job {
    struct vxd_posegraph_job base; /* first: request->state is both */
    struct vxd_posegraph_record record;
    struct vxd_posegraph_record_node
        *nodes;      /* malloc'ed, as the others; freed by forget */
    bool *is_placed; /* of nodes: their pose is known */
    struct vxd_posegraph_edge *edges;
    struct vxd_posegraph_prior *priors;
};

/* The full matrix of 36, 21, 6 or no numbers. */
static enum vxd_status read_information(const double *values, size_t n, const char *what,
                                        size_t i, double out[36], struct vxd_err *err)
{
    char field[FIELD_BYTES];
    size_t at = 0;

    if (n != 36 && n != 21 && n != 6 && n != 0) {
        (void)snprintf(field, sizeof field, "%s[%zu].information", what, i);
        return vxd_fail(
            err, VXD_INVALID_ARGUMENT, field,
            "has %zu numbers; 36 (rows), 21 (upper triangle), 6 (diagonal) or "
            "none are right",
            n);
    }
    memset(out, 0, 36 * sizeof *out);
    for (size_t r = 0; r < 6; r++) {
        if (n == 0 || n == 6) {
            out[7 * r] = n == 6 ? values[r] : 1;
        }
        for (size_t c = 0; n == 36 && c < 6; c++) {
            out[6 * r + c] = values[6 * r + c];
        }
        for (size_t c = r; n == 21 && c < 6; c++, at++) {
            out[6 * r + c] = values[at];
            out[6 * c + r] = values[at];
        }
    }
    return VXD_OK;
}

static void read_robust(Voxeld__V1__PosegraphRobust robust, double width,
                        enum vxd_posegraph_robust *kind, double *out)
{
    *kind = (enum vxd_posegraph_robust)robust;
    *out = width > 0 ? width : 1;
}

static enum vxd_status read_edges(const Voxeld__V1__PosegraphAddRequest *input,
                                  struct add_job *job, struct vxd_err *err)
{
    char field[FIELD_BYTES];
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; i < input->n_edges; i++) {
        const Voxeld__V1__PosegraphEdge *from = input->edges[i];
        struct vxd_posegraph_edge *to = &job->edges[i];
        const char *wrong;

        (void)snprintf(field, sizeof field, "edges[%zu].T_from_to", i);
        VXD_TRY(vxd_posegraph_read_pose(from->t_from_to, field, &to->T_from_to, err));
        VXD_TRY(read_information(from->information, from->n_information, "edges", i,
                                 to->information, err));
        wrong = vxd_posegraph_check_information(to->information, true);
        if (wrong != NULL) {
            (void)snprintf(field, sizeof field, "edges[%zu].information", i);
            VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                             "of the edge from node %llu to node %llu %s; it must be "
                             "symmetric and positive definite",
                             (unsigned long long)from->from, (unsigned long long)from->to,
                             wrong));
        }
        read_robust(from->robust, from->width, &to->robust, &to->width);
        if (from->from == from->to) {
            (void)snprintf(field, sizeof field, "edges[%zu]", i);
            VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                             "leads from node %llu to itself",
                             (unsigned long long)from->from));
        }
    }
out:
    return status;
}

static enum vxd_status read_priors(const Voxeld__V1__PosegraphAddRequest *input,
                                   struct add_job *job, struct vxd_err *err)
{
    char field[FIELD_BYTES];
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; i < input->n_priors; i++) {
        const Voxeld__V1__PosegraphPrior *from = input->priors[i];
        struct vxd_posegraph_prior *to = &job->priors[i];
        const char *wrong;

        (void)snprintf(field, sizeof field, "priors[%zu].T_map_node", i);
        VXD_TRY(vxd_posegraph_read_pose(from->t_map_node, field, &to->T_map_node, err));
        VXD_TRY(read_information(from->information, from->n_information, "priors", i,
                                 to->information, err));
        wrong = vxd_posegraph_check_information(to->information, false);
        if (wrong != NULL) {
            (void)snprintf(field, sizeof field, "priors[%zu].information", i);
            VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                             "of the prior of node %llu %s; it must be symmetric and "
                             "positive semidefinite",
                             (unsigned long long)from->node, wrong));
        }
        read_robust(from->robust, from->width, &to->robust, &to->width);
    }
out:
    return status;
}

enum vxd_status vxd_posegraph_add_check(struct vxd_request *request, struct vxd_err *err)
{
    const Voxeld__V1__PosegraphAddRequest *input =
        (const Voxeld__V1__PosegraphAddRequest *)request->input;
    size_t n = input->n_nodes;
    struct add_job *job;
    enum vxd_status status;

    VXD_TRY(vxd_noun_begin_check(request, sizeof *job, input->name, err));
    job = request->state;
    if (n > MAX_ITEMS || input->n_edges > MAX_ITEMS || input->n_priors > MAX_ITEMS) {
        VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "nodes",
                         "a request adds at most %d nodes, edges and priors each",
                         MAX_ITEMS));
    }
    /* Edges take more memory than their bytes, so it is not the decoder's. */
    job->nodes = calloc(n + 1, sizeof *job->nodes);
    job->is_placed = calloc(n + 1, sizeof *job->is_placed);
    job->edges = calloc(input->n_edges + 1, sizeof *job->edges);
    job->priors = calloc(input->n_priors + 1, sizeof *job->priors);
    if (job->nodes == NULL || job->is_placed == NULL || job->edges == NULL ||
        job->priors == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a request"));
    }
    for (size_t i = 0; i < n; i++) {
        const Voxeld__V1__PosegraphNode *from = input->nodes[i];
        char field[FIELD_BYTES];

        (void)snprintf(field, sizeof field, "nodes[%zu].T_map_node", i);
        job->nodes[i].id = from->id;
        job->nodes[i].stamp_ns = from->stamp_ns;
        job->nodes[i].fixed = from->fixed;
        job->is_placed[i] = from->t_map_node != NULL;
        VXD_TRY(vxd_posegraph_read_pose(from->t_map_node, field,
                                        &job->nodes[i].T_map_node, err));
    }
    VXD_TRY(read_edges(input, job, err));
    VXD_TRY(read_priors(input, job, err));
    request->cost_bytes = request->body_bytes;
out:
    return status;
}

/* Frees what check took. */
void vxd_posegraph_add_forget(struct vxd_request *request)
{
    struct add_job *job = request->state;

    if (job != NULL) {
        free(job->priors);
        free(job->edges);
        free(job->is_placed);
        free(job->nodes);
    }
}

/* --- submit ------------------------------------------------------------------------------------ */

struct name {
    uint64_t id;
    uint32_t index;
};

/* Nodes by id: those of the graph, then those of the request, by a sorted list. */
struct names {
    const struct vxd_posegraph_content *content;
    struct name *sorted; /* the request's nodes, by id */
    size_t n;
};

static int compare_names(const void *a, const void *b)
{
    uint64_t x = ((const struct name *)a)->id;
    uint64_t y = ((const struct name *)b)->id;

    return (x > y) - (x < y);
}

static uint32_t find(const struct names *names, uint64_t id)
{
    uint32_t found = vxd_posegraph_find(names->content, id);
    size_t low = 0;
    size_t high = names->n;

    if (found != UINT32_MAX) {
        return found;
    }
    while (low < high) {
        size_t middle = (low + high) / 2;
        uint64_t other = names->sorted[middle].id;

        if (other == id) {
            return (uint32_t)names->content->n_nodes + names->sorted[middle].index;
        }
        if (other < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return UINT32_MAX;
}

static enum vxd_status find_node(const struct names *names, uint64_t id, const char *what,
                                 size_t i, const char *end, uint32_t *out,
                                 struct vxd_err *err)
{
    char field[FIELD_BYTES];

    *out = find(names, id);
    if (*out != UINT32_MAX) {
        return VXD_OK;
    }
    (void)snprintf(field, sizeof field, "%s[%zu].%s", what, i, end);
    return vxd_fail(err, VXD_NOT_FOUND, field,
                    "there is no node %llu, and the request adds none",
                    (unsigned long long)id);
}

static enum vxd_status name_nodes(const Voxeld__V1__PosegraphAddRequest *input,
                                  struct add_job *job, const struct names *names,
                                  struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; i < input->n_edges; i++) {
        VXD_TRY(find_node(names, input->edges[i]->from, "edges", i, "from",
                          &job->edges[i].from, err));
        VXD_TRY(find_node(names, input->edges[i]->to, "edges", i, "to", &job->edges[i].to,
                          err));
    }
    for (size_t i = 0; i < input->n_priors; i++) {
        VXD_TRY(find_node(names, input->priors[i]->node, "priors", i, "node",
                          &job->priors[i].node, err));
    }
out:
    return status;
}

/* Places nodes that came without a pose at the end of the first edge from one that is known; the first
 * node of an empty graph at the map's zero. */
static enum vxd_status place(const Voxeld__V1__PosegraphAddRequest *input,
                             struct add_job *job,
                             const struct vxd_posegraph_content *content,
                             struct vxd_err *err)
{
    const struct vxd_posegraph_version *newest = vxd_posegraph_find_version(content, 0);
    size_t n_before = content->n_nodes;

    if (n_before == 0 && input->n_nodes > 0) {
        job->is_placed[0] = true;
    }
    for (size_t i = 0; i < input->n_edges; i++) {
        const struct vxd_posegraph_edge *edge = &job->edges[i];
        const struct vxd_rigid *from =
            edge->from < n_before ? &newest->poses[edge->from]
                                  : &job->nodes[edge->from - n_before].T_map_node;

        if (edge->to >= n_before && !job->is_placed[edge->to - n_before] &&
            (edge->from < n_before || job->is_placed[edge->from - n_before])) {
            vxd_rigid_compose(from, &edge->T_from_to,
                              &job->nodes[edge->to - n_before].T_map_node);
            job->is_placed[edge->to - n_before] = true;
        }
    }
    for (size_t i = 0; i < input->n_nodes; i++) {
        if (!job->is_placed[i]) {
            char field[FIELD_BYTES];

            (void)snprintf(field, sizeof field, "nodes[%zu].T_map_node", i);
            return vxd_fail(
                err, VXD_INVALID_ARGUMENT, field,
                "is absent, and no edge of the request reaches node %llu from "
                "one whose pose is known by then",
                (unsigned long long)job->nodes[i].id);
        }
    }
    return VXD_OK;
}

enum vxd_status vxd_posegraph_add_submit(struct vxd_request *request,
                                         struct vxd_queue *queue, struct vxd_err *err)
{
    const Voxeld__V1__PosegraphAddRequest *input =
        (const Voxeld__V1__PosegraphAddRequest *)request->input;
    struct add_job *job = request->state;
    Voxeld__V1__PosegraphAddResponse *reply = vxd_message_new(
        request->decoder, &voxeld__v1__posegraph_add_response__descriptor, err);
    struct names names = {.n = input->n_nodes};
    enum vxd_status status;

    (void)queue;
    if (reply == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_posegraph_open(request, input->name, err));
    names.content = &job->base.graph->content;
    names.sorted = malloc((names.n + 1) * sizeof *names.sorted);
    if (names.sorted == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for nodes"));
    }
    for (size_t i = 0; i < names.n; i++) {
        names.sorted[i] = (struct name){job->nodes[i].id, (uint32_t)i};
    }
    qsort(names.sorted, names.n, sizeof *names.sorted, compare_names);
    VXD_TRY(name_nodes(input, job, &names, err));
    VXD_TRY(place(input, job, names.content, err));
    job->record = (struct vxd_posegraph_record){.kind = VXD_POSEGRAPH_RECORD_ADD,
                                                .n_nodes = input->n_nodes,
                                                .nodes = job->nodes,
                                                .n_edges = input->n_edges,
                                                .edges = job->edges,
                                                .n_priors = input->n_priors,
                                                .priors = job->priors};
    VXD_TRY(vxd_posegraph_change(request, &job->record, err));
    reply->n_nodes = job->base.graph->content.n_nodes;
    reply->n_edges = job->base.graph->content.n_edges;
    reply->n_priors = job->base.graph->content.n_priors;
    request->output = &reply->base;
out:
    free(names.sorted);
    return status;
}
