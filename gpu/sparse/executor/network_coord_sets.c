// SPDX-License-Identifier: Apache-2.0
/* Coordinate sets of a run. The number of rows of a set is known once the set was made
 * and the host has read its count. Before that only a bound is known, of up to eight
 * times the input's rows for each level. On the CPU each set waits for the counts of
 * its parents. On a GPU a wait costs more than memory, so sets are derived from sets
 * that are not counted yet, as long as their bounds are moderate. */
#include <stdlib.h>

#include "gpu/sparse/executor/network_internal.h"

/* A bound is moderate up to this many rows, or MODERATE_TIMES times the input's:
 * candidates are sorted in memory and time proportional to the bound, which soon
 * exceeds the cost of a wait. */
#define MODERATE_ROWS ((size_t)1 << 17)
#define MODERATE_TIMES 8
#define COORD_SETS_AT_ONCE 8

static bool is_bound_large(const struct vxd_net_run *run,
                           const struct vxd_net_coord_set *plan, size_t capacity,
                           size_t n_candidates)
{
    bool is_known = (plan->a < 0 || run->coord_sets[plan->a].is_counted) &&
                    (plan->b < 0 || run->coord_sets[plan->b].is_counted);
    size_t most;
    size_t left;

    if (is_known || !VXD_ON_CUDA(run->net->context)) {
        return !is_known;
    }
    left = run->net->options.max_bytes - run->net->info.weight_bytes - run->n_bytes;
    if (vxd_coord_set_bytes(capacity) > left / 8) {
        return true;
    }
    most = capacity > n_candidates ? capacity : n_candidates;
    return most > MODERATE_ROWS && most / MODERATE_TIMES > run->coord_sets[0].capacity;
}

/* Upper bounds of a set's rows and of the coordinates that it is made from. */
static void find_bounds(const struct vxd_net_run *run, int number, size_t *capacity,
                        size_t *n_candidates)
{
    const struct vxd_net_coord_set *plan = &run->net->coord_sets[number];
    size_t rows_a = plan->a >= 0 ? run->coord_sets[plan->a].capacity : 0;
    size_t rows_b = plan->b >= 0 ? run->coord_sets[plan->b].capacity : 0;

    *n_candidates = 0;
    *capacity = 0;
    switch (plan->kind) {
    case VXD_NET_COORD_SET_INPUT:
        *n_candidates = run->input.n_rows;
        *capacity = vxd_net_run_capacity(run, number, run->input.n_rows);
        break;
    case VXD_NET_COORD_SET_DERIVED:
        *n_candidates = vxd_sparse_derive_candidates(plan->rule, &plan->geometry, rows_a);
        *capacity = vxd_sparse_derive_bound(plan->rule, &plan->geometry, rows_a,
                                            plan->shape, run->input.n_samples);
        break;
    case VXD_NET_COORD_SET_UNION:
    case VXD_NET_COORD_SET_SUBSET:
        *n_candidates = rows_a + rows_b;
        *capacity = rows_a + rows_b;
        break;
    }
}

/* Lays out the set's memory: its own arrays, then the lists of its parents' rows. */
static enum vxd_status lay_out_coord_set(struct vxd_queue *queue, struct vxd_net_run *run,
                                         int number, struct vxd_err *err)
{
    const struct vxd_net_coord_set *plan = &run->net->coord_sets[number];
    struct vxd_net_run_coord_set *to = &run->coord_sets[number];
    size_t n_lists = plan->kind == VXD_NET_COORD_SET_UNION    ? 2
                     : plan->kind == VXD_NET_COORD_SET_SUBSET ? 1
                                                              : 0;
    size_t total = vxd_coord_set_bytes(to->capacity);
    size_t offsets[2];
    char *bytes;
    enum vxd_status status;

    for (size_t i = 0; i < n_lists; i++) {
        if (!vxd_layout_add(&total, to->capacity, sizeof(int32_t), &offsets[i])) {
            return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "%zu voxels are too many",
                            to->capacity);
        }
    }
    VXD_TRY(vxd_net_run_alloc(queue, run, total, &to->block, err));
    VXD_TRY(vxd_coord_set_layout(to->block.ptr, to->capacity, plan->shape, &to->coord_set,
                                 err));
    bytes = to->block.ptr;
    for (size_t i = 0; i < n_lists; i++) {
        to->rows[i] = (int32_t *)(void *)(bytes + offsets[i]);
    }
    to->coord_set.n_rows = (uint32_t *)run->counts.ptr + 2 * (size_t)number + 1;
out:
    return status;
}

