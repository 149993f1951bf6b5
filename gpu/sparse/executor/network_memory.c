// SPDX-License-Identifier: Apache-2.0
/* Memory of a run's phase, once its coordinate sets have their sizes: one block for
 * maps and data of the sets, one for everything that steps make. In the latter, pieces
 * that are never needed at the same time share memory: the largest is placed first,
 * and each goes to the lowest place that is free as long as it is needed. */
#include <stdlib.h>
#include <string.h>

#include "gpu/sparse/executor/network_internal.h"
#include "gpu/sparse/coords/coords_math.h"

/* --- tokens ------------------------------------------------------------------------------ */

/* The rows of tokens are known before the run. */
static enum vxd_status fill_tokens(struct vxd_queue *queue, struct vxd_net_run *run,
                                   struct vxd_err *err)
{
    const struct vxd_net *net = run->net;
    size_t n_slot = vxd_net_slot_items(run);
    size_t n = (size_t)net->n_slots * n_slot;
    enum vxd_status status;

    if (n == 0 || run->h_tokens != NULL) {
        return VXD_OK;
    }
    run->h_tokens = calloc(n, sizeof *run->h_tokens);
    if (run->h_tokens == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a run");
    }
    for (int i = 0; i <= net->n_layers; i++) {
        uint32_t *slot = run->h_tokens + (size_t)net->tensors[i].slot * n_slot;
        uint32_t n_tokens = (uint32_t)net->tensors[i].n_tokens;

        for (int s = 0; s <= run->input.n_samples && net->tensors[i].coord_set < 0; s++) {
            slot[1] = (uint32_t)run->input.n_samples * n_tokens;
            slot[2 + s] = (uint32_t)s * n_tokens;
        }
    }
    VXD_TRY(vxd_net_run_alloc(queue, run, n * sizeof(uint32_t), &run->tokens, err));
    VXD_TRY(
        vxd_queue_copy(queue, run->tokens.ptr, run->h_tokens, n * sizeof(uint32_t), err));
out:
    return status;
}

/* --- maps -------------------------------------------------------------------------------- */

/* Lays out the phase's maps, starts and coordinates; with block NULL computes only
 * their size. */
static enum vxd_status lay_out_maps(const struct vxd_queue *queue,
                                    struct vxd_net_run *run, char *block, size_t *total,
                                    struct vxd_err *err)
{
    const struct vxd_net *net = run->net;
    size_t n_starts = (size_t)run->input.n_samples + 1;
    bool ok = true;
    enum vxd_status status = VXD_OK;

    *total = 0;
    for (int i = 0; i < net->n_maps; i++) {
        const struct vxd_net_map *plan = &net->maps[i];
        int n_taps = vxd_sparse_n_taps(&plan->geometry);
        size_t n_rows = run->coord_sets[plan->out].capacity;
        size_t offset = 0;

        if (!plan->used || plan->phase != run->phase) {
            continue;
        }
        ok = ok && vxd_kernel_map_bytes(queue, n_taps, n_rows) > 0 &&
             vxd_layout_add(total, 1, vxd_kernel_map_bytes(queue, n_taps, n_rows),
                            &offset);
        if (block != NULL) {
            VXD_TRY(vxd_kernel_map_layout(queue, block + offset, n_taps, n_rows,
                                          &run->maps[i], err));
            run->maps[i].n_pairs = (uint64_t *)run->n_pairs.ptr + i;
        }
    }
    for (int i = 0; i < net->n_coord_sets; i++) {
        const struct vxd_net_coord_set *plan = &net->coord_sets[i];
        struct vxd_net_run_coord_set *coord_set = &run->coord_sets[i];
        size_t starts = 0;
        size_t coords = 0;

        if (!plan->used || plan->phase != run->phase) {
            continue;
        }
        ok = ok &&
             (!plan->wants_starts ||
              vxd_layout_add(total, n_starts, sizeof(uint32_t), &starts)) &&
             (!plan->wants_coords ||
              vxd_layout_add(total, coord_set->capacity, 4 * sizeof(int32_t), &coords));
        if (block != NULL) {
            coord_set->starts =
                plan->wants_starts ? (uint32_t *)(void *)(block + starts) : NULL;
            coord_set->coords =
                plan->wants_coords ? (int32_t *)(void *)(block + coords) : NULL;
        }
    }
    if (!ok) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "the size of the kernel maps overflows");
    }
out:
    return status;
}

static enum vxd_status place_maps(struct vxd_queue *queue, struct vxd_net_run *run,
                                  struct vxd_err *err)
{
    struct vxd_buffer *block = &run->phases[run->phase].maps;
    size_t total;
    enum vxd_status status;

    VXD_TRY(lay_out_maps(queue, run, NULL, &total, err));
    VXD_TRY(vxd_net_run_alloc(queue, run, total, block, err));
    VXD_TRY(lay_out_maps(queue, run, block->ptr, &total, err));
out:
    return status;
}

/* --- items ------------------------------------------------------------------------------- */

