// SPDX-License-Identifier: Apache-2.0
/* A run that is enqueued whole, on a GPU. Once a network has run, the approximate
 * number of rows of each coordinate set is known for an input of some size. So memory
 * and launches can be sized before anything is counted: sets, maps and layers are one
 * graph, and the host waits once, at the end, and then also reads whether everything
 * fit. If not, or after any other fault, the run begins anew and waits for its counts,
 * which reports an error as any run does. */
#include <math.h>

#include "gpu/sparse/executor/network_internal.h"

/* Faults of the work enqueued here are set in a word of the run first. */
static uint32_t *word_of(const struct vxd_net_run *run)
{
    return (uint32_t *)run->counts.ptr + 2 * (size_t)run->net->n_coord_sets;
}

static enum vxd_status enqueue_coord_sets_and_maps(struct vxd_queue *queue, void *args,
                                                   struct vxd_err *err)
{
    const struct vxd_net_run *run = args;
    struct vxd_queue own = *queue;
    int next = 0;
    enum vxd_status status;

    own.error_word = word_of(run);
    VXD_TRY(vxd_net_run_derive_coord_sets(&own, run, err));
    VXD_TRY(vxd_net_run_maps(&own, run, HUGE_VAL, &next, err));
    VXD_TRY(vxd_queue_copy(queue, run->h_counts.ptr, run->counts.ptr,
                           run->h_counts.n_bytes, err));
out:
    return status;
}

static enum vxd_status enqueue_whole(struct vxd_queue *queue, void *args,
                                     struct vxd_err *err)
{
    const struct vxd_net_run *run = args;
    struct vxd_queue own = *queue;
    int next_map = 0;
    int next_step = run->next_step;
    size_t row = 0;
    enum vxd_status status;

    own.error_word = word_of(run);
    VXD_TRY(vxd_net_run_derive_coord_sets(&own, run, err));
    VXD_TRY(vxd_net_run_maps(&own, run, HUGE_VAL, &next_map, err));
    VXD_TRY(vxd_net_run_layers(&own, run, HUGE_VAL, &next_step, &row, err));
    VXD_TRY(vxd_queue_copy(queue, run->h_counts.ptr, run->counts.ptr,
                           run->h_counts.n_bytes, err));
out:
    return status;
}

/* Restores the state before the prediction; its memory is freed in queue order. */
static void take_back(struct vxd_queue *queue, struct vxd_net_run *run)
{
    for (int i = 0; i < run->net->n_coord_sets; i++) {
        vxd_net_run_free(queue, run, &run->coord_sets[i].block);
        run->coord_sets[i] = (struct vxd_net_run_coord_set){0};
    }
    vxd_net_run_free(queue, run, &run->phases[0].maps);
    vxd_net_run_free(queue, run, &run->phases[0].items);
    vxd_net_run_free(queue, run, &run->scratch);
    run->stage = VXD_NET_STAGE_COORD_SETS;
    run->next_step = 0;
    run->is_predicted = false;
}

/* Allocates the memory of everything while the input's set is being made. */
static enum vxd_status prepare_whole(struct vxd_queue *queue, struct vxd_net_run *run,
                                     bool *is_known, struct vxd_err *err)
{
    size_t scratch_bytes;
    enum vxd_status status;

    VXD_TRY(vxd_net_run_predict_coord_sets(queue, run, is_known, &scratch_bytes, err));
    if (*is_known) {
        VXD_TRY(vxd_net_run_place(queue, run, scratch_bytes, err));
    }
out:
    return status;
}

static enum vxd_status enqueue(struct vxd_queue *queue, struct vxd_net_run *run,
                               struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_net_run_make_input(queue, run, err));
    if (run->input.maps_apart) {
        VXD_TRY(vxd_net_run_enqueue(queue, run, VXD_NET_TAG_COORD_SETS_AND_MAPS,
                                    enqueue_coord_sets_and_maps, err));
        run->stage = VXD_NET_STAGE_LAYERS;
        return VXD_OK;
    }
    VXD_TRY(vxd_net_run_load(queue, run, err));
    run->next_step++;
    VXD_TRY(vxd_net_run_enqueue(queue, run, VXD_NET_TAG_WHOLE, enqueue_whole, err));
    run->stage = VXD_NET_STAGE_WHOLE;
out:
    return status;
}

enum vxd_status vxd_net_run_whole(struct vxd_queue *queue, struct vxd_net_run *run,
                                  bool *is_enqueued, struct vxd_err *err)
{
    enum vxd_status status;

    *is_enqueued = false;
    if (run->has_predicted || run->net->n_phases != 1 || run->input.counts_overflow ||
        !VXD_ON_CUDA(queue->context)) {
        return VXD_OK;
    }
    run->has_predicted = true;
    run->is_predicted = true;
    run->is_pending = true;
    status = prepare_whole(queue, run, is_enqueued, err);
    if (status == VXD_RESOURCE_EXHAUSTED) {
        /* exact counts may need less, or the error names what does not fit */
        status = VXD_OK;
        *is_enqueued = false;
    }
    if (status != VXD_OK || !*is_enqueued) {
        take_back(queue, run);
        return status;
    }
    VXD_TRY(enqueue(queue, run, err));
    for (int i = 0; i < run->net->n_coord_sets; i++) {
        run->coord_sets[i].in_round = false;
    }
out:
    return status;
}

enum vxd_status vxd_net_run_check_prediction(struct vxd_queue *queue,
                                             struct vxd_net_run *run, bool *is_right,
                                             struct vxd_err *err)
{
    const uint32_t *counts = run->h_counts.ptr;
    enum vxd_status status = VXD_OK;

    *is_right = counts[2 * (size_t)run->net->n_coord_sets] == VXD_OK;
    for (int i = 0; i < run->net->n_coord_sets; i++) {
        *is_right = *is_right && counts[2 * i + 1] <= run->coord_sets[i].capacity;
    }
    if (!*is_right) {
        take_back(queue, run);
        VXD_TRY(vxd_queue_fill(queue, run->counts.ptr, 0, run->counts.n_bytes, err));
        return VXD_OK;
    }
    VXD_TRY(vxd_net_run_count_coord_sets(run, err));
    if (run->stage == VXD_NET_STAGE_WHOLE) {
        run->phase++;
        run->stage = VXD_NET_STAGE_OVER;
        vxd_net_run_free(queue, run, &run->scratch);
    }
    run->is_predicted = false;
out:
    return status;
}