static enum vxd_status fill_coord_set(struct vxd_queue *queue,
                                      const struct vxd_net_run *run, int number,
                                      struct vxd_err *err)
{
    const struct vxd_net_coord_set *plan = &run->net->coord_sets[number];
    struct vxd_coord_set to = run->coord_sets[number].coord_set;
    int32_t *const *rows = run->coord_sets[number].rows;

    if (plan->kind == VXD_NET_COORD_SET_UNION) {
        return vxd_coord_set_union(queue, &run->coord_sets[plan->a].coord_set,
                                   &run->coord_sets[plan->b].coord_set, &to, rows[0],
                                   rows[1], run->scratch.ptr, run->scratch.n_bytes, err);
    }
    return vxd_coord_set_subset(queue, &run->coord_sets[plan->a].coord_set,
                                vxd_net_run_item(run, run->net->keep_items[plan->layer]),
                                &to, rows[0], run->scratch.ptr, run->scratch.n_bytes,
                                err);
}

static enum vxd_status name_coord_set_layer(const struct vxd_net_run *run, int number,
                                            enum vxd_status status, struct vxd_err *err)
{
    int layer = run->net->coord_sets[number].layer;

    if (status != VXD_OK && layer >= 0) {
        vxd_net_name_layer(err, run->net->nodes[layer].layer.name);
    }
    return status;
}

/* Allocates the memory of one more set of the round. */
static enum vxd_status prepare_coord_set(struct vxd_queue *queue, struct vxd_net_run *run,
                                         int number, size_t n_candidates,
                                         size_t *scratch_bytes, struct vxd_err *err)
{
    struct vxd_net_run_coord_set *to = &run->coord_sets[number];
    size_t n_bytes = vxd_coord_set_scratch_bytes(queue, n_candidates, to->capacity);
    enum vxd_status status;

    if (n_bytes == 0) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "%zu voxels made of %zu coordinates are too many", to->capacity,
                        n_candidates);
    }
    VXD_TRY(lay_out_coord_set(queue, run, number, err));
    *scratch_bytes = n_bytes > *scratch_bytes ? n_bytes : *scratch_bytes;
    to->is_made = true;
    to->in_round = true;
out:
    return status;
}

/* Decides which sets the round makes; *done: no set is left for another round. */
static enum vxd_status prepare_round(struct vxd_queue *queue, struct vxd_net_run *run,
                                     bool *done, struct vxd_err *err)
{
    const struct vxd_net *net = run->net;
    size_t scratch_bytes = 0;
    int number;
    enum vxd_status status = VXD_OK;

    for (number = 0; number < net->n_coord_sets; number++) {
        const struct vxd_net_coord_set *plan = &net->coord_sets[number];
        struct vxd_net_run_coord_set *to = &run->coord_sets[number];
        size_t n_candidates;

        if (!plan->used || plan->phase != run->phase || to->is_made) {
            continue;
        }
        find_bounds(run, number, &to->capacity, &n_candidates);
        if (is_bound_large(run, plan, to->capacity, n_candidates)) {
            break;
        }
        VXD_TRY(name_coord_set_layer(
            run, number,
            prepare_coord_set(queue, run, number, n_candidates, &scratch_bytes, err),
            err));
    }
    *done = number == net->n_coord_sets;
    VXD_TRY(vxd_net_run_alloc(queue, run, scratch_bytes, &run->scratch, err));
out:
    return status;
}

/* Derives the sets from number *next on that are consecutive in the round, in one
 * call. */
static enum vxd_status derive_coord_sets(struct vxd_queue *queue,
                                         const struct vxd_net_run *run, int *next,
                                         struct vxd_err *err)
{
    struct vxd_sparse_derive_request requests[COORD_SETS_AT_ONCE];
    struct vxd_coord_set to[COORD_SETS_AT_ONCE];
    int first = *next;
    size_t n = 0;

    while (*next < run->net->n_coord_sets && n < COORD_SETS_AT_ONCE) {
        const struct vxd_net_coord_set *plan = &run->net->coord_sets[*next];

        if (run->coord_sets[*next].in_round) {
            if (plan->kind != VXD_NET_COORD_SET_DERIVED) {
                break;
            }
            to[n] = run->coord_sets[*next].coord_set;
            requests[n] = (struct vxd_sparse_derive_request){
                plan->rule, plan->geometry, &run->coord_sets[plan->a].coord_set, &to[n]};
            n++;
        }
        (*next)++;
    }
    return name_coord_set_layer(run, first,
                                vxd_coord_sets_derive(queue, requests, n,
                                                      run->scratch.ptr,
                                                      run->scratch.n_bytes, err),
                                err);
}

