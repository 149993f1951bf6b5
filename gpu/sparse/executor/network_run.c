// SPDX-License-Identifier: Apache-2.0
/* A run and its steps: for each phase the coordinate sets, round by round as counts
 * become known, then maps, then layers. On a GPU everything is one step where sizes
 * can be predicted (network_run_whole.c). */
#include <stdlib.h>

#include "gpu/sparse/executor/network_internal.h"

/* Work of one step on the CPU. */
#define STEP_NS 20e6

static enum vxd_status check_input(const struct vxd_net *net,
                                   const struct vxd_net_input *input, struct vxd_err *err)
{
    if (input->n_rows > net->options.max_rows) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "n_rows",
                        "%zu voxels, the network takes %zu", input->n_rows,
                        net->options.max_rows);
    }
    if (input->n_samples < 1 || input->n_samples > net->options.max_samples) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "n_samples",
                        "%d samples, the network takes 1 to %d", input->n_samples,
                        net->options.max_samples);
    }
    if (input->n_rows > 0 && (input->coords == NULL || input->features == NULL)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT,
                        input->coords == NULL ? "coords" : "features", "missing");
    }
    return VXD_OK;
}

static enum vxd_status make_arrays(struct vxd_net_run *run, struct vxd_err *err)
{
    const struct vxd_net *net = run->net;

    run->coord_sets = calloc((size_t)net->n_coord_sets, sizeof *run->coord_sets);
    run->maps = calloc((size_t)net->n_maps + 1, sizeof *run->maps);
    run->phases = calloc((size_t)net->n_phases, sizeof *run->phases);
    run->item_bytes = calloc((size_t)net->n_items, sizeof *run->item_bytes);
    run->item_offsets = calloc((size_t)net->n_items, sizeof *run->item_offsets);
    if (run->coord_sets == NULL || run->maps == NULL || run->phases == NULL ||
        run->item_bytes == NULL || run->item_offsets == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a run");
    }
    return VXD_OK;
}

enum vxd_status vxd_net_run_create(struct vxd_queue *queue, const struct vxd_net *net,
                                   const struct vxd_net_input *input,
                                   struct vxd_net_run **out, struct vxd_err *err)
{
    struct vxd_net_run *run = NULL;
    /* Counts of the sets, and on the CPU the rows of a part of a convolution. */
    size_t count_bytes = ((size_t)net->n_coord_sets * 2 + 2) * sizeof(uint32_t);
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(check_input(net, input, err));
    run = calloc(1, sizeof *run);
    if (run == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a run");
    }
    run->net = net;
    run->input = *input;
    VXD_TRY(make_arrays(run, err));
    VXD_TRY(vxd_host_alloc(net->context, count_bytes, &run->h_counts, err));
    VXD_TRY(vxd_net_run_alloc(queue, run, count_bytes, &run->counts, err));
    VXD_TRY(vxd_net_run_alloc(queue, run, ((size_t)net->n_maps + 1) * sizeof(uint64_t),
                              &run->n_pairs, err));
    VXD_TRY(
        vxd_net_run_alloc(queue, run, input->n_rows * sizeof(int32_t), &run->rows, err));
    if (input->counts_overflow) {
        size_t n_bytes = (size_t)net->n_layers * sizeof(uint32_t);

        VXD_TRY(vxd_net_run_alloc(queue, run, n_bytes, &run->n_bad, err));
        VXD_TRY(vxd_queue_fill(queue, run->n_bad.ptr, 0, n_bytes, err));
    }
    VXD_TRY(vxd_queue_fill(queue, run->counts.ptr, 0, count_bytes, err));
    *out = run;
    return VXD_OK;
out:
    vxd_net_run_destroy(queue, run);
    return status;
}

/* Makes coordinate sets of the phase; stays in this stage until all are counted. */
static enum vxd_status step_coord_sets(struct vxd_queue *queue, struct vxd_net_run *run,
                                       struct vxd_err *err)
{
    bool done;
    enum vxd_status status;

    run->is_pending = true;
    VXD_TRY(vxd_net_run_make_coord_sets(queue, run, &done, err));
    if (done) {
        run->stage = VXD_NET_STAGE_MAPS;
    }
out:
    return status;
}

static enum vxd_status enqueue_maps(struct vxd_queue *queue, void *args,
                                    struct vxd_err *err)
{
    int next = 0;

    return vxd_net_run_maps(queue, args, STEP_NS, &next, err);
}

static enum vxd_status enqueue_layers(struct vxd_queue *queue, void *args,
                                      struct vxd_err *err)
{
    const struct vxd_net_run *run = args;
    int next = run->next_step;
    size_t row = 0;

    return vxd_net_run_layers(queue, run, STEP_NS, &next, &row, err);
}

static enum vxd_status enqueue_both(struct vxd_queue *queue, void *args,
                                    struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(enqueue_maps(queue, args, err));
    VXD_TRY(enqueue_layers(queue, args, err));
out:
    return status;
}

/* On the CPU: some maps, then some layers; the stage says which are next. */
static enum vxd_status step_on_cpu(struct vxd_queue *queue, struct vxd_net_run *run,
                                   struct vxd_err *err)
{
    const struct vxd_net *net = run->net;
    enum vxd_status status;

    if (run->stage == VXD_NET_STAGE_MAPS) {
        VXD_TRY(vxd_net_run_maps(queue, run, STEP_NS, &run->next_map, err));
        if (run->next_map == net->n_maps) {
            run->stage = VXD_NET_STAGE_LAYERS;
        }
        run->is_pending = true;
        return VXD_OK;
    }
    VXD_TRY(
        vxd_net_run_layers(queue, run, STEP_NS, &run->next_step, &run->next_row, err));
out:
    return status;
}

