// SPDX-License-Identifier: Apache-2.0
/* What may be wrong with a graph. */
#include <stdlib.h>

#include "gpu/posegraph/posegraph_internal.h"
#include "gpu/posegraph/posegraph_math.h"

#define MOST_METRES 1e9
#define UNIT_TOLERANCE 1e-3
#define SYMMETRY_TOLERANCE 1e-6
#define SINGULAR 1e-12 /* of the largest number on the diagonal */

/* What is wrong with a motion, NULL = nothing. */
static const char *check_rigid(const struct vxd_rigid *rigid)
{
    double square = 0;

    for (int i = 0; i < 3; i++) {
        if (!(fabs(rigid->t_m[i]) <= MOST_METRES)) {
            return "its position is not finite, or beyond 1e9 m";
        }
    }
    for (int i = 0; i < 4; i++) {
        square += rigid->q[i] * rigid->q[i];
    }
    return fabs(square - 1) <= UNIT_TOLERANCE ? NULL
                                              : "its rotation is not a unit quaternion";
}

const char *vxd_posegraph_check_information(const double information[36], bool definite)
{
    double a[36];
    double most = 0;

    for (int i = 0; i < 36; i++) {
        if (!(fabs(information[i]) < 1e100)) {
            return "is not finite";
        }
        a[i] = information[i];
        most = fmax(most, fabs(a[i]));
    }
    for (int r = 0; r < 6; r++) {
        for (int c = 0; c < r; c++) {
            if (fabs(a[6 * r + c] - a[6 * c + r]) > SYMMETRY_TOLERANCE * most) {
                return "is not symmetric";
            }
        }
    }
    if (most == 0) {
        return "is zero";
    }
    /* LDL^T; each pivot is compared with what its diagonal was. */
    for (int j = 0; j < 6; j++) {
        double pivot = a[7 * (size_t)j];
        double zero = SINGULAR * fmax(information[7 * (size_t)j], definite ? 0 : most);

        if (pivot < (definite ? 0 : -zero) || (definite && !(pivot > zero))) {
            return definite ? "is singular or not positive definite"
                            : "is not positive semidefinite";
        }
        for (int r = j + 1; r < 6; r++) {
            if (pivot <= zero) {
                if (fabs(a[6 * r + j]) > 1e-6 * most) {
                    return "is not positive semidefinite";
                }
                continue;
            }
            for (int c = j + 1; c <= r; c++) {
                a[6 * r + c] -= a[6 * r + j] * a[6 * c + j] / pivot;
            }
        }
    }
    return NULL;
}

static enum vxd_status check_robust(enum vxd_posegraph_robust robust, double width,
                                    const char *what, size_t i, struct vxd_err *err)
{
    char field[48];

    if ((int)robust >= VXD_POSEGRAPH_SQUARES && (int)robust <= VXD_POSEGRAPH_DCS &&
        (robust == VXD_POSEGRAPH_SQUARES || (width > 0 && width <= 1e9))) {
        return VXD_OK;
    }
    (void)snprintf(field, sizeof field, "%s[%zu].robust", what, i);
    return vxd_fail(
        err, VXD_INVALID_ARGUMENT, field,
        "the width of a robust cost must be above 0 and at most 1e9; it is %g", width);
}

static enum vxd_status check_edge(const struct vxd_posegraph *graph, size_t i,
                                  struct vxd_err *err)
{
    const struct vxd_posegraph_edge *edge = &graph->edges[i];
    const char *wrong;
    char field[48];

    (void)snprintf(field, sizeof field, "edges[%zu]", i);
    if (edge->from >= graph->n_nodes || edge->to >= graph->n_nodes ||
        edge->from == edge->to) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "leads from node %u to node %u; it must lead from one of the %zu "
                        "nodes to another one",
                        edge->from, edge->to, graph->n_nodes);
    }
    wrong = check_rigid(&edge->T_from_to);
    if (wrong != NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "the edge from node %llu to node %llu: %s",
                        vxd_posegraph_id(graph->ids, edge->from),
                        vxd_posegraph_id(graph->ids, edge->to), wrong);
    }
    wrong = vxd_posegraph_check_information(edge->information, true);
    if (wrong != NULL) {
        return vxd_fail(
            err, VXD_INVALID_ARGUMENT, field,
            "the information of the edge from node %llu to node %llu %s; it must "
            "be symmetric and positive definite",
            vxd_posegraph_id(graph->ids, edge->from),
            vxd_posegraph_id(graph->ids, edge->to), wrong);
    }
    return check_robust(edge->robust, edge->width, "edges", i, err);
}

