// SPDX-License-Identifier: Apache-2.0
/* Motions and their derivatives against differences; the factorization against dense Cholesky; spheres
 * and tori that have to converge, with the same bits for any number of threads; what is refused. */
#include "gpu/posegraph/posegraph.h"

#include <math.h>

#include "gpu/posegraph/block_cholesky.h"
#include "gpu/posegraph/posegraph_math.h"
#include "tests/support/limits.h"
#include "tests/support/posegraph/graphs.h"
#include "tests/support/test.h"

static void random_motion(uint64_t *state, double spread, struct vxd_rigid *out)
{
    double x[6];

    for (int i = 0; i < 6; i++) {
        x[i] = spread * graph_normal(state);
    }
    vxd_rigid_exp(x, out);
}

static void test_logarithm_is_the_inverse_of_the_exponential(void)
{
    uint64_t state = 1;

    for (int round = 0; round < 2000; round++) {
        double spread = pow(10, -6 + round % 7) * 0.5;
        double x[6];
        double y[6];
        struct vxd_rigid motion;
        double angle;

        for (int i = 0; i < 6; i++) {
            x[i] = spread * graph_normal(&state);
        }
        angle = sqrt(x[3] * x[3] + x[4] * x[4] + x[5] * x[5]);
        for (int i = 3; i < 6 && angle > 3; i++) {
            x[i] *= 3 / angle; /* the logarithm's range */
        }
        vxd_rigid_exp(x, &motion);
        vxd_rigid_log(&motion, y);
        for (int i = 0; i < 6; i++) {
            CHECK(fabs(x[i] - y[i]) < 1e-9 * fmax(1, fabs(x[i])));
        }
    }
}

/* d e / d x of an edge for one of its poses, by central differences. */
static void check_jacobian(const struct vxd_rigid poses[2], const struct vxd_rigid *Z,
                           int which, const double jacobian[36])
{
    const double step = 1e-6;

    for (int c = 0; c < 6; c++) {
        double e[2][6];
        struct vxd_rigid between;

        for (int side = 0; side < 2; side++) {
            struct vxd_rigid moved[2] = {poses[0], poses[1]};
            double x[6] = {0};

            x[c] = side == 0 ? step : -step;
            vxd_rigid_move(&poses[which], x, &moved[which]);
            vxd_edge_residual(&moved[0], &moved[1], Z, &between, e[side]);
        }
        for (int r = 0; r < 6; r++) {
            double expected = (e[0][r] - e[1][r]) / (2 * step);

            CHECK(fabs(jacobian[6 * r + c] - expected) < 1e-6 * fmax(1, fabs(expected)));
        }
    }
}

static void test_jacobians_are_those_of_differences(void)
{
    uint64_t state = 2;

    for (int round = 0; round < 300; round++) {
        double spread = round % 3 == 0 ? 1e-4 : round % 3 == 1 ? 0.05 : 0.8;
        struct vxd_rigid poses[2];
        struct vxd_rigid Z;
        struct vxd_rigid noise;
        struct vxd_rigid between;
        struct vxd_rigid back;
        double e[6];
        double to[36];
        double from[36];
        double ad[36];

        random_motion(&state, 1, &poses[0]);
        random_motion(&state, 1, &poses[1]);
        random_motion(&state, spread, &noise);
        vxd_rigid_between(&poses[0], &poses[1], &between);
        vxd_rigid_multiply(&between, &noise, &Z);
        vxd_edge_residual(&poses[0], &poses[1], &Z, &between, e);
        vxd_right_jacobian_inverse(e, to);
        vxd_rigid_invert(&between, &back);
        vxd_rigid_adjoint(&back, ad);
        for (int r = 0; r < 6; r++) {
            for (int c = 0; c < 6; c++) {
                from[6 * r + c] = 0;
                for (int k = 0; k < 6; k++) {
                    from[6 * r + c] -= to[6 * r + k] * ad[6 * k + c];
                }
            }
        }
        check_jacobian(poses, &Z, 1, to);
        check_jacobian(poses, &Z, 0, from);
    }
}

static void test_robust_weights_are_derivatives_of_costs(void)
{
    for (int kind = VXD_POSEGRAPH_SQUARES; kind <= VXD_POSEGRAPH_DCS; kind++) {
        for (double s = 0.05; s < 40; s *= 1.3) {
            const double step = 1e-6 * s;
            double weight;
            double unused;
            double high =
                vxd_robust_cost((enum vxd_posegraph_robust)kind, 1.7, s + step, &unused);
            double low =
                vxd_robust_cost((enum vxd_posegraph_robust)kind, 1.7, s - step, &unused);

            (void)vxd_robust_cost((enum vxd_posegraph_robust)kind, 1.7, s, &weight);
            CHECK(fabs((high - low) / (2 * step) - weight) < 1e-6);
        }
    }
}

/* --- the factorization -------------------------------------------------------------------------- */

