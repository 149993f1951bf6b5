// SPDX-License-Identifier: Apache-2.0
/* The result of each layer, layer by layer: its rows, channels, and the coordinate set
 * and map that it needs. */
#include <string.h>

#include "gpu/sparse/executor/network_internal.h"

/* The layer being processed. */
struct infer {
    struct vxd_net *net;
    const struct vxd_net_layer *layer; /* the builder's layer */
    struct vxd_net_node *node;
    struct vxd_net_tensor *out;
    const struct vxd_net_tensor *in[VXD_NET_MAX_INPUTS];
    int number;
};

static const struct vxd_net_tensor *tensor_of(const struct vxd_net *net, int layer)
{
    return &net->tensors[layer + 1];
}

static bool same_rows(const struct vxd_net_tensor *a, const struct vxd_net_tensor *b)
{
    return a->coord_set == b->coord_set && a->n_tokens == b->n_tokens;
}

static enum vxd_status name_layer(const struct infer *infer, enum vxd_status status,
                                  struct vxd_err *err)
{
    if (status != VXD_OK) {
        vxd_net_name_layer(err, infer->layer->name);
    }
    return status;
}

#define FAIL(infer, field, ...)                                                          \
    vxd_net_fail(err, VXD_INVALID_ARGUMENT, (infer)->layer->name, field, __VA_ARGS__)

static void advance_phase(struct infer *infer, int phase)
{
    if (phase > infer->out->phase) {
        infer->out->phase = phase;
    }
}

/* Gives the result the rows of a coordinate set. */
static void put_on_coord_set(struct infer *infer, int coord_set)
{
    infer->out->coord_set = coord_set;
    infer->out->n_tokens = 0;
    advance_phase(infer, infer->net->coord_sets[coord_set].phase);
}

static void put_on_rows_of(struct infer *infer, const struct vxd_net_tensor *tensor)
{
    infer->out->coord_set = tensor->coord_set;
    infer->out->n_tokens = tensor->n_tokens;
}

static enum vxd_status require_coord_set(const struct infer *infer,
                                         const struct vxd_net_tensor *tensor,
                                         struct vxd_err *err)
{
    if (tensor->coord_set < 0) {
        return FAIL(infer, "inputs", "its rows are not voxels");
    }
    return VXD_OK;
}

static enum vxd_status require_same_rows(const struct infer *infer, int first, int n,
                                         struct vxd_err *err)
{
    for (int i = first + 1; i < first + n; i++) {
        if (!same_rows(infer->in[i], infer->in[first])) {
            return FAIL(infer, "inputs", "input %d has other rows than input %d", i,
                        first);
        }
    }
    return VXD_OK;
}

/* --- coordinate sets and maps
 * ------------------------------------------------------------- */

static void set_geometry(struct infer *infer)
{
    const struct vxd_net_layer *layer = infer->layer;
    struct vxd_sparse_geometry *geometry = &infer->node->geometry;
    bool is_centred = layer->semantics == VXD_NET_MINKOWSKI || layer->op == VXD_NET_SUBM;

    for (int axis = 0; axis < 3; axis++) {
        int centre = layer->kernel[axis] % 2 != 0
                         ? layer->kernel[axis] / 2 * layer->dilation[axis]
                         : 0;

        geometry->kernel[axis] = layer->kernel[axis];
        geometry->stride[axis] = layer->stride[axis];
        geometry->dilation[axis] = layer->dilation[axis];
        geometry->padding[axis] = is_centred ? centre : layer->padding[axis];
    }
    geometry->transposed = layer->op == VXD_NET_TRANSPOSE;
    infer->node->has_geometry = true;
}

/* A floor of a floor is one floor; on a GPU the floors of one set are made together.
 * (On the CPU deriving from the coarser one is less work.) */
static void join_floors(const struct vxd_net *net, struct vxd_net_coord_set *coord_set)
{
    const struct vxd_net_coord_set *parent;
    int stride[3];

    if (!VXD_ON_CUDA(net->context)) {
        return;
    }
    parent = &net->coord_sets[coord_set->a];
    if (parent->kind != VXD_NET_COORD_SET_DERIVED || parent->rule != VXD_DERIVE_FLOOR) {
        return;
    }
    for (int axis = 0; axis < 3; axis++) {
        stride[axis] = coord_set->geometry.stride[axis] * parent->geometry.stride[axis];
        if (stride[axis] > VXD_SPARSE_MAX_STRIDE) {
            return;
        }
    }
    coord_set->a = parent->a;
    memcpy(coord_set->geometry.stride, stride, sizeof stride);
}