enum vxd_status vxd_net_run_make_input(struct vxd_queue *queue,
                                       const struct vxd_net_run *run, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    for (int i = 0; i < run->net->n_coord_sets; i++) {
        struct vxd_coord_set coord_set = run->coord_sets[i].coord_set;

        if (run->coord_sets[i].in_round &&
            run->net->coord_sets[i].kind == VXD_NET_COORD_SET_INPUT) {
            VXD_TRY(vxd_coord_set_make(queue, run->input.coords, run->input.n_rows,
                                       run->input.n_samples, &coord_set, run->rows.ptr,
                                       run->scratch.ptr, run->scratch.n_bytes, err));
        }
    }
out:
    return status;
}

enum vxd_status vxd_net_run_derive_coord_sets(struct vxd_queue *queue,
                                              const struct vxd_net_run *run,
                                              struct vxd_err *err)
{
    int number = 0;
    enum vxd_status status = VXD_OK;

    while (number < run->net->n_coord_sets) {
        enum vxd_net_coord_set_kind kind = run->net->coord_sets[number].kind;

        if (!run->coord_sets[number].in_round || kind == VXD_NET_COORD_SET_INPUT) {
            number++;
        } else if (kind == VXD_NET_COORD_SET_DERIVED) {
            VXD_TRY(derive_coord_sets(queue, run, &number, err));
        } else {
            VXD_TRY(name_coord_set_layer(run, number,
                                         fill_coord_set(queue, run, number, err), err));
            number++;
        }
    }
out:
    return status;
}

/* Without the input's coordinates, which are the caller's and at another address in
 * each run. */
static enum vxd_status enqueue_round(struct vxd_queue *queue, void *args,
                                     struct vxd_err *err)
{
    const struct vxd_net_run *run = args;
    enum vxd_status status;

    VXD_TRY(vxd_net_run_derive_coord_sets(queue, run, err));
    VXD_TRY(vxd_queue_copy(queue, run->h_counts.ptr, run->counts.ptr,
                           run->h_counts.n_bytes, err));
out:
    return status;
}

enum vxd_status vxd_net_run_make_coord_sets(struct vxd_queue *queue,
                                            struct vxd_net_run *run, bool *done,
                                            struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(prepare_round(queue, run, done, err));
    VXD_TRY(vxd_net_run_make_input(queue, run, err));
    VXD_TRY(vxd_net_run_enqueue(queue, run, VXD_NET_TAG_COORD_SETS, enqueue_round, err));
out:
    for (int i = 0; i < run->net->n_coord_sets; i++) {
        run->coord_sets[i].in_round = false;
    }
    vxd_net_run_free(queue, run, &run->scratch);
    return status;
}

enum vxd_status vxd_net_run_predict_coord_sets(struct vxd_queue *queue,
                                               struct vxd_net_run *run, bool *is_known,
                                               size_t *scratch_bytes, struct vxd_err *err)
{
    const struct vxd_net *net = run->net;
    size_t *capacities = malloc((size_t)net->n_coord_sets * sizeof *capacities);
    enum vxd_status status = VXD_OK;

    *is_known = false;
    *scratch_bytes = 0;
    if (capacities == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a run");
    }
    if (!vxd_net_run_predict(run, capacities)) {
        goto out;
    }
    *is_known = true;
    for (int i = 0; i < net->n_coord_sets; i++) {
        size_t bound;
        size_t n_candidates;

        if (net->coord_sets[i].used) {
            find_bounds(run, i, &bound, &n_candidates);
            run->coord_sets[i].capacity = bound < capacities[i] ? bound : capacities[i];
            VXD_TRY(prepare_coord_set(queue, run, i, n_candidates, scratch_bytes, err));
        }
    }
out:
    free(capacities);
    return status;
}

enum vxd_status vxd_net_run_count_coord_sets(struct vxd_net_run *run, struct vxd_err *err)
{
    const uint32_t *counts = run->h_counts.ptr;

    for (int i = 0; i < run->net->n_coord_sets; i++) {
        struct vxd_net_run_coord_set *coord_set = &run->coord_sets[i];
        size_t most;

        if (!coord_set->is_made || coord_set->is_counted) {
            continue;
        }
        coord_set->n_rows = counts[2 * i + 1];
        if (coord_set->n_rows > coord_set->capacity) {
            return vxd_fail(err, VXD_INTERNAL, NULL,
                            "a coordinate set of %zu voxels exceeds its capacity of %zu",
                            coord_set->n_rows, coord_set->capacity);
        }
        coord_set->is_counted = true;
        most = vxd_net_run_capacity(run, i, coord_set->n_rows);
        if (run->is_predicted) {
            continue; /* its memory is placed already */
        }
        /* From here on work is sized by the true counts. */
        coord_set->capacity = most < coord_set->capacity ? most : coord_set->capacity;
        coord_set->coord_set.capacity = coord_set->capacity;
    }
    return VXD_OK;
}