/* On a GPU: all maps and layers, in one step unless the caller measures them
 * separately. */
static enum vxd_status step_on_gpu(struct vxd_queue *queue, struct vxd_net_run *run,
                                   struct vxd_err *err)
{
    const struct vxd_net *net = run->net;
    bool is_apart = run->input.maps_apart;
    enum vxd_status status;

    if (run->stage == VXD_NET_STAGE_MAPS && is_apart) {
        VXD_TRY(vxd_net_run_enqueue(queue, run, VXD_NET_TAG_MAPS, enqueue_maps, err));
        run->stage = VXD_NET_STAGE_LAYERS;
        return VXD_OK;
    }
    if (net->steps[run->next_step].kind == VXD_NET_STEP_LOAD) {
        VXD_TRY(vxd_net_run_load(queue, run, err));
        run->next_step++;
    }
    if (run->stage == VXD_NET_STAGE_LAYERS) {
        VXD_TRY(vxd_net_run_enqueue(queue, run, VXD_NET_TAG_LAYERS, enqueue_layers, err));
    } else {
        VXD_TRY(vxd_net_run_enqueue(queue, run, VXD_NET_TAG_MAPS_AND_LAYERS, enqueue_both,
                                    err));
        run->stage = VXD_NET_STAGE_LAYERS;
    }
    while (run->next_step < net->n_steps &&
           net->steps[run->next_step].phase == run->phase) {
        run->next_step++;
    }
out:
    return status;
}

static void end_phase(struct vxd_queue *queue, struct vxd_net_run *run)
{
    const struct vxd_net *net = run->net;

    if (run->stage == VXD_NET_STAGE_LAYERS &&
        (run->next_step == net->n_steps ||
         net->steps[run->next_step].phase != run->phase)) {
        vxd_net_run_free(queue, run, &run->scratch);
        run->next_map = 0;
        run->phase++;
        run->stage =
            run->phase == net->n_phases ? VXD_NET_STAGE_OVER : VXD_NET_STAGE_COORD_SETS;
        /* On the CPU the maps were waited for; on a GPU host memory is read when the
         * copy is queued. */
        run->is_pending = false;
    }
}

enum vxd_status vxd_net_run_step(struct vxd_queue *queue, struct vxd_net_run *run,
                                 bool *more, struct vxd_err *err)
{
    bool is_cuda = VXD_ON_CUDA(queue->context);
    bool is_whole;
    enum vxd_status status;

    *more = false;
    if (run->stage == VXD_NET_STAGE_OVER) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, NULL, "the run is over");
    }
    /* The work that the last step queued has run. */
    run->is_pending = false;
    if (run->is_predicted) {
        VXD_TRY(vxd_net_run_check_prediction(queue, run, &is_whole, err));
        if (run->stage == VXD_NET_STAGE_OVER) {
            return VXD_OK;
        }
    } else {
        VXD_TRY(vxd_net_run_count_coord_sets(run, err));
        VXD_TRY(vxd_net_run_whole(queue, run, &is_whole, err));
        if (is_whole) {
            *more = true;
            return VXD_OK;
        }
    }
    if (run->stage == VXD_NET_STAGE_COORD_SETS) {
        VXD_TRY(step_coord_sets(queue, run, err));
        *more = true;
        return VXD_OK;
    }
    if (run->stage == VXD_NET_STAGE_MAPS && run->next_map == 0) {
        run->is_pending = true;
        VXD_TRY(vxd_net_run_place(queue, run, 0, err));
    }
    VXD_TRY(is_cuda ? step_on_gpu(queue, run, err) : step_on_cpu(queue, run, err));
    end_phase(queue, run);
    *more = run->stage != VXD_NET_STAGE_OVER;
    if (run->stage == VXD_NET_STAGE_COORD_SETS && is_cuda) {
        VXD_TRY(step_coord_sets(queue, run, err));
    }
out:
    return status;
}

bool vxd_net_run_is_mapped(const struct vxd_net_run *run)
{
    return run->phase > 0 || run->stage >= VXD_NET_STAGE_LAYERS;
}

void vxd_net_run_destroy(struct vxd_queue *queue, struct vxd_net_run *run)
{
    const struct vxd_net *net;

    if (run == NULL) {
        return;
    }
    net = run->net;
    if (run->is_pending || run->graphs_used != 0) {
        (void)vxd_queue_wait(queue, NULL);
    }
    vxd_net_run_release_graphs(run);
    vxd_device_free(queue, &run->scratch);
    for (int i = 0; i < net->n_coord_sets && run->coord_sets != NULL; i++) {
        vxd_device_free(queue, &run->coord_sets[i].block);
    }
    for (int i = 0; i < net->n_phases && run->phases != NULL; i++) {
        vxd_device_free(queue, &run->phases[i].maps);
        vxd_device_free(queue, &run->phases[i].items);
    }
    vxd_device_free(queue, &run->rows);
    vxd_device_free(queue, &run->counts);
    vxd_device_free(queue, &run->n_pairs);
    vxd_device_free(queue, &run->n_bad);
    vxd_device_free(queue, &run->tokens);
    vxd_host_free(net->context, &run->h_counts);
    free(run->h_tokens);
    free(run->coord_sets);
    free(run->maps);
    free(run->phases);
    free(run->item_bytes);
    free(run->item_offsets);
    free(run);
}
