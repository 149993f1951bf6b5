// SPDX-License-Identifier: Apache-2.0
/* Times the optimization of generated pose graphs.
 *
 *   bench_posegraph [--graph sphere|torus] [--rings N] [--per-ring N] [--threads N] [--runs N]
 *                   [--noise-m S] [--noise-rad S] [--start keep|chordal] [--write FILE]
 *
 * The search begins at the odometry. Times are the best and the median of the wall clock, and of the
 * CPU time of all threads, around everything from the graph's arrays to the poses: checks, order, structure, start, all steps.
 * --write writes the graph in g2o's format, for compare_gtsam.py. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/posegraph/posegraph.h"
#include "tests/support/posegraph/graphs.h"

#define MAX_RUNS 1000

/* What is timed of a run, ms. */
enum {
    WALL,
    CPU,
    PREPARE, /* checks, order, structure, memory */
    START,
    STEPS,
    END, /* what destroying the solver takes; not part of WALL */
    N_TIMES
};

struct options {
    bool is_torus;
    size_t n_rings;
    size_t n_per_ring;
    int n_threads;
    int n_runs;
    struct graph_noise noise;
    enum vxd_posegraph_start start;
    const char *write;
};

static double now_ms(clockid_t clock)
{
    struct timespec t;

    (void)clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static bool parse(int argc, char **argv, struct options *out)
{
    *out = (struct options){.n_rings = 50,
                            .n_per_ring = 50,
                            .n_runs = 9,
                            .noise = {.t_m = 0.1, .r_rad = 0.05, .seed = 1}};
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *value = argv[i + 1];

        if (strcmp(argv[i], "--graph") == 0) {
            out->is_torus = strcmp(value, "torus") == 0;
            out->n_rings = out->is_torus ? 100 : 50;
        } else if (strcmp(argv[i], "--rings") == 0) {
            out->n_rings = strtoul(value, NULL, 10);
        } else if (strcmp(argv[i], "--per-ring") == 0) {
            out->n_per_ring = strtoul(value, NULL, 10);
        } else if (strcmp(argv[i], "--threads") == 0) {
            out->n_threads = (int)strtol(value, NULL, 10);
        } else if (strcmp(argv[i], "--runs") == 0) {
            out->n_runs = (int)strtol(value, NULL, 10);
        } else if (strcmp(argv[i], "--noise-m") == 0) {
            out->noise.t_m = strtod(value, NULL);
        } else if (strcmp(argv[i], "--noise-rad") == 0) {
            out->noise.r_rad = strtod(value, NULL);
        } else if (strcmp(argv[i], "--start") == 0) {
            out->start = strcmp(value, "chordal") == 0 ? VXD_POSEGRAPH_CHORDAL
                                                       : VXD_POSEGRAPH_KEEP;
        } else if (strcmp(argv[i], "--write") == 0) {
            out->write = value;
        } else {
            return false;
        }
    }
    return argc % 2 == 1 && out->n_runs > 0 && out->n_runs <= MAX_RUNS &&
           out->n_rings * out->n_per_ring > 1;
}

static enum vxd_status run(struct vxd_pool *pool, const struct graph_made *made,
                           const struct options *options, double ms[N_TIMES], bool prints,
                           struct vxd_err *err)
{
    struct vxd_posegraph graph = graph_of(made);
    struct vxd_posegraph_options how = {.start = options->start};
    struct vxd_posegraph_solver *solver = NULL;
    struct vxd_posegraph_stats stats;
    bool done = false;
    double begin = now_ms(CLOCK_MONOTONIC);
    double cpu = now_ms(CLOCK_PROCESS_CPUTIME_ID);
    double end;
    enum vxd_status status;

    VXD_TRY(vxd_posegraph_solver_create(pool, &graph, &how, &solver, err));
    ms[PREPARE] = now_ms(CLOCK_MONOTONIC) - begin;
    VXD_TRY(vxd_posegraph_solver_step(solver, &done, err));
    ms[START] = now_ms(CLOCK_MONOTONIC) - begin - ms[PREPARE];
    while (!done) {
        VXD_TRY(vxd_posegraph_solver_step(solver, &done, err));
    }
    ms[WALL] = now_ms(CLOCK_MONOTONIC) - begin;
    ms[CPU] = now_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    ms[STEPS] = ms[WALL] - ms[PREPARE] - ms[START];
    if (prints) {
        vxd_posegraph_solver_get_stats(solver, &stats);
        (void)printf("cost %.6g -> %.8g in %d steps%s, %.1f MB\n"
                     "rms position error %.4f m, odometry's %.4f m\n",
                     stats.initial_cost, stats.cost, stats.n_iterations,
                     stats.converged ? "" : " (not converged)",
                     (double)stats.n_bytes / 1e6,
                     graph_error(made, vxd_posegraph_solver_poses(solver)),
                     graph_error(made, made->start));
    }
out:
    end = now_ms(CLOCK_MONOTONIC);
    vxd_posegraph_solver_destroy(solver);
    ms[END] = now_ms(CLOCK_MONOTONIC) - end;
    return status;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    struct options options;
    struct graph_made made;
    struct vxd_pool *pool = NULL;
    struct vxd_err err = {0};
    static double ms[N_TIMES][MAX_RUNS];
    size_t n_runs;
    enum vxd_status status;

    if (!parse(argc, argv, &options)) {
        (void)fprintf(stderr, "usage: see the head of bench_posegraph.c\n");
        return 2;
    }
    if (options.is_torus) {
        graph_make_torus(options.n_rings, options.n_per_ring, options.noise, &made);
    } else {
        graph_make_sphere(options.n_rings, options.n_per_ring, options.noise, &made);
    }
    VXD_TRY(vxd_pool_create(options.n_threads, &pool, &err));
    if (options.write != NULL && !graph_write(&made, options.write)) {
        VXD_TRY(vxd_fail(&err, VXD_UNAVAILABLE, options.write, "cannot be written"));
    }
    (void)printf("%zu poses, %zu edges, %d threads\n", made.n_nodes, made.n_edges,
                 vxd_pool_n_threads(pool));
    n_runs = (size_t)options.n_runs;
    for (size_t i = 0; i < n_runs; i++) {
        double times[N_TIMES] = {0};

        VXD_TRY(run(pool, &made, &options, times, i == 0, &err));
        for (size_t k = 0; k < N_TIMES; k++) {
            ms[k][i] = times[k];
        }
    }
    for (size_t k = 0; k < N_TIMES; k++) {
        qsort(ms[k], n_runs, sizeof ms[k][0], compare);
    }
    (void)printf("best %.2f ms, median %.2f ms of %zu runs; CPU best %.2f ms, median "
                 "%.2f ms\n"
                 "best of each: prepare %.2f ms, start %.2f ms, steps %.2f ms, end %.2f "
                 "ms; medians %.2f, %.2f, %.2f, %.2f ms\n",
                 ms[WALL][0], ms[WALL][n_runs / 2], n_runs, ms[CPU][0],
                 ms[CPU][n_runs / 2], ms[PREPARE][0], ms[START][0], ms[STEPS][0],
                 ms[END][0], ms[PREPARE][n_runs / 2], ms[START][n_runs / 2],
                 ms[STEPS][n_runs / 2], ms[END][n_runs / 2]);
out:
    if (status != VXD_OK) {
        (void)fprintf(stderr, "bench_posegraph: %s %s\n", err.field, err.message);
    }
    vxd_pool_destroy(pool);
    graph_free(&made);
    return status == VXD_OK ? 0 : 1;
}
