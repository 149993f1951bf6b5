// SPDX-License-Identifier: Apache-2.0
/* Layers and outputs as they are added. */
#include <stdlib.h>
#include <string.h>

#include "gpu/sparse/executor/network_internal.h"

#define MAX_SHAPE ((int32_t)1 << (VXD_SPARSE_COORD_BITS - 1))

enum vxd_status vxd_net_builder_create(int n_channels, const int32_t shape[3],
                                       struct vxd_net_builder **out, struct vxd_err *err)
{
    struct vxd_net_builder *builder;

    *out = NULL;
    if (n_channels < 1 || n_channels > VXD_NET_MAX_CHANNELS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "n_channels",
                        "%d channels, must be 1 to %d", n_channels, VXD_NET_MAX_CHANNELS);
    }
    for (int axis = 0; axis < 3; axis++) {
        if (shape[axis] < 0 || shape[axis] > MAX_SHAPE) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, "shape",
                            "%d cells in %c, must be 1 to %d, 0 = unbounded", shape[axis],
                            "xyz"[axis], MAX_SHAPE);
        }
    }
    builder = calloc(1, sizeof *builder);
    if (builder == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a network");
    }
    builder->n_channels = n_channels;
    memcpy(builder->shape, shape, sizeof builder->shape);
    *out = builder;
    return VXD_OK;
}

static void free_layer(struct vxd_net_layer *layer)
{
    free((void *)layer->weights);
    free((void *)layer->scale);
    free((void *)layer->bias);
}

void vxd_net_builder_destroy(struct vxd_net_builder *builder)
{
    if (builder == NULL) {
        return;
    }
    for (int i = 0; i < builder->n_layers; i++) {
        free_layer(&builder->layers[i]);
    }
    free(builder->layers);
    free(builder);
}

/* Replaces *array by a copy of itself; NULL stays NULL. */
static bool copy_floats(const float **array, size_t n)
{
    float *copy = NULL;

    if (*array != NULL) {
        copy = malloc(n * sizeof *copy);
        if (copy == NULL) {
            *array = NULL;
            return false;
        }
        memcpy(copy, *array, n * sizeof *copy);
    }
    *array = copy;
    return true;
}

static bool copy_layer(const struct vxd_net_layer *layer, struct vxd_net_layer *out)
{
    size_t n_channels = (size_t)layer->n_channels;
    bool ok;

    *out = *layer;
    ok = copy_floats(&out->weights, layer->n_weights);
    ok = copy_floats(&out->scale, n_channels) && ok;
    ok = copy_floats(&out->bias, n_channels) && ok;
    if (!ok) {
        free_layer(out);
    }
    return ok;
}

static bool reserve_layer(struct vxd_net_builder *builder)
{
    int capacity = builder->layers_capacity > 0 ? 2 * builder->layers_capacity : 16;
    struct vxd_net_layer *layers;

    if (builder->n_layers < builder->layers_capacity) {
        return true;
    }
    layers = realloc(builder->layers, (size_t)capacity * sizeof *layers);
    if (layers == NULL) {
        return false;
    }
    builder->layers = layers;
    builder->layers_capacity = capacity;
    return true;
}

enum vxd_status vxd_net_builder_add(struct vxd_net_builder *builder,
                                    const struct vxd_net_layer *layer, int *id,
                                    struct vxd_err *err)
{
    enum vxd_status status;

    VXD_TRY(vxd_net_check_layer(builder, layer, err));
    if (!reserve_layer(builder) ||
        !copy_layer(layer, &builder->layers[builder->n_layers])) {
        return vxd_net_fail(err, VXD_RESOURCE_EXHAUSTED, layer->name, NULL,
                            "no memory for the layer");
    }
    *id = builder->n_layers++;
out:
    return status;
}

enum vxd_status vxd_net_builder_output(struct vxd_net_builder *builder,
                                       const struct vxd_net_output *output,
                                       struct vxd_err *err)
{
    char field[sizeof err->field];

    if (memchr(output->name, 0, sizeof output->name) == NULL || output->name[0] == 0) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "outputs",
                        "a name must have 1 to %d bytes", VXD_NET_NAME_BYTES - 1);
    }
    (void)snprintf(field, sizeof field, "outputs[%s]", output->name);
    if (builder->n_outputs == VXD_NET_MAX_OUTPUTS) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field, "more than %d outputs",
                        VXD_NET_MAX_OUTPUTS);
    }
    for (int i = 0; i < builder->n_outputs; i++) {
        if (strcmp(builder->outputs[i].name, output->name) == 0) {
            return vxd_fail(err, VXD_INVALID_ARGUMENT, field, "is a duplicate");
        }
    }
    if ((int)output->kind < VXD_NET_OUT_ROWS || (int)output->kind > VXD_NET_OUT_ARGMAX) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field, "%d is no kind of output",
                        (int)output->kind);
    }
    if (output->layer < VXD_NET_INPUT || output->layer >= builder->n_layers) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, field, "there is no layer %d",
                        output->layer);
    }
    builder->outputs[builder->n_outputs++] = *output;
    return VXD_OK;
}