/* Solves a dense system by Gauss's elimination. */
static void solve_dense(double *a, double *x, size_t n)
{
    for (size_t j = 0; j < n; j++) {
        for (size_t r = j + 1; r < n; r++) {
            double factor = a[r * n + j] / a[j * n + j];

            for (size_t c = j; c < n; c++) {
                a[r * n + c] -= factor * a[j * n + c];
            }
            x[r] -= factor * x[j];
        }
    }
    for (size_t j = n; j-- > 0;) {
        for (size_t c = j + 1; c < n; c++) {
            x[j] -= a[j * n + c] * x[c];
        }
        x[j] /= a[j * n + j];
    }
}

static void *alloc(size_t n, size_t item_bytes)
{
    void *memory = calloc(n + 1, item_bytes);

    if (memory == NULL) {
        abort();
    }
    return memory;
}

static void check_factor(uint32_t n, size_t n_pairs, int b, uint64_t seed)
{
    size_t bb = (size_t)(b * b);
    size_t size = n * (size_t)b;
    struct vxd_block_pair *pairs = alloc(n_pairs, sizeof *pairs);
    double *diagonal = alloc(n * bb, sizeof *diagonal);
    double *blocks = alloc(n_pairs * bb, sizeof *blocks);
    double *dense = alloc(size * size, sizeof *dense);
    double *x = alloc(size, sizeof *x);
    double *expected = alloc(size, sizeof *expected);
    struct vxd_block_plan *plan = NULL;
    struct vxd_block_factor *factor = NULL;
    struct vxd_pool *pool = NULL;
    struct vxd_err err;
    uint64_t state = seed;

    for (size_t i = 0; i < n_pairs; i++) {
        double u = fabs(graph_normal(&state)) * 1e6;
        double v = fabs(graph_normal(&state)) * 1e6;

        pairs[i].a = (uint32_t)u % n;
        pairs[i].b = (uint32_t)v % n;
        if (pairs[i].a == pairs[i].b) {
            pairs[i].b = (pairs[i].a + 1) % n;
        }
        for (size_t k = 0; k < bb; k++) {
            blocks[i * bb + k] = graph_normal(&state);
        }
        for (size_t r = 0; r < (size_t)b; r++) {
            for (size_t c = 0; c < (size_t)b; c++) {
                size_t row = pairs[i].a * (size_t)b + r;
                size_t column = pairs[i].b * (size_t)b + c;

                dense[row * size + column] += blocks[i * bb + r * (size_t)b + c];
                dense[column * size + row] += blocks[i * bb + r * (size_t)b + c];
            }
        }
    }
    for (size_t i = 0; i < size; i++) {
        double sum = 1;

        for (size_t c = 0; c < size; c++) {
            sum += fabs(dense[i * size + c]);
        }
        dense[i * size + i] = sum;
        diagonal[i / (size_t)b * bb + i % (size_t)b * ((size_t)b + 1)] = sum;
        x[i] = graph_normal(&state);
        expected[i] = x[i];
    }
    CHECK(vxd_pool_create(2, &pool, &err) == VXD_OK);
    REQUIRE(vxd_block_plan_create(pool, n, pairs, n_pairs, 0, &plan, &err) == VXD_OK);
    REQUIRE(vxd_block_factor_create(plan, pool, b, &factor, &err) == VXD_OK);
    CHECK(vxd_block_factor_run(factor, diagonal, blocks, pairs) == UINT32_MAX);
    vxd_block_factor_solve(factor, x);
    solve_dense(dense, expected, size);
    for (size_t i = 0; i < size; i++) {
        CHECK(fabs(x[i] - expected[i]) < 1e-9);
    }
    diagonal[(n / 2) * bb] = -1;
    CHECK(vxd_block_factor_run(factor, diagonal, blocks, pairs) < n);
    vxd_block_factor_destroy(factor);
    vxd_block_plan_destroy(plan);
    vxd_pool_destroy(pool);
    free(expected);
    free(x);
    free(dense);
    free(blocks);
    free(diagonal);
    free(pairs);
}

/* Whoever eliminates a tree from its leaves fills nothing in, and an order of minimum degree does:
 * each node has at most one neighbour left when its turn comes. */
static void test_tree_is_eliminated_without_fill(void)
{
    enum {
        N = 300
    };
    uint32_t state = 5;

    for (int kind = 0; kind < 4; kind++) { /* a path, a star, and two of chance */
        struct vxd_block_pair pairs[N - 1];
        uint32_t order[N];
        uint32_t position[N];
        int n_later[N] = {0};
        struct vxd_err err = {0};

        for (uint32_t i = 1; i < N; i++) {
            uint32_t other;

            state = state * 1664525u + 1013904223u;
            other = kind == 0 ? i - 1 : kind == 1 ? 0 : (state >> 8) % i;

            pairs[i - 1] = (struct vxd_block_pair){i, other};
        }
        REQUIRE(vxd_block_order(N, pairs, N - 1, NULL, order, &err) == VXD_OK);
        for (uint32_t i = 0; i < N; i++) {
            position[order[i]] = i;
        }
        for (size_t k = 0; k < N - 1; k++) {
            bool is_a_first = position[pairs[k].a] < position[pairs[k].b];

            n_later[is_a_first ? pairs[k].a : pairs[k].b]++;
        }
        for (int i = 0; i < N; i++) {
            CHECK(n_later[i] <= 1);
        }
    }
}

