// SPDX-License-Identifier: Apache-2.0
/* Costs and normal equations. Each edge is linearized by itself; then each variable sums what its
 * edges say, in their order, so that threads change no bit. */
#include <stdlib.h>

#include "gpu/posegraph/posegraph_internal.h"
#include "gpu/posegraph/posegraph_math.h"

#define EDGES_AT_ONCE 256
#define LINEAR VXD_POSEGRAPH_LINEAR

struct evaluation {
    struct vxd_posegraph_solver *solver;
    const struct vxd_rigid *poses;
};

static void residual_of(const struct vxd_posegraph_solver *solver,
                        const struct vxd_rigid *poses, size_t i,
                        struct vxd_rigid *between, double e[6])
{
    if (i < solver->n_edges) {
        const struct vxd_posegraph_edge *edge = &solver->edges[i];

        vxd_edge_residual(&poses[edge->from], &poses[edge->to], &edge->T_from_to, between,
                          e);
    } else {
        const struct vxd_posegraph_prior *prior = &solver->priors[i - solver->n_edges];
        struct vxd_rigid error;

        vxd_rigid_between(&prior->T_map_node, &poses[prior->node], &error);
        vxd_rigid_log(&error, e);
    }
}

static const double *information_of(const struct vxd_posegraph_solver *solver, size_t i,
                                    enum vxd_posegraph_robust *robust, double *width)
{
    if (i < solver->n_edges) {
        *robust = solver->edges[i].robust;
        *width = solver->edges[i].width;
        return solver->edges[i].information;
    }
    *robust = solver->priors[i - solver->n_edges].robust;
    *width = solver->priors[i - solver->n_edges].width;
    return solver->priors[i - solver->n_edges].information;
}

static void cost_edges(void *args, size_t begin, size_t end)
{
    const struct evaluation *at = args;

    for (size_t i = begin; i < end; i++) {
        enum vxd_posegraph_robust robust;
        double width;
        const double *information = information_of(at->solver, i, &robust, &width);
        struct vxd_rigid between;
        double weight;
        double e[6];

        residual_of(at->solver, at->poses, i, &between, e);
        at->solver->costs[i] =
            vxd_robust_cost(robust, width, vxd_square_by(information, e), &weight);
    }
}

double vxd_posegraph_cost(struct vxd_posegraph_solver *solver,
                          const struct vxd_rigid *poses)
{
    struct evaluation at = {solver, poses};
    size_t n = solver->n_edges + solver->n_priors;
    double sum = 0;

    vxd_parallel_for(solver->pool, n, EDGES_AT_ONCE, cost_edges, &at);
    for (size_t i = 0; i < n; i++) {
        sum += solver->costs[i];
    }
    return sum;
}

void vxd_posegraph_solver_get_edges(const struct vxd_posegraph_solver *solver,
                                    double *squares, double *weights)
{
    for (size_t i = 0; i < solver->n_edges; i++) {
        enum vxd_posegraph_robust robust;
        double width;
        const double *information = information_of(solver, i, &robust, &width);
        struct vxd_rigid between;
        double weight;
        double e[6];
        double square;

        residual_of(solver, solver->poses, i, &between, e);
        square = vxd_square_by(information, e);
        (void)vxd_robust_cost(robust, width, square, &weight);
        if (squares != NULL) {
            squares[i] = square;
        }
        if (weights != NULL) {
            weights[i] = weight;
        }
    }
}

void vxd_rigid_compose(const struct vxd_rigid *a, const struct vxd_rigid *b,
                       struct vxd_rigid *out)
{
    vxd_rigid_multiply(a, b, out);
    vxd_quaternion_normalize(out->q);
}

void vxd_rigid_inverse(const struct vxd_rigid *a, struct vxd_rigid *out)
{
    vxd_rigid_invert(a, out);
}

double vxd_posegraph_edge_square(const struct vxd_posegraph_edge *edge,
                                 const struct vxd_rigid *T_map_from,
                                 const struct vxd_rigid *T_map_to, double *weight)
{
    struct vxd_rigid between;
    double e[6];
    double square;

    vxd_edge_residual(T_map_from, T_map_to, &edge->T_from_to, &between, e);
    square = vxd_square_by(edge->information, e);
    (void)vxd_robust_cost(edge->robust, edge->width, square, weight);
    return square;
}

/* --- the normal equations ---------------------------------------------------------------------- */

