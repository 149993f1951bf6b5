// SPDX-License-Identifier: Apache-2.0
/* The solver: its memory, the steps of Levenberg and Marquardt, covariances. */
#include "gpu/posegraph/posegraph.h"

#include <stdlib.h>

#include "gpu/posegraph/posegraph_internal.h"
#include "gpu/posegraph/posegraph_math.h"

#define FIRST_DAMPING 1e-6 /* of the diagonal */
#define MOST_DAMPING 1e16
#define LEAST_DAMPING 1e-12
#define DEFAULT_ITERATIONS 100
#define DEFAULT_TOLERANCE 1e-5

/* --- making it --------------------------------------------------------------------------------- */

static enum vxd_status no_memory(struct vxd_err *err)
{
    return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a pose graph");
}

static enum vxd_status check_sizes(const struct vxd_posegraph *graph,
                                   const struct vxd_posegraph_options *options,
                                   struct vxd_err *err)
{
    if (graph->n_nodes == 0 || graph->n_nodes > VXD_POSEGRAPH_MAX_NODES) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "nodes",
                        "there are %zu; there must be 1 to %d", graph->n_nodes,
                        VXD_POSEGRAPH_MAX_NODES);
    }
    if (graph->n_edges > VXD_POSEGRAPH_MAX_EDGES ||
        graph->n_priors > VXD_POSEGRAPH_MAX_EDGES) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "edges",
                        "there are %zu edges and %zu priors; there may be %d of each",
                        graph->n_edges, graph->n_priors, VXD_POSEGRAPH_MAX_EDGES);
    }
    if (options->max_iterations < 0 ||
        options->max_iterations > VXD_POSEGRAPH_MAX_ITERATIONS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "max_iterations",
                        "is %d; it must be 0 to %d", options->max_iterations,
                        VXD_POSEGRAPH_MAX_ITERATIONS);
    }
    if (!(options->relative_tolerance >= 0 && options->relative_tolerance < 1)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "relative_tolerance",
                        "is %g; it must be at least 0 and below 1",
                        options->relative_tolerance);
    }
    return VXD_OK;
}

static void *copy(const void *from, size_t n, size_t item_bytes)
{
    void *to = malloc(n * item_bytes + 1);

    if (to != NULL && n > 0) {
        memcpy(to, from, n * item_bytes);
    }
    return to;
}

static bool copy_graph(struct vxd_posegraph_solver *solver,
                       const struct vxd_posegraph *graph)
{
    solver->n_nodes = graph->n_nodes;
    solver->n_edges = graph->n_edges;
    solver->n_priors = graph->n_priors;
    solver->poses = copy(graph->T_map_node, graph->n_nodes, sizeof *solver->poses);
    solver->trial = copy(graph->T_map_node, graph->n_nodes, sizeof *solver->trial);
    solver->edges = copy(graph->edges, graph->n_edges, sizeof *solver->edges);
    solver->priors = copy(graph->priors, graph->n_priors, sizeof *solver->priors);
    solver->ids = malloc(graph->n_nodes * sizeof *solver->ids);
    if (solver->poses == NULL || solver->trial == NULL || solver->edges == NULL ||
        solver->priors == NULL || solver->ids == NULL) {
        return false;
    }
    for (size_t i = 0; i < graph->n_nodes; i++) {
        solver->ids[i] = vxd_posegraph_id(graph->ids, i);
        vxd_quaternion_normalize(solver->poses[i].q);
        solver->trial[i] = solver->poses[i];
    }
    for (size_t i = 0; i < graph->n_edges; i++) {
        vxd_quaternion_normalize(solver->edges[i].T_from_to.q);
    }
    for (size_t i = 0; i < graph->n_priors; i++) {
        vxd_quaternion_normalize(solver->priors[i].T_map_node.q);
    }
    return true;
}