/* The set that a strided layer derives from that of its input. */
static enum vxd_status derive_coord_set(struct infer *infer, int *number,
                                        struct vxd_err *err)
{
    const struct vxd_net_coord_set *in = &infer->net->coord_sets[infer->node->in];
    const struct vxd_sparse_geometry *geometry = &infer->node->geometry;
    bool is_minkowski = infer->layer->semantics == VXD_NET_MINKOWSKI;
    struct vxd_net_coord_set coord_set = {.kind = VXD_NET_COORD_SET_DERIVED,
                                          .geometry = *geometry,
                                          .a = infer->node->in,
                                          .b = -1,
                                          .phase = in->phase,
                                          .layer = infer->number};
    bool is_strided = false;
    enum vxd_status status;

    coord_set.rule =
        is_minkowski && !geometry->transposed ? VXD_DERIVE_FLOOR : VXD_DERIVE_SUPPORT;
    for (int axis = 0; axis < 3; axis++) {
        int stride = geometry->stride[axis];

        is_strided = is_strided || stride != 1;
        coord_set.times[axis] = in->times[axis];
        if (!is_minkowski) {
            continue;
        }
        if (geometry->transposed && in->times[axis] % stride != 0) {
            return FAIL(infer, "stride", "%d in %c does not divide the tensor stride %d",
                        stride, "xyz"[axis], in -> times[axis]);
        }
        coord_set.times[axis] =
            geometry->transposed ? in->times[axis] / stride : in->times[axis] * stride;
        if (coord_set.times[axis] > 1 << 13) {
            return FAIL(infer, "stride", "the tensor stride in %c exceeds %d",
                        "xyz"[axis], 1 << 13);
        }
    }
    if (coord_set.rule == VXD_DERIVE_FLOOR && !is_strided) {
        *number = infer->node->in;
        return VXD_OK;
    }
    if (coord_set.rule == VXD_DERIVE_FLOOR) {
        join_floors(infer->net, &coord_set);
    }
    if (!is_minkowski) {
        VXD_TRY(name_layer(infer,
                           vxd_sparse_out_shape(geometry, in->shape,
                                                infer->layer->output_padding,
                                                coord_set.shape, err),
                           err));
    }
    VXD_TRY(name_layer(
        infer, vxd_net_share_coord_set(infer->net, &coord_set, number, err), err));
out:
    return status;
}

/* The map for the node's sets and geometry. */
static enum vxd_status add_map(struct infer *infer, struct vxd_err *err)
{
    struct vxd_net_node *node = infer->node;
    struct vxd_net_map map = {node->in, node->out, node->geometry, 0, false};
    int phase_in = infer->net->coord_sets[node->in].phase;
    int phase_out = infer->net->coord_sets[node->out].phase;

    map.phase = phase_in > phase_out ? phase_in : phase_out;
    put_on_coord_set(infer, node->out);
    return name_layer(infer, vxd_net_share_map(infer->net, &map, &node->map, err), err);
}

static enum vxd_status check_onto(const struct infer *infer,
                                  const struct vxd_net_coord_set *in,
                                  const struct vxd_net_tensor *onto, struct vxd_err *err)
{
    const struct vxd_net_layer *layer = infer->layer;

    if (onto->coord_set < 0) {
        return FAIL(infer, "onto", "its rows are not voxels");
    }
    for (int axis = 0; axis < 3 && layer->semantics == VXD_NET_MINKOWSKI; axis++) {
        if (infer->net->coord_sets[onto->coord_set].times[axis] * layer->stride[axis] !=
            in->times[axis]) {
            return FAIL(infer, "onto",
                        "its tensor stride in %c is %d, the input's %d, this layer's "
                        "stride %d",
                        "xyz"[axis],
                        infer -> net -> coord_sets[onto->coord_set].times[axis],
                        in->times[axis], layer->stride[axis]);
        }
    }
    return VXD_OK;
}

/* SUBM, CONV, TRANSPOSE and the pools. */
static enum vxd_status infer_taps(struct infer *infer, struct vxd_err *err)
{
    const struct vxd_net_layer *layer = infer->layer;
    struct vxd_net_node *node = infer->node;
    enum vxd_status status;