/* out = a^T b, 6 x 6 rows first; where a is block-triangular its zeros are multiplied, too. */
static void multiply_transposed(const double a[36], const double b[36], double out[36])
{
    for (int r = 0; r < 6; r++) {
        double row[6] = {0};

        for (int k = 0; k < 6; k++) {
            double factor = a[6 * k + r];

            for (int c = 0; c < 6; c++) {
                row[c] += factor * b[6 * k + c];
            }
        }
        memcpy(out + (size_t)(6 * r), row, sizeof row);
    }
}

static void multiply(const double a[36], const double b[36], double out[36])
{
    for (int r = 0; r < 6; r++) {
        double row[6] = {0};

        for (int k = 0; k < 6; k++) {
            double factor = a[6 * r + k];

            for (int c = 0; c < 6; c++) {
                row[c] += factor * b[6 * k + c];
            }
        }
        memcpy(out + (size_t)(6 * r), row, sizeof row);
    }
}

static void apply_transposed(const double a[36], const double x[6], double out[6])
{
    for (int r = 0; r < 6; r++) {
        double sum = 0;

        for (int k = 0; k < 6; k++) {
            sum += a[6 * k + r] * x[k];
        }
        out[r] = sum;
    }
}

/* With J = d e / d x_to, and d e / d x_from = -J Ad: H_to = J^T W J, H_from,to = -Ad^T H_to,
 * H_from = Ad^T H_to Ad; the same of the gradients. */
static void linearize_edges(void *args, size_t begin, size_t end)
{
    const struct evaluation *at = args;
    struct vxd_posegraph_solver *solver = at->solver;

    for (size_t i = begin; i < end; i++) {
        enum vxd_posegraph_robust robust;
        double width;
        const double *information = information_of(solver, i, &robust, &width);
        double *out = solver->linear + i * LINEAR;
        struct vxd_rigid between = {.q = {0, 0, 0, 1}};
        struct vxd_rigid back;
        double e[6];
        double j[36];
        double wj[36];
        double ad[36];
        double weight;

        residual_of(solver, at->poses, i, &between, e);
        (void)vxd_robust_cost(robust, width, vxd_square_by(information, e), &weight);
        vxd_right_jacobian_inverse(e, j);
        multiply(information, j, wj);
        for (int k = 0; k < 36; k++) {
            wj[k] *= weight;
        }
        multiply_transposed(j, wj, out);
        apply_transposed(wj, e, out + 108);
        if (i >= solver->n_edges) {
            continue;
        }
        vxd_rigid_invert(&between, &back);
        vxd_rigid_adjoint(&back, ad);
        multiply_transposed(ad, out, out + 36);
        multiply(out + 36, ad, out + 72);
        apply_transposed(ad, out + 108, out + 114);
        for (int k = 0; k < 36; k++) {
            out[36 + k] = -out[36 + k];
        }
        for (int k = 0; k < 6; k++) {
            out[114 + k] = -out[114 + k];
        }
        if (solver->pair_of[i] != VXD_POSEGRAPH_HELD) {
            memcpy(solver->blocks + (size_t)solver->pair_of[i] * 36, out + 36,
                   36 * sizeof *out);
        }
    }
}

static void sum_variables(void *args, size_t begin, size_t end)
{
    const struct evaluation *at = args;
    struct vxd_posegraph_solver *solver = at->solver;

    for (size_t v = begin; v < end; v++) {
        double *block = solver->diagonal + v * 36;
        double *gradient = solver->gradient + v * 6;

        memset(block, 0, 36 * sizeof *block);
        memset(gradient, 0, 6 * sizeof *gradient);
        for (size_t k = solver->first_use[v]; k < solver->first_use[v + 1]; k++) {
            uint32_t use = solver->uses[k];
            bool is_prior = use >= 2 * solver->n_edges;
            size_t i = is_prior ? use - solver->n_edges : use / 2;
            bool leaves = !is_prior && use % 2 == 0;
            const double *from = solver->linear + i * LINEAR;

            for (int c = 0; c < 36; c++) {
                block[c] += from[(leaves ? 72 : 0) + c];
            }
            for (int c = 0; c < 6; c++) {
                gradient[c] += from[(leaves ? 114 : 108) + c];
            }
        }
    }
}

void vxd_posegraph_linearize(struct vxd_posegraph_solver *solver)
{
    struct evaluation at = {solver, solver->poses};

    vxd_parallel_for(solver->pool, solver->n_edges + solver->n_priors, EDGES_AT_ONCE,
                     linearize_edges, &at);
    vxd_parallel_for(solver->pool, solver->n_free, EDGES_AT_ONCE, sum_variables, &at);
}