/* Numbers the poses that are moved, and lists pairs. */
static bool number(struct vxd_posegraph_solver *solver, const bool *held)
{
    solver->variables = malloc(solver->n_nodes * sizeof *solver->variables);
    solver->nodes = malloc(solver->n_nodes * sizeof *solver->nodes);
    solver->pairs = malloc((solver->n_edges + 1) * sizeof *solver->pairs);
    solver->pair_of = malloc((solver->n_edges + 1) * sizeof *solver->pair_of);
    if (solver->variables == NULL || solver->nodes == NULL || solver->pairs == NULL ||
        solver->pair_of == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < solver->n_nodes; i++) {
        solver->variables[i] = held[i] ? VXD_POSEGRAPH_HELD : solver->n_free;
        if (!held[i]) {
            solver->nodes[solver->n_free++] = i;
        }
    }
    for (size_t i = 0; i < solver->n_edges; i++) {
        uint32_t from = solver->variables[solver->edges[i].from];
        uint32_t to = solver->variables[solver->edges[i].to];

        solver->pair_of[i] = VXD_POSEGRAPH_HELD;
        if (from != VXD_POSEGRAPH_HELD && to != VXD_POSEGRAPH_HELD) {
            solver->pair_of[i] = (uint32_t)solver->n_pairs;
            solver->pairs[solver->n_pairs++] = (struct vxd_block_pair){from, to};
        }
    }
    return true;
}

static void add_use(struct vxd_posegraph_solver *solver, uint32_t node, uint32_t use,
                    bool counts)
{
    uint32_t v = solver->variables[node];

    if (v == VXD_POSEGRAPH_HELD) {
        return;
    }
    if (counts) {
        solver->first_use[v + 2]++;
    } else {
        solver->uses[solver->first_use[v + 1]++] = use;
    }
}

/* Lists the edges and priors of each variable. */
static bool list_uses(struct vxd_posegraph_solver *solver)
{
    solver->first_use = calloc((size_t)solver->n_free + 3, sizeof *solver->first_use);
    solver->uses =
        malloc((2 * solver->n_edges + solver->n_priors + 1) * sizeof *solver->uses);
    if (solver->first_use == NULL || solver->uses == NULL) {
        return false;
    }
    for (int fill = 0; fill < 2; fill++) {
        for (size_t i = 0; i < solver->n_edges; i++) {
            add_use(solver, solver->edges[i].from, (uint32_t)(2 * i), fill == 0);
            add_use(solver, solver->edges[i].to, (uint32_t)(2 * i + 1), fill == 0);
        }
        for (size_t i = 0; i < solver->n_priors; i++) {
            add_use(solver, solver->priors[i].node, (uint32_t)(2 * solver->n_edges + i),
                    fill == 0);
        }
        for (uint32_t v = 0; v < solver->n_free && fill == 0; v++) {
            solver->first_use[v + 2] += solver->first_use[v + 1];
        }
    }
    return true;
}

static size_t count_bytes(const struct vxd_posegraph_solver *solver)
{
    const size_t linear_bytes = (size_t)VXD_POSEGRAPH_LINEAR * sizeof(double);

    return solver->n_nodes * (2 * sizeof *solver->poses + 16) +
           solver->n_edges * (sizeof *solver->edges + linear_bytes + 64) +
           solver->n_priors * (sizeof *solver->priors + linear_bytes) +
           solver->n_pairs * 36 * 8 + (size_t)solver->n_free * (2 * 36 + 12) * 8;
}

static enum vxd_status reserve(struct vxd_posegraph_solver *solver, struct vxd_err *err)
{
    size_t n = solver->n_free;
    size_t n_terms = solver->n_edges + solver->n_priors;
    size_t own = count_bytes(solver);
    size_t most = solver->options.max_bytes;
    enum vxd_status status;

