// SPDX-License-Identifier: Apache-2.0
/* The steps of a refinement on the CPU: ranges of items on the pool. */
#include "gpu/refine/refine_internal.h"

#define RUN(name, expression)                                                            \
    static void run_##name(void *args, size_t begin, size_t end)                         \
    {                                                                                    \
        const struct vxd_refine_call *call = args;                                       \
                                                                                         \
        for (size_t i = call->begin + begin; i < call->begin + end; i++) {               \
            expression;                                                                  \
        }                                                                                \
    }
VXD_REFINE_STEPS(RUN)
#undef RUN

/* Sums of neighbouring parts run side by side, since their terms lie so. Each adds the same terms in
 * the same order as vxd_refine_sum_item. */
static void run_sums(void *args, size_t begin, size_t end)
{
    enum {
        LANES = 512
    };
    const struct vxd_refine_call *call = args;
    const struct vxd_refine_solve_call *solve = &call->solve;

    for (size_t first = call->begin + begin; first < call->begin + end; first += LANES) {
        size_t n = call->begin + end - first < LANES ? call->begin + end - first : LANES;
        double sums[LANES] = {0};

        for (size_t row = first; row < solve->n; row += VXD_REFINE_PARTS) {
            size_t n_here = solve->n - row < n ? solve->n - row : n;

            for (size_t k = 0; k < n_here; k++) {
                sums[k] += vxd_refine_term(&call->view, solve, row + k);
            }
        }
        memcpy(solve->partial + first, sums, n * sizeof *sums);
    }
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
    case VXD_REFINE_STEP_SUM:
    case VXD_REFINE_STEP_COUPLE:
        return 512;
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
                     call.step == VXD_REFINE_STEP_SUM ? run_sums : functions[call.step],
                     &call);
    return VXD_OK;
}

enum vxd_status vxd_refine_run_cpu(struct vxd_queue *queue,
                                   const struct vxd_refine_call *call,
                                   struct vxd_err *err)
{
    return vxd_queue_push(queue, run_job, call, sizeof *call, err);
}
