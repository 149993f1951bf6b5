// SPDX-License-Identifier: Apache-2.0
/* The steps of a refinement on the CPU: ranges of items on the pool. */
#include "gpu/refine/refine_internal.h"

static double sum_lanes(double lanes[VXD_REFINE_LANES])
{
    for (size_t half = VXD_REFINE_LANES / 2; half > 0; half /= 2) {
        for (size_t k = 0; k < half; k++) {
            lanes[k] += lanes[k + half];
        }
    }
    return lanes[0];
}

/* Sums the terms of items [begin, end), which begins a chunk. */
static void sum_terms(const struct vxd_refine_call *call, size_t begin, size_t end)
{
    for (size_t first = begin; first < end; first += VXD_REFINE_LANES) {
        double lanes[VXD_REFINE_LANES] = {0};
        size_t n = end - first < VXD_REFINE_LANES ? end - first : VXD_REFINE_LANES;

        for (size_t k = 0; k < n; k++) {
            lanes[k] = vxd_refine_term(&call->view, &call->solve, first + k);
        }
        call->solve.partial[first / VXD_REFINE_LANES] = sum_lanes(lanes);
    }
}

#define RUN(name, expression)                                                            \
    static void run_##name(void *args, size_t begin, size_t end)                         \
    {                                                                                    \
        const struct vxd_refine_call *call = args;                                       \
                                                                                         \
        for (size_t i = call->begin + begin; i < call->begin + end; i++) {               \
            expression;                                                                  \
        }                                                                                \
        if (call->solve.kind != VXD_REFINE_SUM_NONE) {                                   \
            sum_terms(call, call->begin + begin, call->begin + end);                     \
        }                                                                                \
    }
VXD_REFINE_STEPS(RUN)
#undef RUN

static void end_sum(const struct vxd_refine_call *call)
{
    size_t n = (call->n_items + VXD_REFINE_LANES - 1) / VXD_REFINE_LANES;
    double lanes[VXD_REFINE_LANES];

    for (size_t lane = 0; lane < VXD_REFINE_LANES; lane++) {
        lanes[lane] = vxd_refine_lane_total(call->solve.partial, n, lane);
    }
    vxd_refine_set_total(&call->solve, sum_lanes(lanes));
}

static size_t grain_of(enum vxd_refine_step_name step)
{
    switch (step) {
    case VXD_REFINE_STEP_COUNT:
    case VXD_REFINE_STEP_LIST:
        return 16;
    case VXD_REFINE_STEP_LIGHT_CHUNK:
    case VXD_REFINE_STEP_POSE:
    case VXD_REFINE_STEP_BIN_SUM:
    case VXD_REFINE_STEP_POSE_SUM:
        return 1;
    case VXD_REFINE_STEP_COUPLE:
    case VXD_REFINE_STEP_SIGHT:
        return 512;
    case VXD_REFINE_STEP_BIN:
        return 16;
    default:
        return 2048;
    }
}

static enum vxd_status run_job(struct vxd_pool *pool, const void *args,
                               struct vxd_err *err)
{
#define FUNCTION(name, expression) [VXD_REFINE_STEP_##name] = run_##name,
    static const vxd_loop_fn functions[VXD_REFINE_N_STEPS] = {VXD_REFINE_STEPS(FUNCTION)};
#undef FUNCTION
    struct vxd_refine_call call = *(const struct vxd_refine_call *)args;

    (void)err;
    vxd_parallel_for(pool, call.end - call.begin, grain_of(call.step),
                     functions[call.step], &call);
    if (call.solve.kind != VXD_REFINE_SUM_NONE && call.end == call.n_items) {
        end_sum(&call);
    }
    return VXD_OK;
}

enum vxd_status vxd_refine_run_cpu(struct vxd_queue *queue,
                                   const struct vxd_refine_call *call,
                                   struct vxd_err *err)
{
    return vxd_queue_push(queue, run_job, call, sizeof *call, err);
}
