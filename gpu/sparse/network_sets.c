// SPDX-License-Identifier: Apache-2.0
/* Coordinate sets of a run. How many rows a set gets is known once it was made and the host
 * has read its count; before, only a bound is, up to eight times the input's rows a level.
 * On the CPU each set waits for its parents' counts; on a GPU a wait costs more than memory,
 * so sets are made of sets not yet counted while the bounds are moderate. */
#include "gpu/sparse/network_internal.h"

#define LOOSE_ROWS ((size_t)1 << 22)

size_t vxd_net_run_bucket(const struct vxd_net *net, size_t n)
{
    size_t step = VXD_SPARSE_ROW_PAD;

    (void)net; /* in builds without CUDA */
    if (!VXD_ON_CUDA(net->context)) {
        return n;
    }
    while (step < n / 8) {
        step *= 2;
    }
    return n == 0 ? step : (n + step - 1) / step * step;
}

/* Rows that a parent may have. */
static size_t rows_of(const struct vxd_net_run *run, int set)
{
    return run->sets[set].is_counted ? run->sets[set].n_rows : run->sets[set].capacity;
}

static bool is_loose(const struct vxd_net_run *run, const struct vxd_net_set *plan,
                     size_t capacity)
{
    size_t left =
        run->net->options.max_bytes - run->net->info.weight_bytes - run->n_bytes;
    bool is_known = (plan->a < 0 || run->sets[plan->a].is_counted) &&
                    (plan->b < 0 || run->sets[plan->b].is_counted);

    if (is_known) {
        return false;
    }
    return !VXD_ON_CUDA(run->net->context) || capacity > LOOSE_ROWS ||
           vxd_sparse_set_bytes(capacity) > left / 8;
}

/* How many rows a set may get, and coordinates it is made of. */
static void find_bounds(const struct vxd_net_run *run, const struct vxd_net_set *plan,
                        size_t *capacity, size_t *n_candidates)
{
    switch (plan->kind) {
    case VXD_NET_SET_INPUT:
        *n_candidates = run->input.n_rows;
        *capacity = run->input.n_rows;
        break;
    case VXD_NET_SET_DERIVED:
        *n_candidates = vxd_sparse_derive_candidates(plan->rule, &plan->geometry,
                                                     run->sets[plan->a].set.capacity);
        *capacity =
            vxd_sparse_derive_bound(plan->rule, &plan->geometry, rows_of(run, plan->a),
                                    plan->shape, run->input.n_samples);
        break;
    case VXD_NET_SET_UNION:
        *n_candidates = run->sets[plan->a].set.capacity + run->sets[plan->b].set.capacity;
        *capacity = rows_of(run, plan->a) + rows_of(run, plan->b);
        break;
    case VXD_NET_SET_SUBSET:
        *n_candidates = run->sets[plan->a].set.capacity;
        *capacity = rows_of(run, plan->a);
        break;
    }
    *capacity = vxd_net_run_bucket(run->net, *capacity);
}

/* The set's memory: its own arrays, then the lists of its parents' rows. */
static enum vxd_status lay_out_set(struct vxd_queue *queue, struct vxd_net_run *run,
                                   int number, struct vxd_err *err)
{
    const struct vxd_net_set *plan = &run->net->sets[number];
    struct vxd_net_run_set *to = &run->sets[number];
    size_t n_lists = plan->kind == VXD_NET_SET_UNION    ? 2
                     : plan->kind == VXD_NET_SET_SUBSET ? 1
                                                        : 0;
    size_t total = vxd_sparse_set_bytes(to->capacity);
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
    VXD_TRY(
        vxd_sparse_set_layout(to->block.ptr, to->capacity, plan->shape, &to->set, err));
    bytes = to->block.ptr;
    for (size_t i = 0; i < n_lists; i++) {
        to->rows[i] = (int32_t *)(void *)(bytes + offsets[i]);
    }
    to->set.n_rows = (uint32_t *)run->counts.ptr + 2 * (size_t)number + 1;
out:
    return status;
}

static enum vxd_status fill_set(struct vxd_queue *queue, struct vxd_net_run *run,
                                int number, const struct vxd_buffer *scratch,
                                struct vxd_err *err)
{
    const struct vxd_net_set *plan = &run->net->sets[number];
    struct vxd_net_run_set *to = &run->sets[number];

