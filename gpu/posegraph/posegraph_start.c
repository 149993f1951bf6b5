// SPDX-License-Identifier: Apache-2.0
/* Where the search begins when poses are far off: the relaxed problem, in which rotations are any
 * 3 x 3 matrices, is linear (Carlone et al. 2015, section IV-B). Its solutions become rotations, and
 * positions follow from them by another linear problem with the same structure. */
#include <stdlib.h>

#include "gpu/posegraph/posegraph_internal.h"
#include "gpu/posegraph/posegraph_math.h"

/* What both linear problems need. */
struct start {
    struct vxd_posegraph_solver *solver;
    double *diagonal; /* n_free x 9; of positions n_free */
    double *blocks;   /* n_pairs x 9, or n_pairs */
    double *right[3]; /* right-hand sides, n_free x 3 each, or n_free */
    double *R;        /* n_nodes x 9 */
};

/* The mean weight of an edge: of its rotations, or of its positions. */
static double weight_of(const double information[36], int first)
{
    return (information[7 * (size_t)first] + information[7 * (size_t)(first + 1)] +
            information[7 * (size_t)(first + 2)]) /
           3;
}

/* Empties systems of blocks of b x b. */
static void clear(struct start *start, size_t b)
{
    const struct vxd_posegraph_solver *solver = start->solver;

    memset(start->diagonal, 0, (size_t)solver->n_free * b * b * sizeof(double));
    memset(start->blocks, 0, solver->n_pairs * b * b * sizeof(double));
    for (int k = 0; k < 3; k++) {
        memset(start->right[k], 0, (size_t)solver->n_free * b * sizeof(double));
    }
}

static void add_identity(double *block, double weight)
{
    block[0] += weight;
    block[4] += weight;
    block[8] += weight;
}

/* Solves for the three right-hand sides. The solver's factor is not in use yet, and blocks are smaller
 * than its own, so its memory serves. */
static enum vxd_status solve(struct start *start, int b, struct vxd_err *err)
{
    struct vxd_posegraph_solver *solver = start->solver;
    struct vxd_block_factor factor = *solver->factor;
    uint32_t bad;

    factor.b = b;
    bad = vxd_block_factor_run(&factor, start->diagonal, start->blocks, solver->pairs);
    if (bad != UINT32_MAX) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, "edges",
                        "the equations of the start are singular at node %llu",
                        vxd_posegraph_id(solver->ids, solver->nodes[bad]));
    }
    for (int k = 0; k < 3; k++) {
        vxd_block_factor_solve(&factor, start->right[k]);
    }
    return VXD_OK;
}

/* The rotation that is nearest to a matrix: Newton's iteration for the polar decomposition. */
static bool nearest_rotation(double m[9])
{
    for (int i = 0; i < 100; i++) {
        double cofactors[9];
        double det;
        double change = 0;

        vxd_cross(m + 3, m + 6, cofactors);
        vxd_cross(m + 6, m, cofactors + 3);
        vxd_cross(m, m + 3, cofactors + 6);
        det = m[0] * cofactors[0] + m[1] * cofactors[1] + m[2] * cofactors[2];
        if (!(det > 1e-12)) {
            return false;
        }
        for (int k = 0; k < 9; k++) {
            double next = 0.5 * (m[k] + cofactors[k] / det);

            change = fmax(change, fabs(next - m[k]));
            m[k] = next;
        }
        if (change < 1e-13) {
            break;
        }
    }
    return true;
}

/* Rows r of the rotations are vectors with r_to = Z^T r_from, three systems with one matrix. */
static enum vxd_status find_rotations(struct start *start, struct vxd_err *err)
{
    struct vxd_posegraph_solver *solver = start->solver;
    enum vxd_status status;

    clear(start, 3);
    for (size_t i = 0; i < solver->n_edges; i++) {
        const struct vxd_posegraph_edge *edge = &solver->edges[i];
        uint32_t from = solver->variables[edge->from];
        uint32_t to = solver->variables[edge->to];
        double weight = weight_of(edge->information, 3);
        double z[9];

        vxd_quaternion_matrix(edge->T_from_to.q, z);
        if (from != VXD_POSEGRAPH_HELD) {
            add_identity(start->diagonal + (size_t)from * 9, weight);
        }
        if (to != VXD_POSEGRAPH_HELD) {
            add_identity(start->diagonal + (size_t)to * 9, weight);
        }
        if (solver->pair_of[i] != VXD_POSEGRAPH_HELD) {
            double *block = start->blocks + (size_t)solver->pair_of[i] * 9;

            for (int k = 0; k < 9; k++) {
                block[k] -= weight * z[k];
            }
            continue;
        }
        for (int k = 0; k < 3; k++) {
            const double *held_from = start->R + (size_t)edge->from * 9 + (size_t)(3 * k);
            const double *held_to = start->R + (size_t)edge->to * 9 + (size_t)(3 * k);

            for (int c = 0; c < 3; c++) {
                if (to != VXD_POSEGRAPH_HELD) {
                    start->right[k][3 * (size_t)to + (size_t)c] +=
                        weight * (z[c] * held_from[0] + z[3 + c] * held_from[1] +
                                  z[6 + c] * held_from[2]);
                } else if (from != VXD_POSEGRAPH_HELD) {
                    start->right[k][3 * (size_t)from + (size_t)c] +=
                        weight * (z[3 * (size_t)c] * held_to[0] +
                                  z[3 * (size_t)c + 1] * held_to[1] +
                                  z[3 * (size_t)c + 2] * held_to[2]);
                }
            }
        }
    }
    for (size_t i = 0; i < solver->n_priors; i++) {
        const struct vxd_posegraph_prior *prior = &solver->priors[i];
        uint32_t v = solver->variables[prior->node];
        double weight = weight_of(prior->information, 3);
        double z[9];

        if (v == VXD_POSEGRAPH_HELD) {
            continue;
        }
        vxd_quaternion_matrix(prior->T_map_node.q, z);
        add_identity(start->diagonal + (size_t)v * 9, weight);
        for (int k = 0; k < 9; k++) {
            start->right[k / 3][3 * (size_t)v + (size_t)(k % 3)] += weight * z[k];
        }
    }
    VXD_TRY(solve(start, 3, err));
    for (uint32_t v = 0; v < solver->n_free; v++) {
        double m[9];

        for (int k = 0; k < 9; k++) {
            m[k] = start->right[k / 3][3 * (size_t)v + (size_t)(k % 3)];
        }
        if (nearest_rotation(m)) {
            memcpy(start->R + (size_t)solver->nodes[v] * 9, m, sizeof m);
        } /* else the graph's own rotation stays */
    }
out:
    return status;
}