static enum vxd_status check_prior(const struct vxd_posegraph *graph, size_t i,
                                   struct vxd_err *err)
{
    const struct vxd_posegraph_prior *prior = &graph->priors[i];
    const char *wrong;
    char field[48];

    (void)snprintf(field, sizeof field, "priors[%zu]", i);
    if (prior->node >= graph->n_nodes) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                        "is of node %u, and there are %zu nodes", prior->node,
                        graph->n_nodes);
    }
    wrong = check_rigid(&prior->T_map_node);
    if (wrong != NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field, "the prior of node %llu: %s",
                        vxd_posegraph_id(graph->ids, prior->node), wrong);
    }
    wrong = vxd_posegraph_check_information(prior->information, false);
    if (wrong != NULL) {
        return vxd_fail(
            err, VXD_INVALID_ARGUMENT, field,
            "the information of the prior of node %llu %s; it must be symmetric "
            "and positive semidefinite",
            vxd_posegraph_id(graph->ids, prior->node), wrong);
    }
    return check_robust(prior->robust, prior->width, "priors", i, err);
}

/* --- connection ---------------------------------------------------------------------------------- */

static uint32_t find_root(uint32_t *parents, uint32_t i)
{
    while (parents[i] != i) {
        parents[i] = parents[parents[i]];
        i = parents[i];
    }
    return i;
}

/* Every node must hang together with one that is fixed or has a prior; where there is none, with the
 * first one, which is held. A part without a definite prior has its first node held only if it has
 * no prior at all. */
static enum vxd_status check_connected(const struct vxd_posegraph *graph, bool *held,
                                       uint32_t *parents, bool *is_known,
                                       struct vxd_err *err)
{
    bool any = false;

    for (uint32_t i = 0; i < graph->n_nodes; i++) {
        parents[i] = i;
        is_known[i] = false;
    }
    for (size_t i = 0; i < graph->n_edges; i++) {
        uint32_t a = find_root(parents, graph->edges[i].from);
        uint32_t b = find_root(parents, graph->edges[i].to);

        parents[a > b ? a : b] = a > b ? b : a; /* the root is the lowest node */
    }
    for (uint32_t i = 0; i < graph->n_nodes; i++) {
        held[i] = graph->fixed != NULL && graph->fixed[i];
        if (held[i]) {
            is_known[find_root(parents, i)] = true;
            any = true;
        }
    }
    for (size_t i = 0; i < graph->n_priors; i++) {
        is_known[find_root(parents, graph->priors[i].node)] = true;
        any = true;
    }
    if (!any) {
        held[0] = true;
        is_known[0] = true;
    }
    for (uint32_t i = 0; i < graph->n_nodes; i++) {
        if (!is_known[find_root(parents, i)]) {
            return vxd_fail(
                err, VXD_FAILED_PRECONDITION, "edges",
                "the graph is not connected: no edges lead from node %llu to %s",
                vxd_posegraph_id(graph->ids, i),
                any ? "one that is fixed or has a prior" : "the first node");
        }
    }
    return VXD_OK;
}

enum vxd_status vxd_posegraph_check(const struct vxd_posegraph *graph, bool *held,
                                    struct vxd_err *err)
{
    uint32_t *parents = NULL;
    bool *is_known = NULL;
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; i < graph->n_nodes; i++) {
        const char *wrong = check_rigid(&graph->T_map_node[i]);

        if (wrong != NULL) {
            VXD_TRY(vxd_fail(err, VXD_INVALID_ARGUMENT, "nodes", "node %llu: %s",
                             vxd_posegraph_id(graph->ids, i), wrong));
        }
    }
    for (size_t i = 0; i < graph->n_edges; i++) {
        VXD_TRY(check_edge(graph, i, err));
    }
    for (size_t i = 0; i < graph->n_priors; i++) {
        VXD_TRY(check_prior(graph, i, err));
    }
    parents = malloc((graph->n_nodes + 1) * sizeof *parents);
    is_known = malloc((graph->n_nodes + 1) * sizeof *is_known);
    if (parents == NULL || is_known == NULL) {
        VXD_TRY(
            vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory to check a graph"));
    }
    if (graph->n_nodes > 0) {
        VXD_TRY(check_connected(graph, held, parents, is_known, err));
    }
out:
    free(is_known);
    free(parents);
    return status;
}