static uint32_t root_of(uint32_t *parents, uint32_t i)
{
    while (parents[i] != i) {
        parents[i] = parents[parents[i]];
        i = parents[i];
    }
    return i;
}

/* Without its separators a grid falls into parts of a third of it at most; a graph that is already in two
 * pieces needs none between them. */
static void test_dissected_graph_falls_into_parts(void)
{
    enum {
        EDGE = 40,
        N = EDGE * EDGE
    };

    for (int is_cut = 0; is_cut < 2; is_cut++) {
        static struct vxd_block_pair pairs[2 * N];
        static uint32_t group[N];
        static uint32_t parents[N];
        static uint32_t sizes[N];
        struct vxd_err err = {0};
        size_t n_pairs = 0;
        size_t n_separators = 0;

        memset(sizes, 0, sizeof sizes);
        for (uint32_t i = 0; i < N; i++) {
            if (i % EDGE > 0 && (is_cut == 0 || i % EDGE != EDGE / 2)) {
                pairs[n_pairs++] = (struct vxd_block_pair){i, i - 1};
            }
            if (i >= EDGE) {
                pairs[n_pairs++] = (struct vxd_block_pair){i - EDGE, i};
            }
        }
        REQUIRE(vxd_block_dissect(N, pairs, n_pairs, group, &err) == VXD_OK);
        for (uint32_t i = 0; i < N; i++) {
            parents[i] = i;
            n_separators += group[i] > 0 ? 1 : 0;
        }
        for (size_t k = 0; k < n_pairs; k++) {
            if (group[pairs[k].a] == 0 && group[pairs[k].b] == 0) {
                parents[root_of(parents, pairs[k].a)] = root_of(parents, pairs[k].b);
            }
        }
        for (uint32_t i = 0; i < N; i++) {
            sizes[root_of(parents, i)] += group[i] == 0 ? 1 : 0;
        }
        for (uint32_t i = 0; i < N; i++) {
            CHECK(sizes[i] <= N / 3);
        }
        CHECK(n_separators >= (is_cut != 0 ? 1 : EDGE) && n_separators <= 4 * EDGE);
    }
}

/* Poses that are held may leave very many pieces, which are divided in one go: a search for each over what
 * is left would take days. */
static void test_graph_of_many_pieces_is_ordered_at_once(void)
{
    enum {
        N = 1000000
    };
    struct vxd_block_pair *pairs = alloc(N / 2, sizeof *pairs);
    uint32_t *group = alloc(N, sizeof *group);
    uint32_t *order = alloc(N, sizeof *order);
    uint8_t *seen = alloc(N, sizeof *seen);
    struct vxd_err err = {0};

    for (uint32_t i = 0; i < N / 2; i++) {
        pairs[i] = (struct vxd_block_pair){2 * i, 2 * i + 1};
    }
    REQUIRE(vxd_block_dissect(N, pairs, N / 2, group, &err) == VXD_OK);
    REQUIRE(vxd_block_order(N, pairs, N / 2, group, order, &err) == VXD_OK);
    for (uint32_t i = 0; i < N; i++) {
        CHECK(group[i] == 0);
        seen[order[i]]++;
    }
    for (uint32_t i = 0; i < N; i++) {
        CHECK(seen[i] == 1);
    }
    free(seen);
    free(order);
    free(group);
    free(pairs);
}

/* Sparse graphs of more than a hundred nodes have two orders of elimination, of which the better one is
 * taken. */
static void test_factor_solves_as_dense_elimination_does(void)
{
    for (uint64_t seed = 1; seed <= 12; seed++) {
        check_factor(1 + (uint32_t)seed * 7, seed * 11 - 11,
                     seed % 3 == 0   ? 1
                     : seed % 3 == 1 ? 3
                                     : 6,
                     seed);
    }
    check_factor(2, 5, 6, 99);    /* one pair, named several times */
    check_factor(40, 1200, 3, 5); /* full */
    check_factor(300, 400, 1, 7);
    check_factor(150, 160, 3, 8);
}

/* --- optimization ---------------------------------------------------------------------------------- */

struct outcome {
    struct vxd_posegraph_stats stats;
    struct vxd_rigid *poses; /* malloc'ed */
    enum vxd_status status;
    struct vxd_err err;
};

static void optimize(const struct vxd_posegraph *graph,
                     const struct vxd_posegraph_options *options, int n_threads,
                     struct outcome *out)
{
    struct vxd_posegraph_solver *solver = NULL;
    struct vxd_pool *pool = NULL;
    bool done = false;

    *out = (struct outcome){.status = VXD_OK};
    CHECK(vxd_pool_create(n_threads, &pool, &out->err) == VXD_OK);
    out->status = vxd_posegraph_solver_create(pool, graph, options, &solver, &out->err);
    while (out->status == VXD_OK && !done) {
        out->status = vxd_posegraph_solver_step(solver, &done, &out->err);
    }
    if (out->status == VXD_OK) {
        vxd_posegraph_solver_get_stats(solver, &out->stats);
        out->poses = alloc(graph->n_nodes, sizeof *out->poses);
        memcpy(out->poses, vxd_posegraph_solver_poses(solver),
               graph->n_nodes * sizeof *out->poses);
    }
    vxd_posegraph_solver_destroy(solver);
    vxd_pool_destroy(pool);
}

