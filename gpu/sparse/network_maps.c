// SPDX-License-Identifier: Apache-2.0
/* Kernel maps of a run's phase, with the coordinates and samples' first rows of its sets. */
#include "gpu/sparse/network_internal.h"

/* A tap of a row on the CPU, a thread: rough, so that a step is some 20 ms. */
#define LOOKUP_NS 12.0

static enum vxd_status enqueue_coords(struct vxd_queue *queue,
                                      const struct vxd_net_run *run, struct vxd_err *err)
{
    const struct vxd_net *net = run->net;
    enum vxd_status status = VXD_OK;

    for (int i = 0; i < net->n_sets; i++) {
        const struct vxd_net_run_set *set = &run->sets[i];

        if (net->sets[i].used && net->sets[i].phase == run->phase &&
            (set->starts != NULL || set->coords != NULL)) {
            VXD_TRY(vxd_sparse_set_coords(queue, &set->set, net->sets[i].times,
                                          run->input.n_samples, set->coords, set->starts,
                                          err));
        }
    }
out:
    return status;
}

size_t vxd_net_run_map_scratch_bytes(const struct vxd_queue *queue,
                                     const struct vxd_net_run *run)
{
    size_t most = 0;

    for (int i = 0; i < run->net->n_maps; i++) {
        const struct vxd_net_map *plan = &run->net->maps[i];
        size_t n_bytes;

        if (plan->used && plan->phase == run->phase) {
            n_bytes = vxd_kernel_map_scratch_bytes(queue, run->maps[i].n_taps,
                                                   run->maps[i].capacity);
            most = n_bytes > most ? n_bytes : most;
        }
    }
    return most;
}

enum vxd_status vxd_net_run_maps(struct vxd_queue *queue, const struct vxd_net_run *run,
                                 double budget_ns, int *next, struct vxd_err *err)
{
    const struct vxd_net *net = run->net;
    int n_threads = vxd_pool_n_threads(vxd_context_pool(queue->context));
    enum vxd_status status = VXD_OK;

    if (*next == 0) {
        VXD_TRY(enqueue_coords(queue, run, err));
    }
    for (; *next < net->n_maps && budget_ns > 0.0; (*next)++) {
        const struct vxd_net_map *plan = &net->maps[*next];
        struct vxd_kernel_map map = run->maps[*next];

        if (!plan->used || plan->phase != run->phase) {
            continue;
        }
        VXD_TRY(vxd_kernel_map_build(queue, &plan->geometry, &run->sets[plan->in].set,
                                     &run->sets[plan->out].set, &map, run->scratch.ptr,
                                     run->scratch.n_bytes, err));
        if (!VXD_ON_CUDA(queue->context)) {
            budget_ns -=
                (double)run->sets[plan->out].n_rows * map.n_taps * LOOKUP_NS / n_threads;
        }
    }
out:
    return status;
}
