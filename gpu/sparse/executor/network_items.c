// SPDX-License-Identifier: Apache-2.0
/* Where the rows and pieces of memory of a run are, and memory counted against the
 * network's limit. These functions call no other file of the executor. */
#include "gpu/sparse/executor/network_internal.h"

enum vxd_status vxd_net_run_alloc(struct vxd_queue *queue, struct vxd_net_run *run,
                                  size_t n_bytes, struct vxd_buffer *out,
                                  struct vxd_err *err)
{
    size_t limit = run->net->options.max_bytes - run->net->info.weight_bytes;
    enum vxd_status status;

    *out = (struct vxd_buffer){NULL, 0, VXD_SPACE_DEVICE};
    if (n_bytes > limit - run->n_bytes) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "%zu bytes more than the %zu of the run and the %zu of the "
                        "weights: the network may take %zu",
                        n_bytes, run->n_bytes, run->net->info.weight_bytes,
                        run->net->options.max_bytes);
    }
    VXD_TRY(vxd_device_alloc(queue, n_bytes, out, err));
    run->n_bytes += n_bytes;
    if (run->n_bytes > run->peak_bytes) {
        run->peak_bytes = run->n_bytes;
    }
out:
    return status;
}

void vxd_net_run_free(struct vxd_queue *queue, struct vxd_net_run *run,
                      struct vxd_buffer *buffer)
{
    run->n_bytes -= buffer->n_bytes;
    vxd_device_free(queue, buffer);
}

size_t vxd_net_run_n_rows(const struct vxd_net_run *run, int tensor)
{
    const struct vxd_net_tensor *plan = &run->net->tensors[tensor];

    if (plan->coord_set >= 0) {
        return run->coord_sets[plan->coord_set].n_rows;
    }
    return (size_t)run->input.n_samples * (size_t)plan->n_tokens;
}

size_t vxd_net_run_max_rows(const struct vxd_net_run *run, int tensor)
{
    const struct vxd_net_tensor *plan = &run->net->tensors[tensor];

    return plan->coord_set >= 0 ? run->coord_sets[plan->coord_set].capacity
                                : vxd_net_run_n_rows(run, tensor);
}

struct vxd_net_extent vxd_net_run_extent(const struct vxd_net_run *run, int tensor)
{
    const struct vxd_net_tensor *plan = &run->net->tensors[tensor];
    struct vxd_net_extent extent = {.max_rows = vxd_net_run_max_rows(run, tensor),
                                    .n_samples = run->input.n_samples};
    const uint32_t *slot;

    if (plan->coord_set >= 0) {
        extent.n_rows = run->coord_sets[plan->coord_set].coord_set.n_rows;
        extent.starts = run->coord_sets[plan->coord_set].starts;
        return extent;
    }
    slot =
        (const uint32_t *)run->tokens.ptr + (size_t)plan->slot * vxd_net_slot_items(run);
    extent.n_rows = slot + 1;
    extent.starts = slot + 2;
    return extent;
}

struct vxd_rows vxd_net_run_rows(const struct vxd_net_run *run, int tensor)
{
    const struct vxd_net_tensor *plan = &run->net->tensors[tensor];
    size_t element = vxd_net_element_bytes(run->net->options.precision);
    char *base = vxd_net_run_item(run, run->net->tensor_items[plan->root]);
    struct vxd_rows rows = {base + (size_t)plan->first_channel * element,
                            plan->n_channels, plan->stride};

    return rows;
}

void *vxd_net_run_item(const struct vxd_net_run *run, int item)
{
    const struct vxd_net_run_phase *phase = &run->phases[run->net->items[item].phase];

    return (char *)phase->items.ptr + run->item_offsets[item];
}