    VXD_TRY(require_coord_set(infer, infer->in[0], err));
    set_geometry(infer);
    node->in = infer->in[0]->coord_set;
    if (layer->op == VXD_NET_SUBM) {
        node->out = node->in;
    } else if (layer->onto != VXD_NET_NONE) {
        const struct vxd_net_tensor *onto = tensor_of(infer->net, layer->onto);

        VXD_TRY(check_onto(infer, &infer->net->coord_sets[node->in], onto, err));
        node->out = onto->coord_set;
    } else {
        VXD_TRY(derive_coord_set(infer, &node->out, err));
    }
    VXD_TRY(add_map(infer, err));
out:
    return status;
}

/* INVERSE and UNPOOL: another layer's map used in reverse. */
static enum vxd_status infer_backwards(struct infer *infer, struct vxd_err *err)
{
    const struct vxd_net_layer *layer = infer->layer;
    const struct vxd_net_node *of = &infer->net->nodes[layer->of_map];
    struct vxd_net_node *node = infer->node;
    enum vxd_status status;

    if (!of->has_geometry) {
        return FAIL(infer, "of_map", "layer %s has no kernel map", of->layer.name);
    }
    VXD_TRY(require_coord_set(infer, infer->in[0], err));
    if (infer->in[0]->coord_set != of->out) {
        return FAIL(infer, "of_map", "the input's voxels are not those of layer %s",
                    of->layer.name);
    }
    for (int axis = 0; axis < 3; axis++) {
        if (layer->kernel[axis] != 0 &&
            layer->kernel[axis] != of->geometry.kernel[axis]) {
            return FAIL(infer, "kernel", "%d in %c, that of layer %s is %d",
                        layer->kernel[axis], "xyz"[axis], of -> layer.name,
                        of->geometry.kernel[axis]);
        }
    }
    node->has_geometry = true;
    node->geometry = of->geometry;
    node->geometry.transposed = !of->geometry.transposed;
    node->in = of->out;
    node->out = of->in;
    VXD_TRY(add_map(infer, err));
out:
    return status;
}

static enum vxd_status check_convolution(const struct infer *infer, struct vxd_err *err)
{
    const struct vxd_net_layer *layer = infer->layer;
    const int *kernel = infer->node->geometry.kernel;
    int n_taps = infer->node->has_geometry ? kernel[0] * kernel[1] * kernel[2] : 1;
    size_t n_in = (size_t)infer->in[0]->n_channels;
    size_t n_weights = (size_t)n_taps * n_in * (size_t)layer->n_channels;

    if (layer->n_weights != n_weights) {
        return FAIL(infer, "weights", "%zu floats, %d taps of %zu to %d channels are %zu",
                    layer->n_weights, n_taps, n_in, layer->n_channels, n_weights);
    }
    if (layer->add != VXD_NET_NONE) {
        const struct vxd_net_tensor *add = tensor_of(infer->net, layer->add);

        if (!same_rows(add, infer->out) || add->n_channels != layer->n_channels) {
            return FAIL(infer, "add", "has other rows or %d channels instead of %d",
                        add->n_channels, layer->n_channels);
        }
    }
    return VXD_OK;
}

/* --- several inputs ---------------------------------------------------------------------- */

static enum vxd_status infer_union(struct infer *infer, struct vxd_err *err)
{
    const struct vxd_net_coord_set *coord_sets = infer->net->coord_sets;
    int a = infer->in[0]->coord_set;
    int b = infer->in[1]->coord_set;
    struct vxd_net_coord_set coord_set = {.kind = VXD_NET_COORD_SET_UNION,
                                          .layer = infer->number};
    int number;
    enum vxd_status status;

    VXD_TRY(require_coord_set(infer, infer->in[0], err));
    VXD_TRY(require_coord_set(infer, infer->in[1], err));
    if (a == b) {
        put_on_coord_set(infer, a);
        return VXD_OK;
    }
    if (memcmp(coord_sets[a].shape, coord_sets[b].shape, sizeof coord_sets[a].shape) !=
            0 ||
        memcmp(coord_sets[a].times, coord_sets[b].times, sizeof coord_sets[a].times) !=
            0) {
        return FAIL(infer, "inputs", "are of other shapes or tensor strides");
    }
    infer->node->is_swapped = a > b;
    coord_set.a = a < b ? a : b;
    coord_set.b = a < b ? b : a;
    memcpy(coord_set.shape, coord_sets[a].shape, sizeof coord_set.shape);
    memcpy(coord_set.times, coord_sets[a].times, sizeof coord_set.times);
    coord_set.phase = coord_sets[a].phase > coord_sets[b].phase ? coord_sets[a].phase
                                                                : coord_sets[b].phase;
    VXD_TRY(name_layer(
        infer, vxd_net_share_coord_set(infer->net, &coord_set, &number, err), err));
    put_on_coord_set(infer, number);
out:
    return status;
}

