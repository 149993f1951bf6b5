// SPDX-License-Identifier: Apache-2.0
/* SLAC on the CPU: loops over the items of a step. All arithmetic is in slac_math.h. */
#include "gpu/slac/slac_internal.h"

struct run {
    struct vxd_slac_state state;
    enum vxd_slac_step_kind step;
    size_t n;
    int is_first;
};

#define LOOP(name)                                                                       \
    static void name##_loop(void *args, size_t begin, size_t end)                        \
    {                                                                                    \
        const struct vxd_slac_state *state = args;                                       \
                                                                                         \
        for (size_t i = begin; i < end; i++) {                                           \
            vxd_slac_##name##_one(state, i);                                             \
        }                                                                                \
    }
VXD_SLAC_STEPS(LOOP, LOOP)

/* Sums of a chunk are made together, where a GPU has a thread for each. */
static void chunks_loop(void *args, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        vxd_slac_chunk_all(args, i);
    }
}

static void chunk_blocks_loop(void *args, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        vxd_slac_chunk_block_all(args, i);
    }
}

#define PLAIN_ENTRY(name) {name##_loop, false},
#define SOLVER_ENTRY(name) {name##_loop, true},
static const struct {
    vxd_loop_fn loop;
    bool is_solver;
} STEPS[VXD_SLAC_N_STEPS] = {VXD_SLAC_STEPS(PLAIN_ENTRY, SOLVER_ENTRY)};

static enum vxd_status run_job(struct vxd_pool *pool, const void *args,
                               struct vxd_err *err)
{
    struct run run = *(const struct run *)args;
    struct vxd_slac_state *state = &run.state;

    (void)err;
    if (STEPS[run.step].is_solver && state->work->is_done != 0) {
        return VXD_OK;
    }
    if (run.step == VXD_SLAC_STEP_chunk) {
        vxd_parallel_for(pool, run.n / 24, 8, chunks_loop, state);
    } else if (run.step == VXD_SLAC_STEP_chunk_block) {
        vxd_parallel_for(pool, run.n / 48, 8, chunk_blocks_loop, state);
    } else if (run.step == VXD_SLAC_STEP_strip_loss ||
               run.step == VXD_SLAC_STEP_strip_block) {
        vxd_parallel_for(pool, run.n, 8, STEPS[run.step].loop, state);
    } else {
        vxd_parallel_for(pool, run.n, 1024, STEPS[run.step].loop, state);
    }
    return VXD_OK;
}

enum vxd_status vxd_slac_run_cpu(struct vxd_queue *queue,
                                 const struct vxd_slac_state *state,
                                 enum vxd_slac_step_kind step, size_t n,
                                 struct vxd_err *err)
{
    struct run run = {.state = *state, .step = step, .n = n};

    return vxd_queue_push(queue, run_job, &run, sizeof run, err);
}

/* The sum of products, in lanes that are then added pairwise, as threads of a GPU do. */
static double dot(const double *a, const double *b, size_t n)
{
    double lanes[VXD_SLAC_LANES] = {0};

    for (size_t first = 0; first < n; first += VXD_SLAC_LANES) {
        size_t m = n - first < VXD_SLAC_LANES ? n - first : VXD_SLAC_LANES;

        for (size_t i = 0; i < m; i++) {
            lanes[i] += a[first + i] * b[first + i];
        }
    }
    for (size_t half = VXD_SLAC_LANES / 2; half > 0; half /= 2) {
        for (size_t i = 0; i < half; i++) {
            lanes[i] += lanes[i + half];
        }
    }
    return lanes[0];
}

static void conjugate(const struct vxd_slac_state *s, bool is_first)
{
    struct vxd_slac_work *work = s->work;
    size_t n = s->n_unknowns;
    double rz;
    double beta = 0;

    if (is_first) {
        for (size_t i = 0; i < n; i++) {
            s->x[i] = 0;
            s->p[i] = 0;
        }
    } else {
        double slope = dot(s->p, s->q, n);
        double alpha;

        if (!(slope > 0)) {
            work->is_done = 1;
            return;
        }
        alpha = work->rz / slope;
        for (size_t i = 0; i < n; i++) {
            s->x[i] += alpha * s->p[i];
            s->r[i] -= alpha * s->q[i];
        }
        work->n_steps++;
    }
    for (size_t i = 0; i < n; i++) {
        s->z[i] = vxd_slac_precondition(s, i);
    }
    rz = dot(s->r, s->z, n);
    if (is_first) {
        work->first_rz = rz;
    } else {
        beta = rz / work->rz;
    }
    work->rz = rz;
    if (!(rz > s->tolerance2 * work->first_rz)) {
        work->is_done = 1;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        s->p[i] = s->z[i] + beta * s->p[i];
    }
}

static enum vxd_status conjugate_job(struct vxd_pool *pool, const void *args,
                                     struct vxd_err *err)
{
    const struct run *run = args;

    (void)pool;
    (void)err;
    if (run->state.work->is_done == 0) {
        conjugate(&run->state, run->is_first != 0);
    }
    return VXD_OK;
}

enum vxd_status vxd_slac_conjugate_cpu(struct vxd_queue *queue,
                                       const struct vxd_slac_state *state, int is_first,
                                       struct vxd_err *err)
{
    struct run run = {.state = *state, .is_first = is_first};

    return vxd_queue_push(queue, conjugate_job, &run, sizeof run, err);
}
