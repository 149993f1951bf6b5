// SPDX-License-Identifier: Apache-2.0
/* From layers to work: what is needed at all, in which order, and for which steps each
 * piece of memory is needed. The inputs of a concatenation are written to their place
 * in it, if the tensor belongs to one concatenation only and begins at an aligned
 * channel; others are copied. */
#include <stdlib.h>

#include "gpu/sparse/executor/network_internal.h"

/* --- what the outputs need --------------------------------------------------------------- */

/* Marks parents of used sets, and tensors that decide about subsets; all have lower
 * numbers. */
static void use_parents(struct vxd_net *net)
{
    for (int i = net->n_coord_sets - 1; i >= 0; i--) {
        const struct vxd_net_coord_set *coord_set = &net->coord_sets[i];

        if (!coord_set->used) {
            continue;
        }
        if (coord_set->a >= 0) {
            net->coord_sets[coord_set->a].used = true;
        }
        if (coord_set->b >= 0) {
            net->coord_sets[coord_set->b].used = true;
        }
        if (coord_set->kind == VXD_NET_COORD_SET_SUBSET) {
            net->tensors[net->nodes[coord_set->layer].layer.inputs[1] + 1].used = true;
        }
    }
}

static void use_coord_set(struct vxd_net *net, int coord_set)
{
    if (coord_set >= 0) {
        net->coord_sets[coord_set].used = true;
    }
}

static void mark_used(struct vxd_net *net)
{
    net->tensors[0].used = true;
    use_coord_set(net, net->tensors[0].coord_set);
    for (int i = 0; i < net->n_outputs; i++) {
        struct vxd_net_tensor *tensor = &net->tensors[net->outputs[i].layer + 1];

        tensor->used = true;
        use_coord_set(net, tensor->coord_set);
        if (tensor->coord_set >= 0 && net->outputs[i].kind != VXD_NET_OUT_DENSE_BEV) {
            net->coord_sets[tensor->coord_set].wants_coords = true;
            net->coord_sets[tensor->coord_set].wants_starts = true;
        }
    }
    for (int i = net->n_layers - 1; i >= 0; i--) {
        const struct vxd_net_node *node = &net->nodes[i];

        use_parents(net);
        if (!net->tensors[i + 1].used) {
            continue;
        }
        use_coord_set(net, net->tensors[i + 1].coord_set);
        for (int j = 0; j < node->layer.n_inputs; j++) {
            net->tensors[node->layer.inputs[j] + 1].used = true;
        }
        if (node->layer.add != VXD_NET_NONE) {
            net->tensors[node->layer.add + 1].used = true;
        }
        if (node->map >= 0) {
            net->maps[node->map].used = true;
            use_coord_set(net, net->maps[node->map].in);
            use_coord_set(net, net->maps[node->map].out);
        }
    }
    use_parents(net);
}

/* Marks the sets for which some layer needs the first rows of samples. */
static void mark_starts(struct vxd_net *net)
{
    for (int i = 0; i < net->n_layers; i++) {
        const struct vxd_net_layer *layer = &net->nodes[i].layer;
        bool wants = layer->op == VXD_NET_GLOBAL_MAX || layer->op == VXD_NET_GLOBAL_AVG ||
                     layer->op == VXD_NET_GLOBAL_GEM || layer->op == VXD_NET_ATTENTION ||
                     layer->op == VXD_NET_TOKENS ||
                     (layer->op == VXD_NET_BATCH_NORM && !layer->whole_batch);

        for (int j = 0; j < layer->n_inputs && wants && net->tensors[i + 1].used; j++) {
            int coord_set = net->tensors[layer->inputs[j] + 1].coord_set;

            if (coord_set >= 0) {
                net->coord_sets[coord_set].wants_starts = true;
            }
        }
    }
}

/* --- where tensors lie ------------------------------------------------------------------- */