/* Positions with t_to - t_from = R_from z: three systems with one matrix of single numbers. */
static enum vxd_status find_positions(struct start *start, struct vxd_err *err)
{
    struct vxd_posegraph_solver *solver = start->solver;
    enum vxd_status status;

    clear(start, 1);
    for (size_t i = 0; i < solver->n_edges; i++) {
        const struct vxd_posegraph_edge *edge = &solver->edges[i];
        uint32_t from = solver->variables[edge->from];
        uint32_t to = solver->variables[edge->to];
        double weight = weight_of(edge->information, 0);
        double moved[3];

        vxd_apply3(start->R + (size_t)edge->from * 9, edge->T_from_to.t_m, moved);
        if (solver->pair_of[i] != VXD_POSEGRAPH_HELD) {
            start->blocks[solver->pair_of[i]] -= weight;
        }
        if (from != VXD_POSEGRAPH_HELD) {
            start->diagonal[from] += weight;
        }
        if (to != VXD_POSEGRAPH_HELD) {
            start->diagonal[to] += weight;
        }
        for (int c = 0; c < 3; c++) {
            if (from != VXD_POSEGRAPH_HELD) {
                double held =
                    to == VXD_POSEGRAPH_HELD ? solver->poses[edge->to].t_m[c] : 0;

                start->right[c][from] += weight * (held - moved[c]);
            }
            if (to != VXD_POSEGRAPH_HELD) {
                double held =
                    from == VXD_POSEGRAPH_HELD ? solver->poses[edge->from].t_m[c] : 0;

                start->right[c][to] += weight * (held + moved[c]);
            }
        }
    }
    for (size_t i = 0; i < solver->n_priors; i++) {
        const struct vxd_posegraph_prior *prior = &solver->priors[i];
        uint32_t v = solver->variables[prior->node];
        double weight = weight_of(prior->information, 0);

        if (v == VXD_POSEGRAPH_HELD) {
            continue;
        }
        start->diagonal[v] += weight;
        for (int c = 0; c < 3; c++) {
            start->right[c][v] += weight * prior->T_map_node.t_m[c];
        }
    }
    VXD_TRY(solve(start, 1, err));
    for (uint32_t v = 0; v < solver->n_free; v++) {
        struct vxd_rigid *pose = &solver->poses[solver->nodes[v]];

        for (int c = 0; c < 3; c++) {
            pose->t_m[c] = start->right[c][v];
        }
        vxd_matrix_quaternion(start->R + (size_t)solver->nodes[v] * 9, pose->q);
    }
out:
    return status;
}

enum vxd_status vxd_posegraph_start_chordal(struct vxd_posegraph_solver *solver,
                                            struct vxd_err *err)
{
    struct start start = {.solver = solver};
    size_t n = solver->n_free;
    enum vxd_status status;

    start.diagonal = malloc((n * 9 + 1) * sizeof(double));
    start.blocks = malloc((solver->n_pairs * 9 + 1) * sizeof(double));
    start.R = malloc((solver->n_nodes * 9 + 1) * sizeof(double));
    for (int k = 0; k < 3; k++) {
        start.right[k] = malloc((n * 3 + 1) * sizeof(double));
    }
    if (start.diagonal == NULL || start.blocks == NULL || start.R == NULL ||
        start.right[0] == NULL || start.right[1] == NULL || start.right[2] == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a start"));
    }
    for (size_t i = 0; i < solver->n_nodes; i++) {
        vxd_quaternion_matrix(solver->poses[i].q, start.R + i * 9);
    }
    VXD_TRY(find_rotations(&start, err));
    VXD_TRY(find_positions(&start, err));
out:
    for (int k = 0; k < 3; k++) {
        free(start.right[k]);
    }
    free(start.R);
    free(start.blocks);
    free(start.diagonal);
    return status;
}