static void check_converges(struct graph_made *made, double most_error_m)
{
    const struct vxd_posegraph_options options = {.start = VXD_POSEGRAPH_CHORDAL};
    struct vxd_posegraph graph = graph_of(made);
    struct outcome one;
    struct outcome three;

    optimize(&graph, &options, 1, &one);
    optimize(&graph, &options, 3, &three);
    REQUIRE(one.status == VXD_OK && three.status == VXD_OK);
    CHECK(one.stats.converged);
    CHECK(graph_error(made, one.poses) < most_error_m);
    /* A cost has about as many terms of 1 as it has more edges than poses. */
    CHECK(one.stats.cost < 6.2 * (double)(made->n_edges - made->n_nodes + 1));
    CHECK(memcmp(one.poses, three.poses, made->n_nodes * sizeof *one.poses) == 0);
    CHECK(memcmp(&one.stats.cost, &three.stats.cost, sizeof one.stats.cost) == 0);
    free(one.poses);
    free(three.poses);
    graph_free(made);
}

static void test_sphere_of_2500_converges_the_same_with_any_threads(void)
{
    struct graph_made made;

    graph_make_sphere(50, 50, (struct graph_noise){0.1, 0.05, 1}, &made);
    check_converges(&made, 8);
}

static void test_torus_of_5000_converges_the_same_with_any_threads(void)
{
    struct graph_made made;

    graph_make_torus(100, 50, (struct graph_noise){0.1, 0.05, 1}, &made);
    check_converges(&made, 5);
}

static void test_exact_measurements_give_the_true_poses(void)
{
    const struct vxd_posegraph_options options = {.start = VXD_POSEGRAPH_CHORDAL};
    struct graph_made made;
    struct vxd_posegraph graph;
    struct outcome outcome;
    uint64_t state = 7;

    graph_make_sphere(12, 12, (struct graph_noise){0, 0, 1}, &made);
    for (size_t i = 1; i < made.n_nodes; i++) { /* nobody knows where the search begins */
        random_motion(&state, 2, &made.start[i]);
    }
    graph = graph_of(&made);
    optimize(&graph, &options, 2, &outcome);
    REQUIRE(outcome.status == VXD_OK);
    CHECK(outcome.stats.cost < 1e-9);
    CHECK(graph_error(&made, outcome.poses) < 1e-6);
    free(outcome.poses);
    graph_free(&made);
}

static void test_outliers_get_no_weight(void)
{
    const struct vxd_posegraph_options options = {.start = VXD_POSEGRAPH_KEEP};
    struct graph_made made;
    struct vxd_posegraph graph;
    struct outcome outcome;

    for (int kind = VXD_POSEGRAPH_CAUCHY; kind <= VXD_POSEGRAPH_DCS; kind++) {
        size_t n;

        graph_make_sphere(20, 20, (struct graph_noise){0.02, 0.005, 3}, &made);
        n = made.n_edges;
        for (size_t i = 0; i < 20; i++) {
            struct vxd_posegraph_edge *edge = &made.edges[made.n_edges++];

            *edge = made.edges[i];
            edge->from = (uint32_t)(i * 3);
            edge->to = (uint32_t)(399 - i * 7);
            edge->robust = (enum vxd_posegraph_robust)kind;
            edge->width = 6;
        }
        for (size_t i = 399; i < n; i++) { /* of true loops, too */
            made.edges[i].robust = (enum vxd_posegraph_robust)kind;
            made.edges[i].width = 6;
        }
        memcpy(made.start, made.truth, made.n_nodes * sizeof *made.start);
        graph = graph_of(&made);
        optimize(&graph, &options, 2, &outcome);
        REQUIRE(outcome.status == VXD_OK);
        CHECK_INT(outcome.stats.n_outliers, 20);
        CHECK(graph_error(&made, outcome.poses) < 1);
        free(outcome.poses);
        graph_free(&made);
    }
}

/* --- what is refused ------------------------------------------------------------------------------- */

static void check_refused(const struct vxd_posegraph *graph,
                          const struct vxd_posegraph_options *options,
                          enum vxd_status status, const char *field, const char *words)
{
    struct outcome outcome;

    optimize(graph, options, 1, &outcome);
    CHECK_INT(outcome.status, status);
    CHECK_STR(outcome.err.field, field);
    CHECK(strstr(outcome.err.message, words) != NULL);
    free(outcome.poses);
}