static void join_cat(struct vxd_net *net, int layer, size_t element)
{
    const struct vxd_net_layer *cat = &net->nodes[layer].layer;
    const struct vxd_net_tensor *whole = &net->tensors[layer + 1];
    int channel = whole->first_channel;

    for (int i = 0; i < cat->n_inputs; i++) {
        int number = cat->inputs[i] + 1;
        struct vxd_net_tensor *part = &net->tensors[number];

        if (part->root == number && (size_t)channel * element % VXD_NET_ROW_ALIGN == 0) {
            part->root = whole->root;
            part->first_channel = channel;
        }
        channel += part->n_channels;
    }
}

static void place_tensors(struct vxd_net *net)
{
    size_t element = vxd_net_element_bytes(net->options.precision);
    size_t step = VXD_NET_ROW_ALIGN / element;

    for (int i = 0; i <= net->n_layers; i++) {
        net->tensors[i].root = i;
    }
    /* Outer concatenations first: the parts of an inner one then become parts of the
     * outer one too. */
    for (int i = net->n_layers - 1; i >= 0; i--) {
        if (net->nodes[i].layer.op == VXD_NET_CAT && net->tensors[i + 1].used) {
            join_cat(net, i, element);
        }
    }
    for (int i = 0; i <= net->n_layers; i++) {
        size_t n_channels = (size_t)net->tensors[net->tensors[i].root].n_channels;

        net->tensors[i].stride = (n_channels + step - 1) / step * step;
    }
}

/* One slot for each distinct number of tokens. */
static void number_slots(struct vxd_net *net)
{
    for (int i = 0; i <= net->n_layers; i++) {
        int same = 0;

        if (net->tensors[i].coord_set >= 0) {
            continue;
        }
        while (net->tensors[same].n_tokens != net->tensors[i].n_tokens) {
            same++;
        }
        net->tensors[i].slot = same < i ? net->tensors[same].slot : net->n_slots++;
    }
}

/* --- the order of work ------------------------------------------------------------------- */

static void add_step(struct vxd_net *net, enum vxd_net_step_kind kind, int index,
                     int phase)
{
    net->steps[net->n_steps++] = (struct vxd_net_step){kind, index, phase};
}

static void add_outputs(struct vxd_net *net, int layer, int phase)
{
    for (int i = 0; i < net->n_outputs; i++) {
        if (net->outputs[i].layer == layer) {
            add_step(net, VXD_NET_STEP_OUTPUT, i, phase);
        }
    }
}

static int find_n_phases(const struct vxd_net *net)
{
    int most = 0;

    for (int i = 0; i <= net->n_layers; i++) {
        if (net->tensors[i].used && net->tensors[i].phase > most) {
            most = net->tensors[i].phase;
        }
    }
    return most + 1;
}

static void order_steps(struct vxd_net *net)
{
    net->n_phases = find_n_phases(net);
    for (int phase = 0; phase < net->n_phases; phase++) {
        if (phase == 0) {
            add_step(net, VXD_NET_STEP_LOAD, 0, 0);
            add_outputs(net, VXD_NET_INPUT, 0);
        }
        for (int i = 0; i < net->n_layers; i++) {
            if (net->tensors[i + 1].used && net->tensors[i + 1].phase == phase) {
                add_step(net, VXD_NET_STEP_LAYER, i, phase);
                add_outputs(net, i, phase);
            }
        }
        for (int i = 0; i < net->n_coord_sets; i++) {
            const struct vxd_net_coord_set *coord_set = &net->coord_sets[i];

            if (coord_set->used && coord_set->kind == VXD_NET_COORD_SET_SUBSET &&
                coord_set->phase == phase + 1) {
                add_step(net, VXD_NET_STEP_KEEP, coord_set->layer, phase);
            }
        }
    }
}

/* --- memory ------------------------------------------------------------------------------ */

static int add_item(struct vxd_net *net, enum vxd_net_item_kind kind, int index,
                    int first, int last)
{
    net->items[net->n_items] =
        (struct vxd_net_item){kind, index, first, last, net->steps[first].phase};
    return net->n_items++;
}

/* Records that a tensor's buffer is in use at this step. */
static void touch(struct vxd_net *net, int tensor, int step)
{
    int root = net->tensors[tensor].root;

    if (net->tensor_items[root] < 0) {
        net->tensor_items[root] = add_item(net, VXD_NET_ITEM_TENSOR, root, step, step);
    }
    net->items[net->tensor_items[root]].last = step;
}