static bool output_bytes(const struct vxd_net_run *run, int number, size_t *out)
{
    const struct vxd_net_output *output = &run->net->outputs[number];
    const struct vxd_net_tensor *tensor = &run->net->tensors[output->layer + 1];
    size_t n = vxd_net_run_max_rows(run, output->layer + 1);

    if (output->kind == VXD_NET_OUT_DENSE_BEV) {
        n = (size_t)run->input.n_samples;
        for (int axis = 0; axis < 3; axis++) {
            if (!vxd_size_mul(
                    n, (size_t)run->net->coord_sets[tensor->coord_set].shape[axis], &n)) {
                return false;
            }
        }
    }
    if (output->kind != VXD_NET_OUT_ARGMAX &&
        !vxd_size_mul(n, (size_t)tensor->n_channels, &n)) {
        return false;
    }
    return vxd_size_mul(n, sizeof(float), out);
}

static bool item_bytes(const struct vxd_net_run *run, const struct vxd_net_item *item,
                       size_t *out)
{
    const struct vxd_net *net = run->net;
    size_t element = vxd_net_element_bytes(net->options.precision);

    switch (item->kind) {
    case VXD_NET_ITEM_TENSOR:
        return vxd_size_mul(vxd_net_run_max_rows(run, item->index),
                            net->tensors[item->index].stride * element, out);
    case VXD_NET_ITEM_KEEP:
        *out = vxd_net_run_max_rows(run, net->nodes[item->index].layer.inputs[1] + 1);
        return true;
    case VXD_NET_ITEM_VALUES:
        return output_bytes(run, item->index, out);
    case VXD_NET_ITEM_LABELS:
        return vxd_size_mul(
            vxd_net_run_max_rows(run, net->outputs[item->index].layer + 1),
            sizeof(int32_t), out);
    case VXD_NET_ITEM_SCRATCH:
        *out = vxd_net_run_scratch_bytes(run, item->index);
        return true;
    }
    return false;
}

/* Places the n items of by_size, which are sorted by size, largest first; `sorted` has
 * capacity for as many. An item must not overlap earlier items whose steps overlap its
 * own; those are visited by ascending place, and the item goes into the first gap that
 * is large enough. */
static bool pack_items(struct vxd_net_run *run, const int *by_size, int *sorted, int n,
                       size_t *total)
{
    const struct vxd_net_item *items = run->net->items;

    *total = 0;
    for (int i = 0; i < n; i++) {
        const struct vxd_net_item *item = &items[by_size[i]];
        size_t n_bytes = run->item_bytes[by_size[i]];
        size_t at = 0;
        size_t end;
        int place = 0;

        for (int j = 0; j < i; j++) {
            const struct vxd_net_item *other = &items[sorted[j]];
            size_t other_at = run->item_offsets[sorted[j]];
            size_t other_end = other_at + run->item_bytes[sorted[j]];

            if (other->last < item->first || item->last < other->first) {
                continue;
            }
            if (other_at >= at && other_at - at >= n_bytes) {
                break;
            }
            at = other_end > at ? other_end : at;
        }
        if (!vxd_size_add(at, n_bytes, &end)) {
            return false;
        }
        run->item_offsets[by_size[i]] = at;
        while (place < i && run->item_offsets[sorted[place]] <= at) {
            place++;
        }
        memmove(sorted + place + 1, sorted + place, (size_t)(i - place) * sizeof *sorted);
        sorted[place] = by_size[i];
        *total = end > *total ? end : *total;
    }
    return true;
}

/* Sorts the phase's items by size, descending; -1 where a size overflows. */
static int sort_items(struct vxd_net_run *run, int *by_size)
{
    int n = 0;

    for (int i = 0; i < run->net->n_items; i++) {
        size_t n_bytes;
        int at = n;

        if (run->net->items[i].phase != run->phase) {
            continue;
        }
        if (!item_bytes(run, &run->net->items[i], &n_bytes) || n_bytes > SIZE_MAX - 255) {
            return -1;
        }
        run->item_bytes[i] = (n_bytes + 255) / 256 * 256;
        while (at > 0 && run->item_bytes[by_size[at - 1]] < run->item_bytes[i]) {
            by_size[at] = by_size[at - 1];
            at--;
        }
        by_size[at] = i;
        n++;
    }
    return n;
}

static enum vxd_status place_items(struct vxd_queue *queue, struct vxd_net_run *run,
                                   struct vxd_err *err)
{
    size_t n_items = (size_t)run->net->n_items;
    int *order = malloc(2 * n_items * sizeof *order);
    size_t total = 0;
    int n;
    enum vxd_status status;

    if (order == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a run");
    }
    n = sort_items(run, order);
    if (n < 0 || !pack_items(run, order, order + n_items, n, &total)) {
        status = vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                          "the size of the features overflows");
        goto out;
    }
    VXD_TRY(vxd_net_run_alloc(queue, run, total, &run->phases[run->phase].items, err));
out:
    free(order);
    return status;
}

enum vxd_status vxd_net_run_place(struct vxd_queue *queue, struct vxd_net_run *run,
                                  size_t scratch_bytes, struct vxd_err *err)
{
    size_t map_bytes;
    enum vxd_status status;

    VXD_TRY(fill_tokens(queue, run, err));
    VXD_TRY(place_maps(queue, run, err));
    VXD_TRY(place_items(queue, run, err));
    map_bytes = vxd_net_run_map_scratch_bytes(queue, run);
    VXD_TRY(vxd_net_run_alloc(queue, run,
                              map_bytes > scratch_bytes ? map_bytes : scratch_bytes,
                              &run->scratch, err));
out:
    return status;
}