static void test_bad_graphs_are_refused_by_name(void)
{
    const struct vxd_posegraph_options none = {.start = VXD_POSEGRAPH_KEEP};
    const struct vxd_posegraph_options small = {.max_bytes = 20000};
    const struct vxd_posegraph_options tight = {.max_bytes = 1 << 20};
    const struct vxd_posegraph_options bad = {.max_iterations = 5000};
    const uint64_t ids[4] = {10, 20, 30, 40};
    struct graph_made made;
    struct vxd_posegraph graph;
    struct vxd_posegraph_edge kept;

    graph_make_ring(4, 5, (struct graph_noise){0.1, 0.1, 1}, &made);
    graph = graph_of(&made);
    graph.ids = ids;
    kept = made.edges[1];
    made.edges[1].information[0] = NAN;
    check_refused(&graph, &none, VXD_INVALID_ARGUMENT, "edges[1]", "node 20 to node 30");
    made.edges[1] = kept;
    made.edges[1].information[35] = 0;
    check_refused(&graph, &none, VXD_INVALID_ARGUMENT, "edges[1]", "singular");
    made.edges[1] = kept;
    made.edges[1].information[1] = 1;
    check_refused(&graph, &none, VXD_INVALID_ARGUMENT, "edges[1]", "not symmetric");
    made.edges[1] = kept;
    made.edges[1].T_from_to.q[0] = INFINITY;
    check_refused(&graph, &none, VXD_INVALID_ARGUMENT, "edges[1]", "unit quaternion");
    made.edges[1] = kept;
    made.edges[1].to = 1;
    check_refused(&graph, &none, VXD_INVALID_ARGUMENT, "edges[1]", "another one");
    made.edges[1].to = 9;
    check_refused(&graph, &none, VXD_INVALID_ARGUMENT, "edges[1]", "4 nodes");
    made.edges[1] = kept;
    made.edges[1].robust = VXD_POSEGRAPH_HUBER;
    check_refused(&graph, &none, VXD_INVALID_ARGUMENT, "edges[1].robust", "width");
    made.edges[1] = kept;
    made.start[2].t_m[1] = NAN;
    check_refused(&graph, &none, VXD_INVALID_ARGUMENT, "nodes", "node 30");
    made.start[2].t_m[1] = 0;
    graph.n_edges = 2;
    check_refused(&graph, &none, VXD_FAILED_PRECONDITION, "edges", "node 40");
    graph.n_edges = made.n_edges;
    check_refused(&graph, &bad, VXD_INVALID_ARGUMENT, "max_iterations", "5000");
    graph.n_nodes = 0;
    check_refused(&graph, &none, VXD_INVALID_ARGUMENT, "nodes", "there are 0");
    graph_free(&made);
    graph_make_sphere(20, 20, (struct graph_noise){0.1, 0.05, 1}, &made);
    graph = graph_of(&made);
    check_refused(&graph, &small, VXD_RESOURCE_EXHAUSTED, "max_bytes", "budget");
    check_refused(&graph, &tight, VXD_RESOURCE_EXHAUSTED, "max_bytes", "budget");
    graph_free(&made);
}

static void test_one_pose_and_fixed_poses_stay(void)
{
    const struct vxd_posegraph_options options = {.start = VXD_POSEGRAPH_CHORDAL};
    struct graph_made made;
    struct vxd_posegraph graph;
    struct outcome outcome;
    bool fixed[6] = {true, false, false, true, false, false};

    graph_make_ring(6, 5, (struct graph_noise){0.1, 0.1, 1}, &made);
    graph = graph_of(&made);
    graph.fixed = fixed;
    made.start[3] = made.truth[3];
    optimize(&graph, &options, 1, &outcome);
    REQUIRE(outcome.status == VXD_OK);
    CHECK(memcmp(&outcome.poses[0], &made.start[0], sizeof made.start[0]) == 0);
    CHECK(memcmp(outcome.poses[3].t_m, made.start[3].t_m, sizeof made.start[3].t_m) == 0);
    CHECK(graph_error(&made, outcome.poses) < 0.5);
    free(outcome.poses);
    graph.n_nodes = 1;
    graph.n_edges = 0;
    graph.fixed = NULL;
    optimize(&graph, &options, 1, &outcome);
    CHECK_INT(outcome.status, VXD_OK);
    CHECK(outcome.stats.converged && outcome.stats.n_free == 0);
    free(outcome.poses);
    graph_free(&made);
}

/* --- priors --------------------------------------------------------------------------------- */

enum {
    N_RING = 8
};

/* A prior of each pose of a ring: where it truly is, moved by `shift`, with so much information of
 * the position and of the rotation. */
static void set_priors(const struct graph_made *made, const double shift[3],
                       double of_position, double of_rotation,
                       struct vxd_posegraph_prior priors[N_RING])
{
    for (size_t i = 0; i < N_RING; i++) {
        priors[i] = (struct vxd_posegraph_prior){.node = (uint32_t)i,
                                                 .T_map_node = made->truth[i]};
        for (size_t k = 0; k < 6; k++) {
            priors[i].information[7 * k] = k < 3 ? of_position : of_rotation;
        }
        for (int axis = 0; axis < 3; axis++) {
            priors[i].T_map_node.t_m[axis] += shift[axis];
        }
    }
}

/* The greatest distance of a position from where it truly is, moved by `shift`; and of a
 * rotation, as 1 minus the cosine of half its angle. */
static double greatest_error(const struct graph_made *made, const double shift[3],
                             const struct vxd_rigid *poses)
{
    double most = 0;

    for (size_t i = 0; i < N_RING; i++) {
        double cosine = 0;

        for (int axis = 0; axis < 3; axis++) {
            most = fmax(
                most, fabs(poses[i].t_m[axis] - made->truth[i].t_m[axis] - shift[axis]));
        }
        for (int k = 0; k < 4; k++) {
            cosine += poses[i].q[k] * made->truth[i].q[k];
        }
        most = fmax(most, 1 - fabs(cosine));
    }
    return most;
}

