// SPDX-License-Identifier: Apache-2.0
/* The checks of a layer that need no other layer's result. */
#include <math.h>
#include <string.h>

#include "gpu/sparse/executor/network_internal.h"

enum {
    N_OPS = VXD_NET_TOKENS + 1
};

/* Which fields a layer of an op may use. */
struct traits {
    int least_inputs;
    int most_inputs;
    bool has_kernel;
    bool has_channels; /* otherwise n_channels is 0 and the inputs determine it */
    bool has_weights;
    bool has_affine; /* scale and bias */
    bool has_act;
    bool has_add;
    bool has_of_map;
};

static const struct traits all_traits[N_OPS] = {
    [VXD_NET_SUBM] = {1, 1, true, true, true, true, true, true, false},
    [VXD_NET_CONV] = {1, 1, true, true, true, true, true, true, false},
    [VXD_NET_INVERSE] = {1, 1, false, true, true, true, true, true, true},
    [VXD_NET_TRANSPOSE] = {1, 1, true, true, true, true, true, true, false},
    [VXD_NET_LINEAR] = {1, 1, false, true, true, true, true, true, false},
    [VXD_NET_POOL_MAX] = {1, 1, true, false, false, false, false, false, false},
    [VXD_NET_POOL_AVG] = {1, 1, true, false, false, false, false, false, false},
    [VXD_NET_POOL_SUM] = {1, 1, true, false, false, false, false, false, false},
    [VXD_NET_UNPOOL] = {1, 1, false, false, false, false, false, false, true},
    [VXD_NET_GLOBAL_MAX] = {1, 1, false, false, false, false, false, false, false},
    [VXD_NET_GLOBAL_AVG] = {1, 1, false, false, false, false, false, false, false},
    [VXD_NET_GLOBAL_GEM] = {1, 1, false, false, false, false, false, false, false},
    [VXD_NET_ADD] = {2, VXD_NET_MAX_INPUTS, false, false, false, false, true, false,
                     false},
    [VXD_NET_ADD_UNION] = {2, 2, false, false, false, false, true, false, false},
    [VXD_NET_CAT] = {2, VXD_NET_MAX_INPUTS, false, false, false, false, false, false,
                     false},
    [VXD_NET_AFFINE] = {1, 1, false, true, false, true, true, false, false},
    [VXD_NET_BATCH_NORM] = {1, 1, false, true, false, true, true, false, false},
    [VXD_NET_ACT] = {1, 1, false, false, false, false, true, false, false},
    [VXD_NET_SOFTMAX] = {1, 1, false, false, false, false, false, false, false},
    [VXD_NET_EMBEDDING] = {1, 1, false, true, true, false, false, false, false},
    [VXD_NET_PRUNE] = {2, 2, false, false, false, false, false, false, false},
    [VXD_NET_L2_NORM] = {1, 1, false, false, false, false, false, false, false},
    [VXD_NET_ATTENTION] = {3, 3, false, false, false, false, false, false, false},
    [VXD_NET_TOKENS] = {2, 2, false, false, false, false, false, false, false},
};

bool vxd_net_is_convolution(enum vxd_net_op op)
{
    return op == VXD_NET_SUBM || op == VXD_NET_CONV || op == VXD_NET_INVERSE ||
           op == VXD_NET_TRANSPOSE || op == VXD_NET_LINEAR;
}

bool vxd_net_is_pool(enum vxd_net_op op)
{
    return op == VXD_NET_POOL_MAX || op == VXD_NET_POOL_AVG || op == VXD_NET_POOL_SUM ||
           op == VXD_NET_UNPOOL;
}

enum vxd_status vxd_net_fail(struct vxd_err *err, enum vxd_status code, const char *name,
                             const char *field, const char *format, ...)
{
    char where[sizeof err->field];
    char what[sizeof err->message];
    va_list args;

    (void)snprintf(where, sizeof where, "layers[%s]%s%s", name, field != NULL ? "." : "",
                   field != NULL ? field : "");
    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return vxd_fail(err, code, where, "%s", what);
}

void vxd_net_name_layer(struct vxd_err *err, const char *name)
{
    char field[sizeof err->field];

    if (err != NULL) {
        memcpy(field, err->field, sizeof field);
        (void)snprintf(err->field, sizeof err->field, "layers[%.63s]%s%.22s", name,
                       field[0] != 0 ? "." : "", field);
    }
}

