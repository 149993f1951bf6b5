// SPDX-License-Identifier: Apache-2.0
/* The outputs of a run, and its cost. */
#include <stdlib.h>
#include <string.h>

#include "gpu/sparse/executor/network_internal.h"
#include "gpu/sparse/coords/coords_math.h"

enum vxd_status vxd_net_run_result(const struct vxd_net_run *run, int output,
                                   struct vxd_net_result *out, struct vxd_err *err)
{
    const struct vxd_net *net = run->net;
    const struct vxd_net_output *spec = vxd_net_get_output(net, output);
    const struct vxd_net_tensor *tensor;
    const void *values;

    if (spec == NULL) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "output", "%d, the network has %d",
                        output, net->n_outputs);
    }
    if (run->stage != VXD_NET_STAGE_OVER) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, NULL, "the run is not over");
    }
    tensor = &net->tensors[spec->layer + 1];
    values = vxd_net_run_item(run, net->value_items[output]);
    *out = (struct vxd_net_result){.n_rows = vxd_net_run_n_rows(run, spec->layer + 1),
                                   .n_channels = tensor->n_channels,
                                   .values = values};
    if (spec->kind == VXD_NET_OUT_DENSE_BEV) {
        const int32_t *shape = net->coord_sets[tensor->coord_set].shape;

        out->dense_shape[0] = run->input.n_samples;
        out->dense_shape[1] = tensor->n_channels * shape[2];
        out->dense_shape[2] = shape[1];
        out->dense_shape[3] = shape[0];
        return VXD_OK;
    }
    out->sample_starts = vxd_net_run_extent(run, spec->layer + 1).starts;
    if (tensor->coord_set >= 0) {
        out->coords = run->coord_sets[tensor->coord_set].coords;
    }
    if (spec->kind == VXD_NET_OUT_ARGMAX) {
        out->labels = vxd_net_run_item(run, net->label_items[output]);
    }
    return VXD_OK;
}

enum vxd_status vxd_net_run_find_overflow(struct vxd_queue *queue,
                                          const struct vxd_net_run *run,
                                          const char **layer, uint32_t *n_values,
                                          struct vxd_err *err)
{
    const struct vxd_net *net = run->net;
    uint32_t *counts = NULL;
    enum vxd_status status;

    *layer = NULL;
    *n_values = 0;
    if (run->stage != VXD_NET_STAGE_OVER || run->n_bad.ptr == NULL) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, NULL,
                        "the run is not over, or counted nothing");
    }
    counts = malloc(run->n_bad.n_bytes);
    if (counts == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for counts");
    }
    VXD_TRY(vxd_queue_copy(queue, counts, run->n_bad.ptr,
                           (size_t)net->n_layers * sizeof *counts, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    for (int step = 0; step < net->n_steps && *layer == NULL; step++) {
        int number = net->steps[step].index;

        if (net->steps[step].kind == VXD_NET_STEP_LAYER && counts[number] > 0) {
            *layer = net->nodes[number].layer.name;
            *n_values = counts[number];
        }
    }
out:
    free(counts);
    return status;
}

/* The least number of elements that a layer reads and writes. */
static double elements_of(const struct vxd_net_run *run, int number)
{
    const struct vxd_net *net = run->net;
    const struct vxd_net_layer *layer = &net->nodes[number].layer;
    double n =
        (double)vxd_net_run_n_rows(run, number + 1) * net->tensors[number + 1].n_channels;

    if (layer->op == VXD_NET_CAT) {
        return 0.0; /* no work where the inputs are part of its buffer */
    }
    n += (double)layer->n_weights;
    for (int i = 0; i < layer->n_inputs; i++) {
        n += (double)vxd_net_run_n_rows(run, layer->inputs[i] + 1) *
             net->tensors[layer->inputs[i] + 1].n_channels;
    }
    if (layer->add != VXD_NET_NONE) {
        n += (double)vxd_net_run_n_rows(run, layer->add + 1) *
             net->tensors[layer->add + 1].n_channels;
    }
    return n;
}

static void add_costs(const struct vxd_net_run *run, const uint64_t *n_pairs,
                      struct vxd_net_cost *out)
{
    const struct vxd_net *net = run->net;
    size_t element = vxd_net_element_bytes(net->options.precision);

    for (int i = 0; i < net->n_maps; i++) {
        out->n_pairs += net->maps[i].used ? n_pairs[i] : 0;
    }
    for (int i = 0; i < net->n_layers; i++) {
        const struct vxd_net_node *node = &net->nodes[i];

        if (!net->tensors[i + 1].used) {
            continue;
        }
        out->compulsory_bytes += elements_of(run, i) * (double)element;
        if (vxd_net_is_convolution(node->layer.op)) {
            double n = node->map >= 0 ? (double)n_pairs[node->map]
                                      : (double)vxd_net_run_n_rows(run, i + 1);

            out->useful_flops += 2.0 * n *
                                 net->tensors[node->layer.inputs[0] + 1].n_channels *
                                 net->tensors[i + 1].n_channels;
        }
    }
}

/* The largest amount of memory that a phase needs at one time: coordinate sets and
 * maps of it and of earlier phases, and the items of a step. */
static size_t live_bytes_of(const struct vxd_net_run *run, int phase)
{
    const struct vxd_net *net = run->net;
    size_t lasting = run->counts.n_bytes + run->n_pairs.n_bytes + run->rows.n_bytes;
    size_t most = 0;

    for (int i = 0; i < net->n_coord_sets; i++) {
        lasting += run->coord_sets[i].is_made && net->coord_sets[i].phase <= phase
                       ? vxd_coord_set_bytes(run->coord_sets[i].n_rows)
                       : 0;
    }
    for (int i = 0; i <= phase; i++) {
        lasting += run->phases[i].maps.n_bytes;
    }
    for (int step = 0; step < net->n_steps; step++) {
        size_t n = 0;

        for (int i = 0; i < net->n_items && net->steps[step].phase == phase; i++) {
            if (net->items[i].first <= step && step <= net->items[i].last) {
                n += run->item_bytes[i];
            }
        }
        most = n > most ? n : most;
    }
    return lasting + most;
}

enum vxd_status vxd_net_run_get_cost(struct vxd_queue *queue,
                                     const struct vxd_net_run *run,
                                     struct vxd_net_cost *out, struct vxd_err *err)
{
    size_t n_bytes = run->n_pairs.n_bytes;
    uint64_t *n_pairs = NULL;
    enum vxd_status status;

    *out = (struct vxd_net_cost){.peak_bytes = run->peak_bytes};
    if (run->stage != VXD_NET_STAGE_OVER) {
        return vxd_fail(err, VXD_FAILED_PRECONDITION, NULL, "the run is not over");
    }
    for (int phase = 0; phase < run->net->n_phases; phase++) {
        size_t n_live = live_bytes_of(run, phase);

        out->live_bytes = n_live > out->live_bytes ? n_live : out->live_bytes;
    }
    n_pairs = malloc(n_bytes);
    if (n_pairs == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for counts");
    }
    VXD_TRY(vxd_queue_copy(queue, n_pairs, run->n_pairs.ptr, n_bytes, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    add_costs(run, n_pairs, out);
out:
    free(n_pairs);
    return status;
}