static void expect_priors(const struct graph_made *made, const double shift[3],
                          const struct vxd_posegraph_prior priors[N_RING])
{
    for (int start = VXD_POSEGRAPH_KEEP; start <= VXD_POSEGRAPH_CHORDAL; start++) {
        const struct vxd_posegraph_options options = {
            .start = (enum vxd_posegraph_start)start, .relative_tolerance = 1e-12};
        struct vxd_posegraph graph = graph_of(made);
        struct outcome outcome;

        graph.priors = priors;
        graph.n_priors = N_RING;
        optimize(&graph, &options, 2, &outcome);
        REQUIRE(outcome.status == VXD_OK);
        CHECK_INT(outcome.stats.n_free, N_RING);
        CHECK(greatest_error(made, shift, outcome.poses) < 1e-4);
        free(outcome.poses);
    }
}

static void test_priors_of_all_poses_win_over_weak_edges(void)
{
    static const double shift[3] = {3, -2, 1};
    struct vxd_posegraph_prior priors[N_RING];
    struct graph_made made;

    graph_make_ring(N_RING, 5, (struct graph_noise){0.1, 0.1, 1}, &made);
    for (size_t i = 0; i < made.n_edges; i++) {
        for (int k = 0; k < 36; k++) {
            made.edges[i].information[k] *= 1e-9;
        }
    }
    set_priors(&made, shift, 1e4, 1e4, priors);
    expect_priors(&made, shift, priors);
    graph_free(&made);
}

/* Positions alone, as of a satellite receiver: the edges say how the poses are turned. */
static void test_priors_of_positions_move_the_whole_graph(void)
{
    static const double shift[3] = {30, -20, 10};
    struct vxd_posegraph_prior priors[N_RING];
    struct graph_made made;

    graph_make_ring(N_RING, 5, (struct graph_noise){0, 0, 1}, &made);
    set_priors(&made, shift, 1e4, 0, priors);
    expect_priors(&made, shift, priors);
    graph_free(&made);
}

static void test_prior_that_is_wrong_counts_little_where_it_is_robust(void)
{
    static const double none[3] = {0, 0, 0};
    const struct vxd_posegraph_options options = {.start = VXD_POSEGRAPH_KEEP,
                                                  .relative_tolerance = 1e-12};
    struct vxd_posegraph_prior priors[N_RING];
    struct graph_made made;

    graph_make_ring(N_RING, 5, (struct graph_noise){0, 0, 1}, &made);
    for (int robust = VXD_POSEGRAPH_SQUARES; robust <= VXD_POSEGRAPH_DCS; robust++) {
        struct vxd_posegraph graph = graph_of(&made);
        struct outcome outcome;
        double error;

        set_priors(&made, none, 100, 100, priors);
        for (size_t i = 0; i < N_RING; i++) {
            priors[i].robust = (enum vxd_posegraph_robust)robust;
            priors[i].width = 1;
        }
        priors[3].T_map_node.t_m[0] += 5;
        graph.priors = priors;
        graph.n_priors = N_RING;
        optimize(&graph, &options, 1, &outcome);
        REQUIRE(outcome.status == VXD_OK);
        error = greatest_error(&made, none, outcome.poses);
        CHECK(robust == VXD_POSEGRAPH_SQUARES ? error > 0.1 : error < 0.05);
        free(outcome.poses);
    }
    graph_free(&made);
}

static void test_bad_priors_are_refused_by_name(void)
{
    static const double none[3] = {0, 0, 0};
    const struct vxd_posegraph_options options = {.start = VXD_POSEGRAPH_KEEP};
    struct vxd_posegraph_prior priors[N_RING];
    struct graph_made made;
    struct vxd_posegraph graph;

    graph_make_ring(N_RING, 5, (struct graph_noise){0, 0, 1}, &made);
    graph = graph_of(&made);
    graph.priors = priors;
    graph.n_priors = N_RING;
    set_priors(&made, none, 100, 100, priors);
    priors[7].node = N_RING;
    check_refused(&graph, &options, VXD_INVALID_ARGUMENT, "priors[7]", "8 nodes");
    set_priors(&made, none, 100, 100, priors);
    priors[2].T_map_node.q[3] = NAN;
    check_refused(&graph, &options, VXD_INVALID_ARGUMENT, "priors[2]", "node 2");
    set_priors(&made, none, 100, -1, priors);
    check_refused(&graph, &options, VXD_INVALID_ARGUMENT, "priors[0]", "semidefinite");
    set_priors(&made, none, 100, 100, priors);
    priors[1].information[1] = 1;
    check_refused(&graph, &options, VXD_INVALID_ARGUMENT, "priors[1]", "symmetric");
    set_priors(&made, none, 100, 100, priors);
    priors[4].robust = VXD_POSEGRAPH_CAUCHY;
    check_refused(&graph, &options, VXD_INVALID_ARGUMENT, "priors[4].robust", "width");
    graph_free(&made);
}

/* --- what is known of a solution ------------------------------------------------------------- */