static enum vxd_status check_name(const struct vxd_net_builder *builder,
                                  const struct vxd_net_layer *layer, struct vxd_err *err)
{
    if (memchr(layer->name, 0, sizeof layer->name) == NULL || layer->name[0] == 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "layers",
                        "the name of layer %d must have 1 to %d bytes", builder->n_layers,
                        VXD_NET_NAME_BYTES - 1);
    }
    if (builder->n_layers == VXD_NET_MAX_LAYERS) {
        return vxd_net_fail(err, VXD_INVALID_ARGUMENT, layer->name, NULL,
                            "more than %d layers", VXD_NET_MAX_LAYERS);
    }
    for (int i = 0; i < builder->n_layers; i++) {
        if (strcmp(builder->layers[i].name, layer->name) == 0) {
            return vxd_net_fail(err, VXD_INVALID_ARGUMENT, layer->name, "name",
                                "another layer has it");
        }
    }
    return VXD_OK;
}

/* least: VXD_NET_INPUT, or 0 where the network's input is not allowed. */
static enum vxd_status check_number(const struct vxd_net_builder *builder,
                                    const struct vxd_net_layer *layer, int number,
                                    int least, const char *field, struct vxd_err *err)
{
    if (number < least || number >= builder->n_layers) {
        return vxd_net_fail(err, VXD_INVALID_ARGUMENT, layer->name, field,
                            "there is no layer %d before this one, the %d-th", number,
                            builder->n_layers);
    }
    return VXD_OK;
}

static enum vxd_status check_links(const struct vxd_net_builder *builder,
                                   const struct vxd_net_layer *layer,
                                   const struct traits *traits, struct vxd_err *err)
{
    enum vxd_status status;

    if (layer->n_inputs < traits->least_inputs || layer->n_inputs > traits->most_inputs) {
        return vxd_net_fail(err, VXD_INVALID_ARGUMENT, layer->name, "inputs",
                            "%d of them, must be %d to %d", layer->n_inputs,
                            traits->least_inputs, traits->most_inputs);
    }
    for (int i = 0; i < layer->n_inputs; i++) {
        VXD_TRY(
            check_number(builder, layer, layer->inputs[i], VXD_NET_INPUT, "inputs", err));
    }
    if (traits->has_of_map) {
        VXD_TRY(check_number(builder, layer, layer->of_map, 0, "of_map", err));
    } else if (layer->of_map != VXD_NET_NONE) {
        return vxd_net_fail(err, VXD_INVALID_ARGUMENT, layer->name, "of_map",
                            "only an inverse convolution or an unpool has one");
    }
    if (layer->op != VXD_NET_TRANSPOSE && layer->onto != VXD_NET_NONE) {
        return vxd_net_fail(err, VXD_INVALID_ARGUMENT, layer->name, "onto",
                            "only a transposed convolution has one");
    }
    if (layer->onto != VXD_NET_NONE) {
        VXD_TRY(check_number(builder, layer, layer->onto, VXD_NET_INPUT, "onto", err));
    }
    if (!traits->has_add && layer->add != VXD_NET_NONE) {
        return vxd_net_fail(err, VXD_INVALID_ARGUMENT, layer->name, "add",
                            "only a convolution or a linear layer has one");
    }
    if (layer->add != VXD_NET_NONE) {
        VXD_TRY(check_number(builder, layer, layer->add, VXD_NET_INPUT, "add", err));
    }
    return VXD_OK;
out:
    return status;
}

static enum vxd_status check_axes(const struct vxd_net_layer *layer, const int values[3],
                                  int least, int most, const char *field,
                                  struct vxd_err *err)
{
    for (int axis = 0; axis < 3; axis++) {
        if (values[axis] < least || values[axis] > most) {
            return vxd_net_fail(err, VXD_INVALID_ARGUMENT, layer->name, field,
                                "%d in %c, must be %d to %d", values[axis], "xyz"[axis],
                                least, most);
        }
    }
    return VXD_OK;
}

static enum vxd_status check_kernel(const struct vxd_net_layer *layer,
                                    struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(check_axes(layer, layer->kernel, 1, VXD_SPARSE_MAX_KERNEL, "kernel", err));
    VXD_TRY(
        check_axes(layer, layer->dilation, 1, VXD_SPARSE_MAX_DILATION, "dilation", err));
    VXD_TRY(check_axes(layer, layer->stride, 1,
                       layer->op == VXD_NET_SUBM ? 1 : VXD_SPARSE_MAX_STRIDE, "stride",
                       err));
    if (layer->semantics == VXD_NET_SPCONV) {
        VXD_TRY(
            check_axes(layer, layer->padding, 0, VXD_SPARSE_MAX_PADDING, "padding", err));
        VXD_TRY(check_axes(layer, layer->output_padding, 0, VXD_SPARSE_MAX_PADDING,
                           "output_padding", err));
    }
    for (int axis = 0; axis < 3; axis++) {
        if (layer->op == VXD_NET_SUBM && layer->semantics == VXD_NET_SPCONV &&
            layer->kernel[axis] % 2 == 0) {
            return vxd_net_fail(err, VXD_INVALID_ARGUMENT, layer->name, "kernel",
                                "%d in %c: spconv's submanifold kernels are odd",
                                layer->kernel[axis], "xyz"[axis]);
        }
    }
out:
    return status;
}