static bool needs_scratch(enum vxd_net_op op)
{
    return op == VXD_NET_GLOBAL_MAX || op == VXD_NET_GLOBAL_AVG ||
           op == VXD_NET_GLOBAL_GEM || op == VXD_NET_BATCH_NORM ||
           op == VXD_NET_ATTENTION || op == VXD_NET_TOKENS;
}

static void touch_layer(struct vxd_net *net, int number, int step)
{
    const struct vxd_net_layer *layer = &net->nodes[number].layer;
    int n_read = layer->op == VXD_NET_PRUNE ? 1 : layer->n_inputs;

    touch(net, number + 1, step);
    for (int i = 0; i < n_read; i++) {
        touch(net, layer->inputs[i] + 1, step);
    }
    if (layer->add != VXD_NET_NONE) {
        touch(net, layer->add + 1, step);
    }
    if (needs_scratch(layer->op)) {
        net->scratch_items[step] = add_item(net, VXD_NET_ITEM_SCRATCH, step, step, step);
    }
}

/* The first step of a later phase: its sets are made from the rows that were kept. */
static int first_step_of(const struct vxd_net *net, int phase)
{
    int step = net->n_steps - 1;

    while (step > 0 && net->steps[step - 1].phase >= phase) {
        step--;
    }
    return step;
}

static void touch_output(struct vxd_net *net, int number, int step)
{
    int last = net->n_steps - 1;

    touch(net, net->outputs[number].layer + 1, step);
    net->value_items[number] = add_item(net, VXD_NET_ITEM_VALUES, number, step, last);
    if (net->outputs[number].kind == VXD_NET_OUT_ARGMAX) {
        net->label_items[number] = add_item(net, VXD_NET_ITEM_LABELS, number, step, last);
    }
}

static void list_items(struct vxd_net *net)
{
    for (int i = 0; i <= net->n_layers; i++) {
        net->tensor_items[i] = -1;
    }
    for (int i = 0; i < net->n_steps; i++) {
        const struct vxd_net_step *step = &net->steps[i];

        net->scratch_items[i] = -1;
        switch (step->kind) {
        case VXD_NET_STEP_LOAD:
            touch(net, 0, i);
            break;
        case VXD_NET_STEP_LAYER:
            touch_layer(net, step->index, i);
            break;
        case VXD_NET_STEP_KEEP:
            touch(net, net->nodes[step->index].layer.inputs[1] + 1, i);
            net->keep_items[step->index] =
                add_item(net, VXD_NET_ITEM_KEEP, step->index, i,
                         first_step_of(net, step->phase + 1));
            break;
        case VXD_NET_STEP_OUTPUT:
            touch_output(net, step->index, i);
            break;
        }
    }
}

void vxd_net_plan_free(struct vxd_net *net)
{
    free(net->steps);
    free(net->items);
    free(net->tensor_items);
    free(net->keep_items);
    free(net->scratch_items);
}

enum vxd_status vxd_net_plan(struct vxd_net *net, struct vxd_err *err)
{
    size_t n_layers = (size_t)net->n_layers;
    /* Each layer is a step, and may need another for a prune that keeps its rows. */
    size_t n_steps = 2 * n_layers + 1 + (size_t)net->n_outputs;
    size_t n_items = n_steps + n_layers + 1 + 2 * (size_t)net->n_outputs;

    mark_used(net);
    mark_starts(net);
    place_tensors(net);
    number_slots(net);
    net->steps = calloc(n_steps, sizeof *net->steps);
    net->items = calloc(n_items, sizeof *net->items);
    net->tensor_items = calloc(n_layers + 1, sizeof *net->tensor_items);
    net->keep_items = calloc(n_layers + 1, sizeof *net->keep_items);
    net->scratch_items = calloc(n_steps, sizeof *net->scratch_items);
    if (net->steps == NULL || net->items == NULL || net->tensor_items == NULL ||
        net->keep_items == NULL || net->scratch_items == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for the plan");
    }
    order_steps(net);
    list_items(net);
    return VXD_OK;
}