static enum vxd_status infer_sum(struct infer *infer, struct vxd_err *err)
{
    enum vxd_status status;

    for (int i = 1; i < infer->layer->n_inputs; i++) {
        if (infer->in[i]->n_channels != infer->in[0]->n_channels) {
            return FAIL(infer, "inputs", "%d channels and %d", infer->in[0]->n_channels,
                        infer->in[i]->n_channels);
        }
    }
    if (infer->layer->op == VXD_NET_ADD_UNION) {
        VXD_TRY(infer_union(infer, err));
    } else {
        VXD_TRY(require_same_rows(infer, 0, infer->layer->n_inputs, err));
    }
    return VXD_OK;
out:
    return status;
}

static enum vxd_status infer_cat(struct infer *infer, struct vxd_err *err)
{
    int n_channels = 0;
    enum vxd_status status;

    VXD_TRY(require_same_rows(infer, 0, infer->layer->n_inputs, err));
    for (int i = 0; i < infer->layer->n_inputs; i++) {
        n_channels += infer->in[i]->n_channels;
    }
    if (n_channels > VXD_NET_MAX_CHANNELS) {
        return FAIL(infer, "inputs", "%d channels, at most %d", n_channels,
                    VXD_NET_MAX_CHANNELS);
    }
    infer->out->n_channels = n_channels;
    return VXD_OK;
out:
    return status;
}

static enum vxd_status infer_prune(struct infer *infer, struct vxd_err *err)
{
    struct vxd_net_coord_set coord_set = {
        .kind = VXD_NET_COORD_SET_SUBSET, .a = infer->in[0]->coord_set, .b = -1};
    enum vxd_status status;

    VXD_TRY(require_coord_set(infer, infer->in[0], err));
    VXD_TRY(require_same_rows(infer, 0, 2, err));
    memcpy(coord_set.shape, infer->net->coord_sets[coord_set.a].shape,
           sizeof coord_set.shape);
    memcpy(coord_set.times, infer->net->coord_sets[coord_set.a].times,
           sizeof coord_set.times);
    coord_set.layer = infer->number;
    coord_set.phase = infer->in[1]->phase + 1;
    VXD_TRY(name_layer(
        infer, vxd_net_share_coord_set(infer->net, &coord_set, &infer->node->subset, err),
        err));
    put_on_coord_set(infer, infer->node->subset);
out:
    return status;
}

static enum vxd_status infer_attention(struct infer *infer, struct vxd_err *err)
{
    enum vxd_status status;

    if (infer->in[0]->n_channels != infer->in[1]->n_channels) {
        return FAIL(infer, "inputs", "queries have %d channels, keys %d",
                    infer->in[0]->n_channels, infer->in[1]->n_channels);
    }
    VXD_TRY(require_same_rows(infer, 1, 2, err));
    infer->out->n_channels = infer->in[2]->n_channels;
out:
    return status;
}

static enum vxd_status infer_tokens(struct infer *infer, struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(require_same_rows(infer, 0, 2, err));
    infer->out->coord_set = -1;
    infer->out->n_tokens = infer->in[0]->n_channels;
    infer->out->n_channels = infer->in[1]->n_channels;
out:
    return status;
}

static enum vxd_status infer_op(struct infer *infer, struct vxd_err *err)
{
    enum vxd_status status = VXD_OK;

    switch (infer->layer->op) {
    case VXD_NET_SUBM:
    case VXD_NET_CONV:
    case VXD_NET_TRANSPOSE:
    case VXD_NET_POOL_MAX:
    case VXD_NET_POOL_AVG:
    case VXD_NET_POOL_SUM:
        status = infer_taps(infer, err);
        break;
    case VXD_NET_INVERSE:
    case VXD_NET_UNPOOL:
        status = infer_backwards(infer, err);
        break;
    case VXD_NET_GLOBAL_MAX:
    case VXD_NET_GLOBAL_AVG:
    case VXD_NET_GLOBAL_GEM:
        infer->out->coord_set = -1;
        infer->out->n_tokens = 1;
        break;
    case VXD_NET_ADD:
    case VXD_NET_ADD_UNION:
        status = infer_sum(infer, err);
        break;
    case VXD_NET_CAT:
        status = infer_cat(infer, err);
        break;
    case VXD_NET_AFFINE:
    case VXD_NET_BATCH_NORM:
        if (infer->layer->n_channels != infer->in[0]->n_channels) {
            status = FAIL(infer, "n_channels", "%d, the input has %d",
                          infer->layer->n_channels, infer->in[0]->n_channels);
        }
        break;
    case VXD_NET_PRUNE:
        status = infer_prune(infer, err);
        break;
    case VXD_NET_ATTENTION:
        status = infer_attention(infer, err);
        break;
    case VXD_NET_TOKENS:
        status = infer_tokens(infer, err);
        break;
    case VXD_NET_LINEAR:
    case VXD_NET_ACT:
    case VXD_NET_SOFTMAX:
    case VXD_NET_EMBEDDING:
    case VXD_NET_L2_NORM:
        break;
    }
    return status;
}