static enum vxd_status check_numbers(const struct vxd_net_layer *layer,
                                     const struct traits *traits, struct vxd_err *err)
{
    if ((int)layer->act < VXD_ACT_NONE || (int)layer->act > VXD_ACT_SIGMOID ||
        (layer->act != VXD_ACT_NONE && !traits->has_act) ||
        (layer->act == VXD_ACT_NONE && layer->op == VXD_NET_ACT)) {
        return vxd_net_fail(err, VXD_INVALID_ARGUMENT, layer->name, "act",
                            "%d is no activation of such a layer", (int)layer->act);
    }
    if (!isfinite(layer->alpha) ||
        (layer->op == VXD_NET_GLOBAL_GEM && layer->alpha <= 0.0f)) {
        return vxd_net_fail(err, VXD_INVALID_ARGUMENT, layer->name, "alpha",
                            "%g is not finite, or not above 0 where it is GeM's power",
                            (double)layer->alpha);
    }
    if (!isfinite(layer->eps) || layer->eps < 0.0f ||
        (layer->eps == 0.0f &&
         (layer->op == VXD_NET_BATCH_NORM || layer->op == VXD_NET_L2_NORM))) {
        return vxd_net_fail(err, VXD_INVALID_ARGUMENT, layer->name, "eps",
                            "%g, must be finite and positive", (double)layer->eps);
    }
    if (layer->whole_batch && layer->op != VXD_NET_BATCH_NORM) {
        return vxd_net_fail(err, VXD_INVALID_ARGUMENT, layer->name, "whole_batch",
                            "only a batch norm has it");
    }
    return VXD_OK;
}

static enum vxd_status check_arrays(const struct vxd_net_layer *layer,
                                    const struct traits *traits, struct vxd_err *err)
{
    int least = traits->has_channels ? 1 : 0;
    int most = traits->has_channels ? VXD_NET_MAX_CHANNELS : 0;

    if (layer->n_channels < least || layer->n_channels > most) {
        return vxd_net_fail(err, VXD_INVALID_ARGUMENT, layer->name, "n_channels",
                            "%d, must be %d to %d", layer->n_channels, least, most);
    }
    if (traits->has_weights != (layer->weights != NULL) ||
        traits->has_weights != (layer->n_weights != 0)) {
        return vxd_net_fail(err, VXD_INVALID_ARGUMENT, layer->name, "weights",
                            traits->has_weights ? "missing" : "such a layer has none");
    }
    if (layer->op == VXD_NET_EMBEDDING && layer->n_channels > 0 &&
        (layer->n_weights % (size_t)layer->n_channels != 0 ||
         layer->n_weights / (size_t)layer->n_channels > INT32_MAX)) {
        return vxd_net_fail(err, VXD_INVALID_ARGUMENT, layer->name, "weights",
                            "%zu floats are no rows of %d", layer->n_weights,
                            layer->n_channels);
    }
    if (!traits->has_affine && layer->scale != NULL) {
        return vxd_net_fail(err, VXD_INVALID_ARGUMENT, layer->name, "scale",
                            "such a layer has none");
    }
    if (!traits->has_affine && layer->bias != NULL) {
        return vxd_net_fail(err, VXD_INVALID_ARGUMENT, layer->name, "bias",
                            "such a layer has none");
    }
    return VXD_OK;
}

enum vxd_status vxd_net_check_layer(const struct vxd_net_builder *builder,
                                    const struct vxd_net_layer *layer,
                                    struct vxd_err *err)
{
    const struct traits *traits;
    enum vxd_status status;

    VXD_TRY(check_name(builder, layer, err));
    if ((int)layer->op < 0 || (int)layer->op >= N_OPS) {
        return vxd_net_fail(err, VXD_INVALID_ARGUMENT, layer->name, "op", "%d is no op",
                            (int)layer->op);
    }
    if (layer->semantics != VXD_NET_SPCONV && layer->semantics != VXD_NET_MINKOWSKI) {
        return vxd_net_fail(err, VXD_INVALID_ARGUMENT, layer->name, "semantics",
                            "%d is none; 0 is SPCONV, 1 MINKOWSKI",
                            (int)layer->semantics);
    }
    traits = &all_traits[layer->op];
    VXD_TRY(check_links(builder, layer, traits, err));
    if (traits->has_kernel) {
        VXD_TRY(check_kernel(layer, err));
    }
    VXD_TRY(check_numbers(layer, traits, err));
    VXD_TRY(check_arrays(layer, traits, err));
out:
    return status;
}
