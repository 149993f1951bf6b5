// SPDX-License-Identifier: Apache-2.0
/* The calls of backends that the steps of a run enqueue, layer by layer. */
#include "gpu/sparse/executor/network_internal.h"

/* Work of a CPU thread, estimated roughly, so that a step takes some 20 ms. */
#define MULTIPLY_NS 0.04
#define VALUE_NS 1.5

#define CALL(queue, name, call, err)                                                     \
    VXD_BACKEND_FN(queue, vxd_net_##name)(queue, call, err)

struct layer_run {
    struct vxd_queue *queue;
    const struct vxd_net_run *run;
    const struct vxd_net_node *node;
    int number;
    int step;
    struct vxd_net_extent extent; /* of the result */
    struct vxd_rows out;
};

static struct vxd_rows input_rows(const struct layer_run *at, int input)
{
    return vxd_net_run_rows(at->run, at->node->layer.inputs[input] + 1);
}

static struct vxd_net_extent input_extent(const struct layer_run *at, int input)
{
    return vxd_net_run_extent(at->run, at->node->layer.inputs[input] + 1);
}

static enum vxd_net_precision precision_of(const struct layer_run *at)
{
    return at->run->net->options.precision;
}

/* --- convolutions ------------------------------------------------------------------------ */

/* Number of rows of the layer that take about budget_ns; all rows on a GPU. */
static size_t part_rows(const struct layer_run *at, size_t n_rows, size_t first,
                        double layer_ns, double budget_ns)
{
    size_t left = n_rows - first;

    size_t n;

    (void)at; /* unused in builds without CUDA */
    if (VXD_ON_CUDA(at->queue->context) || layer_ns <= 1.5 * budget_ns) {
        return left;
    }
    n = (size_t)((double)n_rows * budget_ns / layer_ns);
    n = (n / VXD_SPARSE_ROW_PAD + 1) * VXD_SPARSE_ROW_PAD;
    return n < left ? n : left;
}

/* The convolution of the rows from *row on; *row becomes the row to continue at, 0 =
 * done. On the CPU a queue's memory is host memory and the queue is idle between
 * steps, so the count of the part is written at once. A step may contain the last part
 * of one layer and the first of another, so each has a count of its own. */
static enum vxd_status enqueue_convolution(const struct layer_run *at, double layer_ns,
                                           double budget_ns, size_t *row,
                                           struct vxd_err *err)
{
    const struct vxd_net_node *node = at->node;
    const struct vxd_net_run *run = at->run;
    size_t element = vxd_net_element_bytes(precision_of(at));
    size_t n_rows = vxd_net_run_n_rows(run, at->number + 1);
    size_t first = *row;
    size_t n_part = part_rows(at, n_rows, first, layer_ns, budget_ns);
    struct vxd_kernel_map map = {0};
    struct vxd_conv_args args = {.n_rows = at->extent.n_rows,
                                 .max_rows = at->extent.max_rows,
                                 .weights = &node->weights,
                                 .bias = node->bias,
                                 .in = input_rows(at, 0),
                                 .out = at->out,
                                 .act = node->layer.act,
                                 .alpha = node->layer.alpha};
    enum vxd_status status;

    if (node->layer.add != VXD_NET_NONE) {
        args.add = vxd_net_run_rows(run, node->layer.add + 1);
    }
    if (node->map >= 0) {
        map = run->maps[node->map];
        args.map = &map;
    }
    if (n_part < n_rows) {
        uint32_t *part = (uint32_t *)run->counts.ptr +
                         2 * (size_t)run->net->n_coord_sets + (first > 0 ? 1 : 0);

        *part = (uint32_t)n_part;
        args.n_rows = part;
        args.out.data = (char *)args.out.data + first * args.out.stride * element;
        if (args.add.data != NULL) {
            args.add.data = (char *)args.add.data + first * args.add.stride * element;
        }
        if (args.map != NULL) {
            map.table += first;
        } else {
            args.in.data = (char *)args.in.data + first * args.in.stride * element;
        }
    }
    VXD_TRY(vxd_conv_run(at->queue, &args, err));
    *row = first + n_part < n_rows ? first + n_part : 0;
out:
    return status;
}

/* --- other layers ------------------------------------------------------------------------ */

static enum vxd_status enqueue_pool(const struct layer_run *at, struct vxd_err *err)
{
    struct vxd_net_pool_call call = {.precision = precision_of(at),
                                     .extent = at->extent,
                                     .in = input_rows(at, 0),
                                     .out = at->out};

    switch (at->node->layer.op) {
    case VXD_NET_POOL_MAX:
        call.pool = at->node->layer.semantics == VXD_NET_SPCONV
                        ? VXD_NET_POOL_OF_MAX_AND_0
                        : VXD_NET_POOL_OF_MAX;
        break;
    case VXD_NET_POOL_AVG:
        call.pool = VXD_NET_POOL_OF_AVG;
        break;
    case VXD_NET_POOL_SUM:
        call.pool = VXD_NET_POOL_OF_SUM;
        break;
    default:
        call.pool = VXD_NET_POOL_OF_FIRST;
        break;
    }
    if (at->node->map >= 0) {
        call.map = at->run->maps[at->node->map];
        return CALL(at->queue, pool, &call, err);
    }
    /* One tap on the row itself: a copy, or spconv's maximum with 0. */
    struct vxd_net_combine_call copy = {
        .precision = call.precision,
        .extent = at->extent,
        .n_inputs = 1,
        .in = {call.in},
        .act = call.pool == VXD_NET_POOL_OF_MAX_AND_0 ? VXD_ACT_RELU : VXD_ACT_NONE,
        .out = at->out};
    return CALL(at->queue, combine, &copy, err);
}

static void *scratch_of(const struct layer_run *at, size_t *n_bytes)
{
    int item = at->run->net->scratch_items[at->step];

    *n_bytes = at->run->item_bytes[item];
    return vxd_net_run_item(at->run, item);
}

static enum vxd_status enqueue_global(const struct layer_run *at, struct vxd_err *err)
{
    enum vxd_net_op op = at->node->layer.op;
    struct vxd_net_global_call call = {
        .precision = precision_of(at),
        .global = op == VXD_NET_GLOBAL_MAX   ? VXD_NET_GLOBAL_OF_MAX
                  : op == VXD_NET_GLOBAL_AVG ? VXD_NET_GLOBAL_OF_AVG
                                             : VXD_NET_GLOBAL_OF_GEM,
        .p = at->node->layer.alpha,
        .eps = at->node->layer.eps,
        .extent = input_extent(at, 0),
        .in = input_rows(at, 0),
        .out = at->out};

    call.scratch = scratch_of(at, &call.scratch_bytes);
    return CALL(at->queue, global, &call, err);
}

static enum vxd_status enqueue_batch_norm(const struct layer_run *at, struct vxd_err *err)
{
    struct vxd_net_batch_norm_call call = {.precision = precision_of(at),
                                           .eps = at->node->layer.eps,
                                           .extent = at->extent,
                                           .scale = at->node->scale,
                                           .bias = at->node->bias,
                                           .act = at->node->layer.act,
                                           .alpha = at->node->layer.alpha,
                                           .in = input_rows(at, 0),
                                           .out = at->out};

    if (at->node->layer.whole_batch) {
        /* A 0 precedes every count: together they are the starts of one sample of all
         * rows. */
        call.extent.starts = at->extent.n_rows - 1;
        call.extent.n_samples = 1;
    }
    call.scratch = scratch_of(at, &call.scratch_bytes);
    return CALL(at->queue, batch_norm, &call, err);
}

static enum vxd_status enqueue_combine(const struct layer_run *at, struct vxd_err *err)
{
    const struct vxd_net_layer *layer = &at->node->layer;
    const struct vxd_net_run_coord_set *coord_sets = at->run->coord_sets;
    struct vxd_net_combine_call call = {.precision = precision_of(at),
                                        .extent = at->extent,
                                        .n_inputs = layer->n_inputs,
                                        .scale = at->node->scale,
                                        .bias = at->node->bias,
                                        .act = layer->act,
                                        .alpha = layer->alpha,
                                        .out = at->out};

    for (int i = 0; i < layer->n_inputs; i++) {
        call.in[i] = input_rows(at, i);
    }
    if (layer->op == VXD_NET_PRUNE) {
        call.n_inputs = 1;
        call.act = VXD_ACT_NONE;
        call.rows[0] = coord_sets[at->node->subset].rows[0];
    }
    if (layer->op == VXD_NET_ADD_UNION) {
        const struct vxd_net_run_coord_set *coord_set =
            &coord_sets[at->run->net->tensors[at->number + 1].coord_set];
        bool is_union = at->run->net->tensors[layer->inputs[0] + 1].coord_set !=
                        at->run->net->tensors[layer->inputs[1] + 1].coord_set;

        for (int i = 0; i < 2 && is_union; i++) {
            call.rows[i] = coord_set->rows[at->node->is_swapped ? 1 - i : i];
        }
    }
    return CALL(at->queue, combine, &call, err);
}

/* Copies the inputs that are not part of the concatenation's buffer already. */
static enum vxd_status enqueue_cat(const struct layer_run *at, struct vxd_err *err)
{
    const struct vxd_net *net = at->run->net;
    size_t element = vxd_net_element_bytes(precision_of(at));
    int channel = 0;
    enum vxd_status status = VXD_OK;

    for (int i = 0; i < at->node->layer.n_inputs; i++) {
        const struct vxd_net_tensor *part = &net->tensors[at->node->layer.inputs[i] + 1];
        struct vxd_rows in = input_rows(at, i);
        char *to = (char *)at->out.data + (size_t)channel * element;
        struct vxd_net_combine_call call = {
            .precision = precision_of(at),
            .extent = at->extent,
            .n_inputs = 1,
            .in = {in},
            .out = {to, part->n_channels, at->out.stride}};

        if (in.data != to) {
            VXD_TRY(CALL(at->queue, combine, &call, err));
        }
        channel += part->n_channels;
    }
out:
    return status;
}

static enum vxd_status enqueue_norm(const struct layer_run *at, struct vxd_err *err)
{
    struct vxd_net_norm_call call = {.precision = precision_of(at),
                                     .norm = at->node->layer.op == VXD_NET_SOFTMAX
                                                 ? VXD_NET_NORM_SOFTMAX
                                                 : VXD_NET_NORM_L2,
                                     .eps = at->node->layer.eps,
                                     .extent = at->extent,
                                     .in = input_rows(at, 0),
                                     .out = at->out};

    return CALL(at->queue, norm, &call, err);
}

static enum vxd_status enqueue_embedding(const struct layer_run *at, struct vxd_err *err)
{
    const struct vxd_net_layer *layer = &at->node->layer;
    struct vxd_net_embedding_call call = {
        .precision = precision_of(at),
        .extent = at->extent,
        .table = at->node->table,
        .n_entries = (int)(layer->n_weights / (size_t)layer->n_channels),
        .in = input_rows(at, 0),
        .out = at->out};

    return CALL(at->queue, embedding, &call, err);
}

static enum vxd_status enqueue_attention(const struct layer_run *at, struct vxd_err *err)
{
    struct vxd_net_attention_call call = {.precision = precision_of(at),
                                          .scale = at->node->layer.alpha,
                                          .of_q = input_extent(at, 0),
                                          .of_k = input_extent(at, 1),
                                          .q = input_rows(at, 0),
                                          .k = input_rows(at, 1),
                                          .v = input_rows(at, 2),
                                          .out = at->out};

    call.scratch = scratch_of(at, &call.scratch_bytes);
    return CALL(at->queue, attention, &call, err);
}

static enum vxd_status enqueue_tokens(const struct layer_run *at, struct vxd_err *err)
{
    struct vxd_net_tokens_call call = {.precision = precision_of(at),
                                       .extent = input_extent(at, 0),
                                       .scores = input_rows(at, 0),
                                       .values = input_rows(at, 1),
                                       .out = at->out};

    call.scratch = scratch_of(at, &call.scratch_bytes);
    return CALL(at->queue, tokens, &call, err);
}

static enum vxd_status enqueue_other(const struct layer_run *at, struct vxd_err *err)
{
    switch (at->node->layer.op) {
    case VXD_NET_POOL_MAX:
    case VXD_NET_POOL_AVG:
    case VXD_NET_POOL_SUM:
    case VXD_NET_UNPOOL:
        return enqueue_pool(at, err);
    case VXD_NET_GLOBAL_MAX:
    case VXD_NET_GLOBAL_AVG:
    case VXD_NET_GLOBAL_GEM:
        return enqueue_global(at, err);
    case VXD_NET_CAT:
        return enqueue_cat(at, err);
    case VXD_NET_BATCH_NORM:
        return enqueue_batch_norm(at, err);
    case VXD_NET_SOFTMAX:
    case VXD_NET_L2_NORM:
        return enqueue_norm(at, err);
    case VXD_NET_EMBEDDING:
        return enqueue_embedding(at, err);
    case VXD_NET_ATTENTION:
        return enqueue_attention(at, err);
    case VXD_NET_TOKENS:
        return enqueue_tokens(at, err);
    default:
        break;
    }
    return enqueue_combine(at, err); /* ADD, ADD_UNION, AFFINE, ACT, PRUNE */
}

size_t vxd_net_run_scratch_bytes(const struct vxd_net_run *run, int step)
{
    const struct vxd_net *net = run->net;
    const struct vxd_net_layer *layer = &net->nodes[net->steps[step].index].layer;
    int in = layer->inputs[0] + 1;
    size_t max_rows = vxd_net_run_max_rows(run, in);
    int n_samples = run->input.n_samples;
    const struct vxd_queue queue = {.context = net->context};

    switch (layer->op) {
    case VXD_NET_BATCH_NORM:
        return VXD_BACKEND_FN(&queue, vxd_net_batch_norm_scratch_bytes)(
            max_rows, n_samples, net->tensors[in].n_channels);
    case VXD_NET_ATTENTION:
        return VXD_BACKEND_FN(&queue, vxd_net_attention_scratch_bytes)(
            max_rows, vxd_net_run_max_rows(run, layer->inputs[1] + 1), n_samples,
            net->tensors[in].n_channels, net->tensors[layer->inputs[2] + 1].n_channels);
    case VXD_NET_TOKENS:
        return VXD_BACKEND_FN(&queue, vxd_net_tokens_scratch_bytes)(
            max_rows, n_samples, net->tensors[in].n_channels,
            net->tensors[layer->inputs[1] + 1].n_channels);
    default:
        break;
    }
    return VXD_BACKEND_FN(&queue, vxd_net_global_scratch_bytes)(
        max_rows, n_samples, net->tensors[in].n_channels);
}

/* --- steps ------------------------------------------------------------------------------- */

/* Approximate time of a layer on the CPU. Its maps have been built and waited for. */
static double estimate_ns(const struct layer_run *at)
{
    const struct vxd_net_run *run = at->run;
    const struct vxd_net_node *node = at->node;
    int n_threads = vxd_pool_n_threads(vxd_context_pool(at->queue->context));
    double n_rows = (double)vxd_net_run_n_rows(run, at->number + 1);
    double n_in = run->net->tensors[node->layer.inputs[0] + 1].n_channels;
    double n_out = run->net->tensors[at->number + 1].n_channels;
    double n_pairs = n_rows;
    double ns = n_rows * n_out * VALUE_NS;

    if (VXD_ON_CUDA(at->queue->context)) {
        return 0.0;
    }
    if (node->map >= 0) {
        n_pairs = (double)*run->maps[node->map].n_pairs;
    }
    if (vxd_net_is_convolution(node->layer.op)) {
        ns += n_pairs * n_in * n_out * MULTIPLY_NS;
    } else if (vxd_net_is_pool(node->layer.op)) {
        ns += n_pairs * n_in * VALUE_NS;
    } else if (node->layer.op == VXD_NET_ATTENTION) {
        double n_keys = (double)vxd_net_run_n_rows(run, node->layer.inputs[1] + 1);

        ns += n_rows * n_keys / run->input.n_samples * (n_in + n_out) * MULTIPLY_NS;
    } else {
        ns +=
            (double)vxd_net_run_n_rows(run, node->layer.inputs[0] + 1) * n_in * VALUE_NS;
    }
    return ns / n_threads;
}

static enum vxd_status enqueue_layer(struct vxd_queue *queue,
                                     const struct vxd_net_run *run, int step,
                                     double *budget_ns, size_t *row, struct vxd_err *err)
{
    int number = run->net->steps[step].index;
    struct layer_run at = {.queue = queue,
                           .run = run,
                           .node = &run->net->nodes[number],
                           .number = number,
                           .step = step,
                           .extent = vxd_net_run_extent(run, number + 1),
                           .out = vxd_net_run_rows(run, number + 1)};
    double layer_ns = estimate_ns(&at);
    size_t first = *row;
    enum vxd_status status;

    if (at.extent.max_rows == 0) {
        return VXD_OK;
    }
    if (vxd_net_is_convolution(at.node->layer.op)) {
        status = enqueue_convolution(&at, layer_ns, *budget_ns, row, err);
        if (first > 0) {
            layer_ns -=
                layer_ns * (double)first / (double)vxd_net_run_n_rows(run, number + 1);
        }
    } else {
        status = enqueue_other(&at, err);
    }
    if (status == VXD_OK && run->n_bad.ptr != NULL && *row == 0) {
        const struct vxd_net_count_call call = {.precision = run->net->options.precision,
                                                .extent = at.extent,
                                                .in = at.out,
                                                .n_bad =
                                                    (uint32_t *)run->n_bad.ptr + number};

        status = CALL(queue, count, &call, err);
    }
    if (status != VXD_OK) {
        vxd_net_name_layer(err, at.node->layer.name);
    }
    *budget_ns -= layer_ns;
    return status;
}

enum vxd_status vxd_net_run_load(struct vxd_queue *queue, const struct vxd_net_run *run,
                                 struct vxd_err *err)
{
    struct vxd_net_load_call call = {.precision = run->net->options.precision,
                                     .features = run->input.features,
                                     .rows = run->rows.ptr,
                                     .n = run->input.n_rows,
                                     .out = vxd_net_run_rows(run, 0)};

    return call.n > 0 ? CALL(queue, load, &call, err) : VXD_OK;
}

static enum vxd_status enqueue_keep(struct vxd_queue *queue,
                                    const struct vxd_net_run *run, int layer,
                                    struct vxd_err *err)
{
    const struct vxd_net *net = run->net;
    int tensor = net->nodes[layer].layer.inputs[1] + 1;
    struct vxd_net_keep_call call = {.precision = net->options.precision,
                                     .threshold = net->nodes[layer].layer.alpha,
                                     .extent = vxd_net_run_extent(run, tensor),
                                     .in = vxd_net_run_rows(run, tensor),
                                     .keep =
                                         vxd_net_run_item(run, net->keep_items[layer])};

    return call.extent.max_rows > 0 ? CALL(queue, keep, &call, err) : VXD_OK;
}

static enum vxd_status enqueue_output(struct vxd_queue *queue,
                                      const struct vxd_net_run *run, int number,
                                      struct vxd_err *err)
{
    const struct vxd_net *net = run->net;
    const struct vxd_net_output *output = &net->outputs[number];
    int tensor = output->layer + 1;
    struct vxd_net_extent extent = vxd_net_run_extent(run, tensor);
    struct vxd_rows in = vxd_net_run_rows(run, tensor);
    enum vxd_net_precision precision = net->options.precision;
    float *values = vxd_net_run_item(run, net->value_items[number]);

    if (output->kind == VXD_NET_OUT_DENSE_BEV) {
        int coord_set = net->tensors[tensor].coord_set;
        const int32_t *shape = net->coord_sets[coord_set].shape;
        size_t n_cells = (size_t)shape[0] * (size_t)shape[1] * (size_t)shape[2];
        struct vxd_net_bev_call call = {.precision = precision,
                                        .extent = extent,
                                        .keys = run->coord_sets[coord_set].coord_set.keys,
                                        .shape = {shape[0], shape[1], shape[2]},
                                        .in = in,
                                        .out = values,
                                        .n_floats = (size_t)run->input.n_samples *
                                                    (size_t)in.n_channels * n_cells};

        return CALL(queue, bev, &call, err);
    }
    if (extent.max_rows == 0) {
        return VXD_OK;
    }
    if (output->kind == VXD_NET_OUT_ARGMAX) {
        struct vxd_net_argmax_call call = {
            .precision = precision,
            .extent = extent,
            .in = in,
            .labels = vxd_net_run_item(run, net->label_items[number]),
            .scores = values};

        return CALL(queue, argmax, &call, err);
    }
    struct vxd_net_save_call call = {precision, extent, in, values};
    return CALL(queue, save, &call, err);
}

enum vxd_status vxd_net_run_layers(struct vxd_queue *queue, const struct vxd_net_run *run,
                                   double budget_ns, int *next, size_t *row,
                                   struct vxd_err *err)
{
    const struct vxd_net *net = run->net;
    enum vxd_status status = VXD_OK;

    while (*next < net->n_steps && budget_ns > 0.0 &&
           net->steps[*next].phase == run->phase) {
        const struct vxd_net_step *step = &net->steps[*next];

        switch (step->kind) {
        case VXD_NET_STEP_LOAD:
            VXD_TRY(vxd_net_run_load(queue, run, err));
            break;
        case VXD_NET_STEP_LAYER:
            VXD_TRY(enqueue_layer(queue, run, *next, &budget_ns, row, err));
            break;
        case VXD_NET_STEP_KEEP:
            VXD_TRY(enqueue_keep(queue, run, step->index, err));
            break;
        case VXD_NET_STEP_OUTPUT:
            VXD_TRY(enqueue_output(queue, run, step->index, err));
            break;
        }
        if (*row > 0) {
            break; /* the count of the part is in use until the queue was waited for */
        }
        (*next)++;
    }
out:
    return status;
}
