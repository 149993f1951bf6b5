// SPDX-License-Identifier: Apache-2.0
/* The solver behind its opaque name. */
#ifndef VXD_GPU_POSEGRAPH_POSEGRAPH_INTERNAL_H
#define VXD_GPU_POSEGRAPH_POSEGRAPH_INTERNAL_H

#include "gpu/posegraph/block_cholesky.h"
#include "gpu/posegraph/posegraph.h"

enum {
    VXD_POSEGRAPH_LINEAR =
        120 /* numbers of a linearized edge: H_to, H_from_to, H_from, two gradients */
};

#define VXD_POSEGRAPH_HELD UINT32_MAX /* the variable of a pose that is not moved */

struct vxd_posegraph_solver {
    struct vxd_pool *pool;
    struct vxd_posegraph_options options;
    struct vxd_posegraph_stats stats;
    size_t n_nodes;
    size_t n_edges;
    size_t n_priors;
    struct vxd_rigid *poses;
    struct vxd_rigid *trial;
    uint64_t *ids;
    struct vxd_posegraph_edge *edges;
    struct vxd_posegraph_prior *priors;
    uint32_t *variables; /* of nodes: their number among those that are moved */
    uint32_t *nodes;     /* of variables */
    uint32_t n_free;

    /* Pairs of variables, an edge each where both of its poses are moved. */
    struct vxd_block_pair *pairs;
    uint32_t *pair_of; /* by edge; VXD_POSEGRAPH_HELD: none */
    size_t n_pairs;
    size_t *
        first_use; /* n_free + 1: index in `uses` of the edges and priors of a variable */
    uint32_t
        *uses; /* 2 e: edge e leaves it; 2 e + 1: reaches it; 2 n_edges + p: prior p */

    struct vxd_block_plan *plan;
    struct vxd_block_factor *factor;
    double *
        linear; /* by edge: the three blocks and two gradients of 6; by prior: one of each */
    double *costs;    /* by edge and prior */
    double *diagonal; /* n_free x 36 */
    double *damped;   /* n_free x 36 */
    double *blocks;   /* n_pairs x 36 */
    double *gradient; /* n_free x 6 */
    double *step;     /* n_free x 6 */

    double damping;
    double growth; /* of the damping after the next rejected step */
    bool has_started;
    bool
        is_linear; /* linear, diagonal, blocks and gradient are those of the present poses */
    bool is_done;
};

/* posegraph_check.c. Checks every field of a graph, and its connection.
 * out     held  n_nodes: poses that are not moved
 * errors  as vxd_posegraph_solver_create */
enum vxd_status vxd_posegraph_check(const struct vxd_posegraph *graph, bool *held,
                                    struct vxd_err *err);

/* The id of a node. */
static inline unsigned long long vxd_posegraph_id(const uint64_t *ids, size_t node)
{
    return ids != NULL ? ids[node] : node;
}

/* posegraph_start.c. Replaces the solver's poses by the solution of the relaxed problem.
 * errors  FAILED_PRECONDITION, RESOURCE_EXHAUSTED */
enum vxd_status vxd_posegraph_start_chordal(struct vxd_posegraph_solver *solver,
                                            struct vxd_err *err);

/* posegraph_linear.c. The cost at some poses. */
double vxd_posegraph_cost(struct vxd_posegraph_solver *solver,
                          const struct vxd_rigid *poses);

/* posegraph_linear.c. The normal equations at the solver's poses. */
void vxd_posegraph_linearize(struct vxd_posegraph_solver *solver);

#endif
