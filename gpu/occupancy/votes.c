// SPDX-License-Identifier: Apache-2.0
/* Votes of scans for materials. They are counted before the scene's edit, which needs the materials
 * that win; what was there before is kept, so that a scan that fails has not voted. */
#include <stdlib.h>

#include "gpu/occupancy/occupancy_backends.h"
#include "gpu/svdag/store/store.h"

/* One list of hits that has voted. */
struct vote_list {
    struct vxd_occupancy_work work;
    struct vxd_buffer memory;
};

struct vxd_occupancy_ballot {
    struct vote_list *lists;
    size_t n;
    bool is_closed;
};

static enum vxd_status run(struct vxd_queue *queue, enum vxd_occupancy_step step,
                           const struct vote_list *list, struct vxd_err *err)
{
    return VXD_BACKEND_FN(queue, vxd_occupancy_run)(queue, step, &list->work,
                                                    list->work.list.n, err);
}

static enum vxd_status alloc_list(struct vxd_queue *queue, struct vote_list *list,
                                  struct vxd_err *err)
{
    struct vxd_occupancy_work *work = &list->work;
    size_t n = work->list.n;
    size_t n_bytes = 0;
    size_t at[8];
    enum vxd_status status;
    char *d;

    if (n > UINT32_MAX / VXD_OCCUPANCY_LEAF_VOXELS ||
        !vxd_layout_add(&n_bytes, n, VXD_OCCUPANCY_LEAF_VOXELS * sizeof(uint64_t),
                        &at[0]) ||
        !vxd_layout_add(&n_bytes, n, sizeof(int64_t), &at[1]) ||
        !vxd_layout_add(&n_bytes, n, sizeof(int32_t), &at[2]) ||
        !vxd_layout_add(&n_bytes, n, sizeof(uint32_t), &at[3]) ||
        !vxd_layout_add(&n_bytes, n, VXD_OCCUPANCY_LEAF_VOXELS * sizeof(uint16_t),
                        &at[4]) ||
        !vxd_layout_add(&n_bytes, n, 1, &at[5]) ||
        !vxd_layout_add(&n_bytes, n, sizeof(uint64_t), &at[6]) ||
        !vxd_layout_add(&n_bytes, n, sizeof(uint64_t), &at[7])) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %zu votes", n);
    }
    VXD_TRY(vxd_device_alloc(queue, n_bytes, &list->memory, err));
    d = list->memory.ptr;
    work->saved = (void *)(d + at[0]);
    work->block_keys = (void *)(d + at[1]);
    work->entries = (void *)(d + at[2]);
    work->list_firsts = (void *)(d + at[3]);
    work->list_values = (void *)(d + at[4]);
    work->is_new = (void *)(d + at[5]);
    /* The list is its owner's, who may free it before the votes are taken back. */
    VXD_TRY(
        vxd_queue_copy(queue, d + at[6], work->list.codes, n * sizeof(uint64_t), err));
    VXD_TRY(
        vxd_queue_copy(queue, d + at[7], work->list.masks, n * sizeof(uint64_t), err));
    work->list.codes = (void *)(d + at[6]);
    work->list.masks = (void *)(d + at[7]);
out:
    return status;
}

/* Finds the rows of the list's blocks; new ones have no votes. */
static enum vxd_status add_rows(struct vxd_queue *queue,
                                const struct vxd_occupancy_plan *plan,
                                struct vote_list *list, struct vxd_err *err)
{
    struct vxd_occupancy *layer = plan->layer;
    struct vxd_occupancy_work *work = &list->work;
    struct vxd_hashmap_insert_args args = {.keys = work->block_keys,
                                           .n = work->list.n,
                                           .order = VXD_HASH_ANY,
                                           .indices = work->entries,
                                           .is_new = work->is_new};
    enum vxd_status status;