/* Two poses, the second one `ahead` metres along the first one's x axis, and the edge between. */
struct two_poses {
    struct vxd_rigid poses[2];
    struct vxd_posegraph_edge edge;
    struct vxd_posegraph_prior prior;
    struct vxd_posegraph graph;
};

static void set_two_poses(double ahead, struct two_poses *two)
{
    const struct vxd_rigid none = {.q = {0, 0, 0, 1}};

    *two = (struct two_poses){.poses = {none, none},
                              .edge = {.from = 0, .to = 1, .T_from_to = none},
                              .prior = {.node = 0, .T_map_node = none}};
    two->poses[1].t_m[0] = ahead;
    two->edge.T_from_to.t_m[0] = ahead;
    for (size_t k = 0; k < 6; k++) {
        two->edge.information[7 * k] = 10 + (double)k;
        two->prior.information[7 * k] = 4 * (double)(k + 1);
    }
    two->graph = (struct vxd_posegraph){.n_nodes = 2,
                                        .T_map_node = two->poses,
                                        .n_edges = 1,
                                        .edges = &two->edge,
                                        .n_priors = 1,
                                        .priors = &two->prior};
}

static void get_covariance(const struct vxd_posegraph *graph, double out[72])
{
    static const uint32_t nodes[2] = {1, 0};
    static const uint32_t stranger[1] = {2};
    const struct vxd_posegraph_options options = {.start = VXD_POSEGRAPH_KEEP};
    struct vxd_posegraph_solver *solver = NULL;
    struct vxd_pool *pool = NULL;
    struct vxd_err err = {0};
    bool done = false;

    CHECK_INT(vxd_pool_create(2, &pool, &err), VXD_OK);
    REQUIRE(vxd_posegraph_solver_create(pool, graph, &options, &solver, &err) == VXD_OK);
    while (!done) {
        REQUIRE(vxd_posegraph_solver_step(solver, &done, &err) == VXD_OK);
    }
    CHECK_INT(vxd_posegraph_solver_covariance(solver, nodes, 2, out, &err), VXD_OK);
    CHECK_INT(vxd_posegraph_solver_covariance(solver, stranger, 1, out + 36, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_INT(vxd_posegraph_solver_covariance(solver, nodes + 1, 1, out + 36, &err),
              VXD_OK);
    vxd_posegraph_solver_destroy(solver);
    vxd_pool_destroy(pool);
}

/* The first pose is as uncertain as its prior. The second one adds the edge's, and is moved across
 * by what the first one may be turned: by y where that turns about z, and against z about y. */
static void test_covariance_grows_along_an_edge(void)
{
    static const bool fixed[2] = {true, false};
    const double ahead = 2;
    double found[72] = {0};
    struct two_poses two;

    set_two_poses(ahead, &two);
    get_covariance(&two.graph, found);
    for (int r = 0; r < 6; r++) {
        for (int c = 0; c < 6; c++) {
            double of_first = r == c ? 1 / two.prior.information[7 * r] : 0;
            double about_y = 1 / two.prior.information[7 * 4];
            double about_z = 1 / two.prior.information[7 * 5];
            double expected = of_first + (r == c ? 1 / two.edge.information[7 * r] : 0);

            expected += r == 1 && c == 1 ? ahead * ahead * about_z : 0;
            expected += r == 2 && c == 2 ? ahead * ahead * about_y : 0;
            expected += r + c == 6 && r * c == 5 ? ahead * about_z : 0;
            expected -= r + c == 6 && r * c == 8 ? ahead * about_y : 0;
            CHECK(fabs(found[6 * r + c] - expected) < 1e-9);
            CHECK(fabs(found[36 + 6 * r + c] - of_first) < 1e-9);
        }
    }
    two.graph.fixed = fixed;
    two.graph.n_priors = 0;
    get_covariance(&two.graph, found);
    for (int i = 0; i < 36; i++) {
        CHECK(fabs(found[i] - (i % 7 == 0 ? 1 / two.edge.information[i] : 0)) < 1e-9);
        CHECK(found[36 + i] == 0);
    }
}

/* Squares and weights at the graph's own poses, by the formulas of posegraph.h. */
static void test_edges_weigh_what_their_costs_say(void)
{
    const struct vxd_posegraph_options options = {.start = VXD_POSEGRAPH_KEEP};
    struct vxd_pool *pool = NULL;

    CHECK_INT(vxd_pool_create(1, &pool, NULL), VXD_OK);
    for (int i = 0; i < 8; i++) {
        struct vxd_posegraph_solver *solver = NULL;
        struct vxd_posegraph_stats stats;
        struct two_poses two;
        double off = i < 4 ? 0.1 : 1.5; /* metres: below the width, and above it */
        double s = 10 * off * off;
        double width = 0.5;
        double far = fmax(1, sqrt(s) / width);
        double scale = fmin(1, 2 * width * width / (width * width + s));
        const double weights[4] = {1, 1 / far, 1 / (1 + s / (width * width)),
                                   scale * scale};
        const double costs[3] = {s, far > 1 ? 2 * width * sqrt(s) - width * width : s,
                                 width * width * log(1 + s / (width * width))};
        double square;
        double weight;
        bool done;

        set_two_poses(2, &two);
        two.poses[1].t_m[0] += off;
        two.edge.robust = (enum vxd_posegraph_robust)(i % 4);
        two.edge.width = width;
        REQUIRE(vxd_posegraph_solver_create(pool, &two.graph, &options, &solver, NULL) ==
                VXD_OK);
        vxd_posegraph_solver_get_edges(solver, &square, &weight);
        CHECK(fabs(square - s) < 1e-9 && fabs(weight - weights[i % 4]) < 1e-9);
        square =
            vxd_posegraph_edge_square(&two.edge, &two.poses[0], &two.poses[1], &weight);
        CHECK(fabs(square - s) < 1e-9 && fabs(weight - weights[i % 4]) < 1e-9);
        vxd_posegraph_solver_get_stats(solver, &stats);
        CHECK_INT(stats.n_outliers, weights[i % 4] < 0.5 ? 1 : 0);
        CHECK_INT(vxd_posegraph_solver_step(solver, &done, NULL), VXD_OK);
        vxd_posegraph_solver_get_progress(solver, &stats);
        CHECK(i % 4 == 3 || fabs(stats.initial_cost - costs[i % 4]) < 1e-9);
        vxd_posegraph_solver_destroy(solver);
    }
    vxd_pool_destroy(pool);
}

static enum vxd_status check_options(void *user, void *structure, struct vxd_err *err)
{
    struct vxd_posegraph_solver *solver = NULL;
    enum vxd_status status;

    status = vxd_posegraph_solver_create(NULL, user, structure, &solver, err);
    vxd_posegraph_solver_destroy(solver);
    return status;
}

/* A width, in the first edge of a graph, which `user` borrows. */
static enum vxd_status check_edge(void *user, void *structure, struct vxd_err *err)
{
    const struct vxd_posegraph_options none = {.start = VXD_POSEGRAPH_KEEP};
    struct vxd_posegraph graph = *(const struct vxd_posegraph *)user;
    struct vxd_posegraph_solver *solver = NULL;
    enum vxd_status status;

    graph.edges = structure;
    status = vxd_posegraph_solver_create(NULL, &graph, &none, &solver, err);
    vxd_posegraph_solver_destroy(solver);
    return status;
}

static void test_options_are_taken_up_to_the_ends_of_their_ranges(void)
{
    static const struct test_limit limits[] = {
        TEST_LIMIT_INT(struct vxd_posegraph_options, max_iterations, "max_iterations", 0,
                       VXD_POSEGRAPH_MAX_ITERATIONS),
        TEST_LIMIT(struct vxd_posegraph_options, relative_tolerance, "relative_tolerance",
                   0, 1 - 0x1p-53)};
    static const struct test_limit of_edge[] = {
        TEST_LIMIT(struct vxd_posegraph_edge, width, "edges[0].robust", 0x1p-1074, 1e9),
        TEST_LIMIT_INT(struct vxd_posegraph_edge, robust, "edges[0].robust", 0,
                       VXD_POSEGRAPH_DCS)};
    struct vxd_posegraph_options options = {.start = VXD_POSEGRAPH_KEEP};
    struct graph_made made;
    struct vxd_posegraph graph;
    struct test_limited of = {&options, sizeof options, check_options, &graph};

    graph_make_ring(4, 5, (struct graph_noise){0.1, 0.1, 1}, &made);
    graph = graph_of(&made);
    test_limits(&of, limits, sizeof limits / sizeof limits[0]);
    made.edges[0].robust = VXD_POSEGRAPH_HUBER;
    made.edges[0].width = 1;
    of = (struct test_limited){made.edges, sizeof made.edges[0], check_edge, &graph};
    test_limits(&of, of_edge, sizeof of_edge / sizeof of_edge[0]);
    graph_free(&made);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_logarithm_is_the_inverse_of_the_exponential),
    VXD_TEST(test_jacobians_are_those_of_differences),
    VXD_TEST(test_robust_weights_are_derivatives_of_costs),
    VXD_TEST(test_tree_is_eliminated_without_fill),
    VXD_TEST(test_dissected_graph_falls_into_parts),
    VXD_TEST(test_graph_of_many_pieces_is_ordered_at_once),
    VXD_TEST(test_factor_solves_as_dense_elimination_does),
    VXD_TEST(test_sphere_of_2500_converges_the_same_with_any_threads),
    VXD_TEST(test_torus_of_5000_converges_the_same_with_any_threads),
    VXD_TEST(test_exact_measurements_give_the_true_poses),
    VXD_TEST(test_outliers_get_no_weight),
    VXD_TEST(test_bad_graphs_are_refused_by_name),
    VXD_TEST(test_options_are_taken_up_to_the_ends_of_their_ranges),
    VXD_TEST(test_one_pose_and_fixed_poses_stay),
    VXD_TEST(test_priors_of_all_poses_win_over_weak_edges),
    VXD_TEST(test_priors_of_positions_move_the_whole_graph),
    VXD_TEST(test_prior_that_is_wrong_counts_little_where_it_is_robust),
    VXD_TEST(test_bad_priors_are_refused_by_name),
    VXD_TEST(test_covariance_grows_along_an_edge),
    VXD_TEST(test_edges_weigh_what_their_costs_say),
};

VXD_TEST_MAIN(tests)