    if (most > 0 && own >= most) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, "max_bytes",
                         "%zu poses and %zu edges take %zu bytes, and the budget is %zu",
                         solver->n_nodes, solver->n_edges, own, most));
    }
    VXD_TRY(vxd_block_plan_create(
        solver->pool, solver->n_free, solver->pairs, solver->n_pairs,
        most > 0 ? (most - own) / (36 * sizeof(double)) + 1 : 0, &solver->plan, err));
    VXD_TRY(vxd_block_factor_create(solver->plan, solver->pool, 6, &solver->factor, err));
    solver->linear = malloc((n_terms * VXD_POSEGRAPH_LINEAR + 1) * sizeof(double));
    solver->costs = malloc((n_terms + 1) * sizeof(double));
    solver->diagonal = malloc((n * 36 + 1) * sizeof(double));
    solver->damped = malloc((n * 36 + 1) * sizeof(double));
    solver->blocks = malloc((solver->n_pairs * 36 + 1) * sizeof(double));
    solver->gradient = malloc((n * 6 + 1) * sizeof(double));
    solver->step = malloc((n * 6 + 1) * sizeof(double));
    if (solver->linear == NULL || solver->costs == NULL || solver->diagonal == NULL ||
        solver->damped == NULL || solver->blocks == NULL || solver->gradient == NULL ||
        solver->step == NULL) {
        VXD_TRY(no_memory(err));
    }
    solver->stats.n_bytes =
        own + solver->plan->n_bytes + vxd_block_factor_bytes(solver->plan, 6);
out:
    return status;
}

enum vxd_status vxd_posegraph_solver_create(struct vxd_pool *pool,
                                            const struct vxd_posegraph *graph,
                                            const struct vxd_posegraph_options *options,
                                            struct vxd_posegraph_solver **out,
                                            struct vxd_err *err)
{
    struct vxd_posegraph_solver *solver = NULL;
    bool *held = NULL;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(check_sizes(graph, options, err));
    held = calloc(graph->n_nodes, sizeof *held);
    solver = calloc(1, sizeof *solver);
    if (held == NULL || solver == NULL) {
        VXD_TRY(no_memory(err));
    }
    VXD_TRY(vxd_posegraph_check(graph, held, err));
    solver->pool = pool;
    solver->options = *options;
    if (options->max_iterations == 0) {
        solver->options.max_iterations = DEFAULT_ITERATIONS;
    }
    if (options->relative_tolerance == 0) {
        solver->options.relative_tolerance = DEFAULT_TOLERANCE;
    }
    solver->damping = FIRST_DAMPING;
    solver->growth = 2;
    if (!copy_graph(solver, graph) || !number(solver, held) || !list_uses(solver)) {
        VXD_TRY(no_memory(err));
    }
    VXD_TRY(reserve(solver, err));
    solver->stats.n_free = solver->n_free;
    *out = solver;
    solver = NULL;
out:
    vxd_posegraph_solver_destroy(solver);
    free(held);
    return status;
}

void vxd_posegraph_solver_destroy(struct vxd_posegraph_solver *solver)
{
    if (solver == NULL) {
        return;
    }
    free(solver->step);
    free(solver->gradient);
    free(solver->blocks);
    free(solver->damped);
    free(solver->diagonal);
    free(solver->costs);
    free(solver->linear);
    vxd_block_factor_destroy(solver->factor);
    vxd_block_plan_destroy(solver->plan);
    free(solver->uses);
    free(solver->first_use);
    free(solver->pair_of);
    free(solver->pairs);
    free(solver->nodes);
    free(solver->variables);
    free(solver->ids);
    free(solver->priors);
    free(solver->edges);
    free(solver->trial);
    free(solver->poses);
    free(solver);
}

/* --- steps -------------------------------------------------------------------------------------- */

static enum vxd_status start(struct vxd_posegraph_solver *solver, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    solver->has_started = true;
    solver->stats.initial_cost = vxd_posegraph_cost(solver, solver->poses);
    solver->stats.cost = solver->stats.initial_cost;
    if (solver->n_free == 0) {
        solver->is_done = true;
        solver->stats.converged = true;
    } else if (solver->options.start == VXD_POSEGRAPH_CHORDAL) {
        struct vxd_err why = {0};
        double cost = HUGE_VAL;

        status = vxd_posegraph_start_chordal(solver, &why);
        if (status == VXD_OK) {
            cost = vxd_posegraph_cost(solver, solver->poses);
        } else if (status != VXD_FAILED_PRECONDITION) {
            *err = why;
            return status;
        } /* else priors do not hold the relaxed problem, but perhaps the real one */
        status = VXD_OK;
        if (cost < solver->stats.cost) {
            memcpy(solver->trial, solver->poses, solver->n_nodes * sizeof *solver->poses);
            solver->stats.cost = cost;
        } else {
            memcpy(solver->poses, solver->trial, solver->n_nodes * sizeof *solver->poses);
        }
    }
    return status;
}