    switch (plan->kind) {
    case VXD_NET_SET_INPUT:
        return vxd_sparse_set_make(queue, run->input.coords, run->input.n_rows,
                                   run->input.n_samples, &to->set, run->rows.ptr,
                                   scratch->ptr, scratch->n_bytes, err);
    case VXD_NET_SET_DERIVED:
        return vxd_sparse_set_derive(queue, plan->rule, &plan->geometry,
                                     &run->sets[plan->a].set, &to->set, scratch->ptr,
                                     scratch->n_bytes, err);
    case VXD_NET_SET_UNION:
        return vxd_sparse_set_union(queue, &run->sets[plan->a].set,
                                    &run->sets[plan->b].set, &to->set, to->rows[0],
                                    to->rows[1], scratch->ptr, scratch->n_bytes, err);
    case VXD_NET_SET_SUBSET:
        break;
    }
    return vxd_sparse_set_subset(queue, &run->sets[plan->a].set,
                                 vxd_net_run_item(run, run->net->keep_items[plan->layer]),
                                 &to->set, to->rows[0], scratch->ptr, scratch->n_bytes,
                                 err);
}

static enum vxd_status make_set(struct vxd_queue *queue, struct vxd_net_run *run,
                                int number, size_t n_candidates, struct vxd_err *err)
{
    struct vxd_net_run_set *to = &run->sets[number];
    size_t scratch_bytes =
        vxd_sparse_set_scratch_bytes(queue, n_candidates, to->capacity);
    struct vxd_buffer scratch = {NULL, 0, VXD_SPACE_DEVICE};
    enum vxd_status status;

    if (scratch_bytes == 0) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "%zu voxels made of %zu coordinates are too many", to->capacity,
                        n_candidates);
    }
    VXD_TRY(lay_out_set(queue, run, number, err));
    VXD_TRY(vxd_net_run_alloc(queue, run, scratch_bytes, &scratch, err));
    VXD_TRY(fill_set(queue, run, number, &scratch, err));
    to->is_made = true;
out:
    vxd_net_run_free(queue, run, &scratch);
    return status;
}

enum vxd_status vxd_net_run_make_sets(struct vxd_queue *queue, struct vxd_net_run *run,
                                      bool *done, struct vxd_err *err)
{
    const struct vxd_net *net = run->net;
    int number;
    enum vxd_status status = VXD_OK;

    for (number = 0; number < net->n_sets; number++) {
        const struct vxd_net_set *plan = &net->sets[number];
        size_t n_candidates = 0;

        if (!plan->used || plan->phase != run->phase || run->sets[number].is_made) {
            continue;
        }
        find_bounds(run, plan, &run->sets[number].capacity, &n_candidates);
        if (is_loose(run, plan, run->sets[number].capacity)) {
            break;
        }
        status = make_set(queue, run, number, n_candidates, err);
        if (status != VXD_OK) {
            if (plan->layer >= 0) {
                vxd_net_blame(err, net->nodes[plan->layer].layer.name);
            }
            return status;
        }
    }
    *done = number == net->n_sets;
    VXD_TRY(vxd_queue_copy(queue, run->h_counts.ptr, run->counts.ptr,
                           run->h_counts.n_bytes, err));
out:
    return status;
}

enum vxd_status vxd_net_run_count_sets(struct vxd_net_run *run, struct vxd_err *err)
{
    const uint32_t *counts = run->h_counts.ptr;

    for (int i = 0; i < run->net->n_sets; i++) {
        struct vxd_net_run_set *set = &run->sets[i];
        size_t most;

        if (!set->is_made || set->is_counted) {
            continue;
        }
        set->n_rows = counts[2 * i + 1];
        if (set->n_rows > set->capacity) {
            return vxd_fail(err, VXD_INTERNAL, NULL,
                            "a set of %zu voxels in room for %zu", set->n_rows,
                            set->capacity);
        }
        set->is_counted = true;
        /* From now on work is sized by what there is. */
        most = vxd_net_run_bucket(run->net, set->n_rows);
        set->capacity = most < set->capacity ? most : set->capacity;
        set->set.capacity = set->capacity;
    }
    return VXD_OK;
}
