// SPDX-License-Identifier: Apache-2.0
/* A network: built from a builder's layers, immutable afterwards. */
#include "gpu/sparse/executor/net.h"

#include <stdlib.h>

#include "gpu/sparse/executor/network_internal.h"

#define MAX_ROWS ((size_t)1 << 27)

static enum vxd_status check_options(const struct vxd_net_options *options,
                                     struct vxd_err *err)
{
    if ((int)options->precision < VXD_NET_FP32 ||
        (int)options->precision > VXD_NET_BF16) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "precision",
                        "%d is no precision; 0 is FP32, 1 TF32, 2 FP16, 3 BF16",
                        (int)options->precision);
    }
    if (options->max_rows < 1 || options->max_rows > MAX_ROWS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "max_rows",
                        "%zu rows, must be 1 to %zu", options->max_rows, MAX_ROWS);
    }
    if (options->max_samples < 1 || options->max_samples > VXD_SPARSE_MAX_SAMPLES) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "max_samples",
                        "%d samples, must be 1 to %d", options->max_samples,
                        VXD_SPARSE_MAX_SAMPLES);
    }
    return VXD_OK;
}

static enum vxd_status make_arrays(struct vxd_net *net, struct vxd_err *err)
{
    size_t n_layers = (size_t)net->n_layers;

    net->tensors = calloc(n_layers + 1, sizeof *net->tensors);
    net->nodes = calloc(n_layers + 1, sizeof *net->nodes);
    net->coord_sets = calloc(n_layers + 1, sizeof *net->coord_sets);
    net->maps = calloc(n_layers + 1, sizeof *net->maps);
    if (net->tensors == NULL || net->nodes == NULL || net->coord_sets == NULL ||
        net->maps == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                        "no memory for a network of %zu layers", n_layers);
    }
    return VXD_OK;
}

static void count(struct vxd_net *net)
{
    net->info.n_layers = (size_t)net->n_layers;
    net->info.n_outputs = net->n_outputs;
    for (int i = 0; i < net->n_coord_sets; i++) {
        net->info.n_coord_sets += net->coord_sets[i].used ? 1 : 0;
    }
    for (int i = 0; i < net->n_maps; i++) {
        net->info.n_maps += net->maps[i].used ? 1 : 0;
    }
    for (int i = 0; i < net->n_layers; i++) {
        net->info.whole_batch = net->info.whole_batch || net->nodes[i].layer.whole_batch;
    }
}

enum vxd_status vxd_net_create(struct vxd_queue *queue,
                               const struct vxd_net_builder *builder,
                               const struct vxd_net_options *options,
                               struct vxd_net **out, struct vxd_err *err)
{
    struct vxd_net *net = NULL;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(check_options(options, err));
    net = calloc(1, sizeof *net);
    if (net == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a network");
    }
    net->context = queue->context;
    net->options = *options;
    net->n_layers = builder->n_layers;
    if (options->max_bytes == 0) {
        struct vxd_memory_usage usage;

        vxd_context_get_memory(net->context, &usage);
        net->options.max_bytes = usage.device_budget_bytes;
    }
    VXD_TRY(make_arrays(net, err));
    VXD_TRY(vxd_net_infer(net, builder, err));
    VXD_TRY(vxd_net_plan(net, err));
    VXD_TRY(vxd_net_repeat_create(net->n_coord_sets, &net->repeat, err));
    VXD_TRY(vxd_net_upload(queue, net, builder, err));
    count(net);
    *out = net;
    return VXD_OK;
out:
    vxd_net_destroy(queue, net);
    return status;
}

void vxd_net_destroy(struct vxd_queue *queue, struct vxd_net *net)
{
    if (net == NULL) {
        return;
    }
    for (int i = 0; i < net->n_layers && net->nodes != NULL; i++) {
        vxd_device_free(queue, &net->nodes[i].weights.data);
    }
    vxd_device_free(queue, &net->constants);
    vxd_net_repeat_destroy(net->context, net->repeat);
    vxd_net_plan_free(net);
    free(net->tensors);
    free(net->nodes);
    free(net->coord_sets);
    free(net->maps);
    free(net);
}

void vxd_net_get_info(const struct vxd_net *net, struct vxd_net_info *out)
{
    *out = net->info;
}

const struct vxd_net_output *vxd_net_get_output(const struct vxd_net *net, int output)
{
    return output >= 0 && output < net->n_outputs ? &net->outputs[output] : NULL;
}