static enum vxd_status infer_layer(struct vxd_net *net, const struct vxd_net_layer *layer,
                                   int number, struct vxd_err *err)
{
    struct infer infer = {.net = net,
                          .layer = layer,
                          .node = &net->nodes[number],
                          .out = &net->tensors[number + 1],
                          .number = number};
    enum vxd_status status;

    infer.node->layer = *layer;
    infer.node->layer.weights = NULL;
    infer.node->layer.scale = NULL;
    infer.node->layer.bias = NULL;
    infer.node->map = -1;
    infer.node->subset = -1;
    for (int i = 0; i < VXD_NET_MAX_INPUTS; i++) {
        infer.in[i] =
            tensor_of(net, i < layer->n_inputs ? layer->inputs[i] : VXD_NET_INPUT);
        advance_phase(&infer, infer.in[i]->phase); /* 0 for the network's input */
    }
    if (layer->add != VXD_NET_NONE) {
        advance_phase(&infer, tensor_of(net, layer->add)->phase);
    }
    /* The default, which an op may change: the first input's rows and channels. */
    put_on_rows_of(&infer, infer.in[0]);
    infer.out->n_channels =
        layer->n_channels > 0 ? layer->n_channels : infer.in[0]->n_channels;
    VXD_TRY(infer_op(&infer, err));
    if (vxd_net_is_convolution(layer->op)) {
        VXD_TRY(check_convolution(&infer, err));
    }
out:
    return status;
}

static enum vxd_status check_output(const struct vxd_net *net,
                                    const struct vxd_net_output *output,
                                    struct vxd_err *err)
{
    const struct vxd_net_tensor *tensor = tensor_of(net, output->layer);
    size_t n =
        (size_t)net->options.max_samples * (size_t)tensor->n_channels * sizeof(float);
    char field[sizeof err->field];

    if (output->kind != VXD_NET_OUT_DENSE_BEV) {
        return VXD_OK;
    }
    (void)snprintf(field, sizeof field, "outputs[%s]", output->name);
    for (int axis = 0; axis < 3; axis++) {
        int32_t cells =
            tensor->coord_set >= 0 ? net->coord_sets[tensor->coord_set].shape[axis] : 0;

        if (cells == 0 || !vxd_size_mul(n, (size_t)cells, &n)) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, field,
                            "a dense result needs voxels within a bounded shape, and "
                            "less than 2^64 bytes");
        }
    }
    return VXD_OK;
}

enum vxd_status vxd_net_infer(struct vxd_net *net, const struct vxd_net_builder *builder,
                              struct vxd_err *err)
{
    struct vxd_net_coord_set input = {.kind = VXD_NET_COORD_SET_INPUT,
                                      .a = -1,
                                      .b = -1,
                                      .times = {1, 1, 1},
                                      .layer = VXD_NET_INPUT};
    int number;
    enum vxd_status status;

    memcpy(input.shape, builder->shape, sizeof input.shape);
    VXD_TRY(vxd_net_share_coord_set(net, &input, &number, err));
    net->tensors[0] =
        (struct vxd_net_tensor){.coord_set = number, .n_channels = builder->n_channels};
    for (int i = 0; i < builder->n_layers; i++) {
        VXD_TRY(infer_layer(net, &builder->layers[i], i, err));
    }
    if (builder->n_outputs == 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "outputs", "the network has none");
    }
    for (int i = 0; i < builder->n_outputs; i++) {
        VXD_TRY(check_output(net, &builder->outputs[i], err));
        net->outputs[i] = builder->outputs[i];
    }
    net->n_outputs = builder->n_outputs;
out:
    return status;
}
