// SPDX-License-Identifier: Apache-2.0
/* Kernel maps of a run's phase, with the coordinates and samples' first rows of its
 * sets. */
#include <math.h>

#include "gpu/sparse/executor/network_internal.h"

/* Work of a CPU thread for one tap of a row, estimated roughly, so that a step takes
 * some 20 ms. */
#define LOOKUP_NS 12.0
#define MAPS_AT_ONCE 16

static enum vxd_status enqueue_coords(struct vxd_queue *queue,
                                      const struct vxd_net_run *run, struct vxd_err *err)
{
    const struct vxd_net *net = run->net;
    enum vxd_status status = VXD_OK;

    for (int i = 0; i < net->n_coord_sets; i++) {
        const struct vxd_net_run_coord_set *coord_set = &run->coord_sets[i];

        if (net->coord_sets[i].used && net->coord_sets[i].phase == run->phase &&
            (coord_set->starts != NULL || coord_set->coords != NULL)) {
            VXD_TRY(vxd_coord_set_coords(queue, &coord_set->coord_set,
                                         net->coord_sets[i].times, run->input.n_samples,
                                         coord_set->coords, coord_set->starts, err));
        }
    }
out:
    return status;
}

/* Maps that are built in one call. */
struct batch {
    struct vxd_kernel_map_request requests[MAPS_AT_ONCE];
    struct vxd_kernel_map maps[MAPS_AT_ONCE];
    size_t n;
};

/* Collects the phase's next maps, from number *next on, of about budget_ns work on the
 * CPU. */
static void fill_batch(const struct vxd_net_run *run, double *budget_ns, int *next,
                       struct batch *out)
{
    const struct vxd_net *net = run->net;
    int n_threads = vxd_pool_n_threads(vxd_context_pool(net->context));

    out->n = 0;
    for (; *next < net->n_maps && out->n<MAPS_AT_ONCE && * budget_ns> 0.0; (*next)++) {
        const struct vxd_net_map *plan = &net->maps[*next];

        if (!plan->used || plan->phase != run->phase) {
            continue;
        }
        out->maps[out->n] = run->maps[*next];
        out->requests[out->n] = (struct vxd_kernel_map_request){
            plan->geometry, &run->coord_sets[plan->in].coord_set,
            &run->coord_sets[plan->out].coord_set, &out->maps[out->n]};
        out->n++;
        if (!VXD_ON_CUDA(net->context)) {
            *budget_ns -= (double)run->coord_sets[plan->out].n_rows *
                          run->maps[*next].n_taps * LOOKUP_NS / n_threads;
        }
    }
}

size_t vxd_net_run_map_scratch_bytes(const struct vxd_queue *queue,
                                     const struct vxd_net_run *run)
{
    double budget_ns = HUGE_VAL;
    size_t most = 0;
    int next = 0;

    while (next < run->net->n_maps) {
        struct batch batch;
        size_t n_bytes;

        fill_batch(run, &budget_ns, &next, &batch);
        n_bytes = vxd_kernel_maps_scratch_bytes(queue, batch.requests, batch.n);
        most = n_bytes > most ? n_bytes : most;
    }
    return most;
}

enum vxd_status vxd_net_run_maps(struct vxd_queue *queue, const struct vxd_net_run *run,
                                 double budget_ns, int *next, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    if (*next == 0) {
        VXD_TRY(enqueue_coords(queue, run, err));
    }
    while (*next < run->net->n_maps && budget_ns > 0.0) {
        struct batch batch;

        fill_batch(run, &budget_ns, next, &batch);
        VXD_TRY(vxd_kernel_maps_build(queue, batch.requests, batch.n, run->scratch.ptr,
                                      run->scratch.n_bytes, err));
    }
out:
    return status;
}