    VXD_TRY(run(queue, VXD_OCCUPANCY_VOTE_KEY, list, err));
    vxd_occupancy_allow_votes(layer);
    VXD_TRY(vxd_occupancy_prepare(queue, layer->votes, plan->svdag, work->block_keys,
                                  work->list.n, &args.max_new, err));
    layer->is_damaged = true; /* an insertion that fails may have added some */
    VXD_TRY(vxd_hashmap_insert(queue, layer->votes, &args, err));
    work->vote_rows = vxd_hashmap_values(layer->votes, 0);
    VXD_TRY(run(queue, VXD_OCCUPANCY_VOTE_BEGIN, list, err));
    layer->is_damaged = false;
    VXD_TRY(vxd_queue_wait(queue, err));
    status = vxd_svdag_check_stop(plan->svdag, err);
out:
    return status;
}

static enum vxd_status vote(struct vxd_queue *queue, struct vxd_occupancy_plan *plan,
                            const struct vxd_svdag_voxels *hits, uint32_t value,
                            struct vxd_svdag_voxels *voted, struct vxd_err *err)
{
    struct vote_list *list = &plan->ballot->lists[plan->ballot->n];
    enum vxd_status status;

    list->work = (struct vxd_occupancy_work){
        .rule = plan->layer->rule, .list = *hits, .value = value};
    VXD_TRY(alloc_list(queue, list, err));
    VXD_TRY(add_rows(queue, plan, list, err));
    VXD_TRY(run(queue, VXD_OCCUPANCY_VOTE, list, err));
    plan->ballot->n++; /* it can be taken back from here on */
    *voted = *hits;
    voted->first_value = list->work.list_firsts;
    voted->values = list->work.list_values;
out:
    if (status != VXD_OK) {
        vxd_device_free(queue, &list->memory);
    }
    return status;
}

enum vxd_status vxd_occupancy_vote(struct vxd_queue *queue,
                                   struct vxd_occupancy_plan *plan,
                                   const struct vxd_svdag_voxels *hits,
                                   const uint32_t *values, size_t n_hits,
                                   struct vxd_svdag_voxels *voted, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; i < n_hits; i++) {
        voted[i] = hits[i];
    }
    if (plan->layer->votes == NULL) {
        return VXD_OK;
    }
    plan->ballot = calloc(1, sizeof *plan->ballot);
    if (plan->ballot != NULL) {
        plan->ballot->lists = calloc(n_hits + 1, sizeof *plan->ballot->lists);
    }
    if (plan->ballot == NULL || plan->ballot->lists == NULL) {
        VXD_TRY(vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for votes"));
    }
    for (size_t i = 0; i < n_hits; i++) {
        if (hits[i].n > 0) {
            VXD_TRY(vote(queue, plan, &hits[i], values[i], &voted[i], err));
        }
    }
    status = vxd_queue_wait(queue, err);
out:
    if (status != VXD_OK) {
        vxd_occupancy_ballot_free(queue, plan);
        for (size_t i = 0; i < n_hits; i++) {
            voted[i] = hits[i];
        }
    }
    return status;
}

void vxd_occupancy_ballot_close(const struct vxd_occupancy_plan *plan)
{
    if (plan->ballot != NULL) {
        plan->ballot->is_closed = true;
    }
}

void vxd_occupancy_ballot_free(struct vxd_queue *queue, struct vxd_occupancy_plan *plan)
{
    struct vxd_occupancy_ballot *ballot = plan->ballot;

    for (size_t i = ballot != NULL && ballot->lists != NULL ? ballot->n : 0; i > 0; i--) {
        struct vote_list *list = &ballot->lists[i - 1];

        /* The rows may have moved since: the map grows. */
        list->work.vote_rows = vxd_hashmap_values(plan->layer->votes, 0);
        if (!ballot->is_closed && !plan->layer->is_damaged &&
            run(queue, VXD_OCCUPANCY_VOTE_UNDO, list, NULL) != VXD_OK) {
            plan->layer->is_damaged = true; /* everything is forgotten */
        }
        vxd_device_free(queue, &list->memory);
    }
    if (ballot != NULL) {
        free(ballot->lists);
        free(ballot);
    }
    plan->ballot = NULL;
}

void vxd_occupancy_allow_votes(struct vxd_occupancy *layer)
{
    size_t taken = vxd_hashmap_n_bytes(layer->map);

    if (layer->votes != NULL) {
        vxd_hashmap_set_max_bytes(layer->votes, layer->max_bytes == 0 ? 0
                                                : layer->max_bytes > taken
                                                    ? layer->max_bytes - taken
                                                    : 1);
    }
}