/* Solves the damped equations; false where they are singular. */
static bool solve(struct vxd_posegraph_solver *solver, uint32_t *bad)
{
    size_t n = solver->n_free;

    memcpy(solver->damped, solver->diagonal, n * 36 * sizeof(double));
    for (size_t v = 0; v < n; v++) {
        for (size_t k = 0; k < 6; k++) {
            solver->damped[v * 36 + k * 7] +=
                solver->damping * fmax(solver->diagonal[v * 36 + k * 7], 1e-9);
            solver->step[v * 6 + k] = -solver->gradient[v * 6 + k];
        }
    }
    *bad = vxd_block_factor_run(solver->factor, solver->damped, solver->blocks,
                                solver->pairs);
    if (*bad != UINT32_MAX) {
        return false;
    }
    vxd_block_factor_solve(solver->factor, solver->step);
    return true;
}

/* How much the linear model says that the step lowers the cost; `held_back` is the part of it that
 * the damping takes. */
static double predict(const struct vxd_posegraph_solver *solver, double *held_back)
{
    double sum = 0;

    *held_back = 0;
    for (size_t i = 0; i < (size_t)solver->n_free * 6; i++) {
        size_t v = i / 6;
        double damping =
            solver->damping * fmax(solver->diagonal[v * 36 + i % 6 * 7], 1e-9);

        sum += solver->step[i] * (damping * solver->step[i] - solver->gradient[i]);
        *held_back += damping * solver->step[i] * solver->step[i];
    }
    return sum;
}

static bool move(struct vxd_posegraph_solver *solver)
{
    bool is_finite = true;

    for (uint32_t v = 0; v < solver->n_free; v++) {
        const double *step = solver->step + (size_t)v * 6;
        uint32_t node = solver->nodes[v];

        vxd_rigid_move(&solver->poses[node], step, &solver->trial[node]);
        for (int k = 0; k < 6; k++) {
            is_finite = is_finite && fabs(step[k]) < 1e12;
        }
    }
    return is_finite;
}

static void reject(struct vxd_posegraph_solver *solver)
{
    solver->damping *= solver->growth;
    solver->growth *= 2;
}

/* Near the optimum, what the model did not foresee of a step's fall and what the damping took of it
 * are about what is left to fall, so that no other step has to show it. */
static void accept(struct vxd_posegraph_solver *solver, double cost, double predicted,
                   double held_back)
{
    struct vxd_rigid *poses = solver->trial;
    double fall = solver->stats.cost - cost;
    double shape = 2 * fall / predicted - 1;
    double little = solver->options.relative_tolerance * solver->stats.cost;
    bool is_foreseen =
        fabs(predicted - fall) + held_back <= little && fall > predicted / 2;

    solver->trial = solver->poses;
    solver->poses = poses;
    solver->stats.converged = fall <= little || is_foreseen;
    solver->is_done = solver->stats.converged;
    solver->stats.cost = cost;
    solver->is_linear = false;
    solver->damping *= fmax(0.1, 1 - shape * shape * shape);
    solver->damping = fmax(solver->damping, LEAST_DAMPING);
    solver->growth = 2;
}

enum vxd_status vxd_posegraph_solver_step(struct vxd_posegraph_solver *solver, bool *done,
                                          struct vxd_err *err)
{
    uint32_t bad = UINT32_MAX;
    enum vxd_status status = VXD_OK;

    *done = solver->is_done;
    if (solver->is_done) {
        return VXD_OK;
    }
    if (!solver->has_started) {
        VXD_TRY(start(solver, err));
        *done = solver->is_done;
        return VXD_OK;
    }
    if (!solver->is_linear) {
        vxd_posegraph_linearize(solver);
        solver->is_linear = true;
    }
    solver->stats.n_iterations++;
    if (!solve(solver, &bad)) {
        reject(solver);
    } else {
        double held_back;
        double predicted = predict(solver, &held_back);
        double cost = move(solver) ? vxd_posegraph_cost(solver, solver->trial) : HUGE_VAL;
        double fall = solver->stats.cost - cost;

        if (predicted <= 1e-15 * solver->stats.cost || predicted < 1e-18) {
            solver->is_done = true; /* at the optimum, as far as numbers go */
            solver->stats.converged = true;
        } else if (fall > 0) {
            accept(solver, cost, predicted, held_back);
        } else {
            reject(solver);
        }
    }
    if (solver->damping > MOST_DAMPING && bad != UINT32_MAX) {
        VXD_TRY(vxd_fail(err, VXD_FAILED_PRECONDITION, "edges",
                         "the equations are singular at node %llu",
                         vxd_posegraph_id(solver->ids, solver->nodes[bad])));
    }
    if (solver->damping > MOST_DAMPING) {
        solver->is_done = true; /* no step lowers the cost */
        solver->stats.converged = true;
    }
    solver->is_done =
        solver->is_done || solver->stats.n_iterations >= solver->options.max_iterations;
    *done = solver->is_done;
out:
    return status;
}

/* --- results ------------------------------------------------------------------------------------ */

const struct vxd_rigid *
vxd_posegraph_solver_poses(const struct vxd_posegraph_solver *solver)
{
    return solver->poses;
}

void vxd_posegraph_solver_get_progress(const struct vxd_posegraph_solver *solver,
                                       struct vxd_posegraph_stats *out)
{
    *out = solver->stats;
}

void vxd_posegraph_solver_get_stats(const struct vxd_posegraph_solver *solver,
                                    struct vxd_posegraph_stats *out)
{
    double *weights = malloc((solver->n_edges + 1) * sizeof *weights);

    *out = solver->stats;
    out->n_outliers = 0;
    if (weights != NULL) {
        vxd_posegraph_solver_get_edges(solver, NULL, weights);
        for (size_t i = 0; i < solver->n_edges; i++) {
            out->n_outliers += weights[i] < 0.5 ? 1 : 0;
        }
    }
    free(weights);
}

enum vxd_status vxd_posegraph_solver_covariance(struct vxd_posegraph_solver *solver,
                                                const uint32_t *nodes, size_t n,
                                                double *covariance, struct vxd_err *err)
{
    uint32_t bad;

    for (size_t i = 0; i < n; i++) {
        if (nodes[i] >= solver->n_nodes) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "covariance_of",
                            "node %u: there are %zu nodes", nodes[i], solver->n_nodes);
        }
    }
    memset(covariance, 0, n * 36 * sizeof *covariance);
    if (n == 0 || solver->n_free == 0) {
        return VXD_OK;
    }
    if (!solver->is_linear) {
        vxd_posegraph_linearize(solver);
        solver->is_linear = true;
    }
    bad = vxd_block_factor_run(solver->factor, solver->diagonal, solver->blocks,
                               solver->pairs);
    if (bad != UINT32_MAX) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, "covariance_of",
                        "the information is singular at node %llu, so that there is no "
                        "covariance",
                        vxd_posegraph_id(solver->ids, solver->nodes[bad]));
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t v = solver->variables[nodes[i]];

        for (size_t c = 0; c < 6 && v != VXD_POSEGRAPH_HELD; c++) {
            memset(solver->step, 0, (size_t)solver->n_free * 6 * sizeof(double));
            solver->step[(size_t)v * 6 + c] = 1;
            vxd_block_factor_solve(solver->factor, solver->step);
            for (size_t r = 0; r < 6; r++) {
                covariance[i * 36 + r * 6 + c] = solver->step[(size_t)v * 6 + r];
            }
        }
    }
    return VXD_OK;
}
