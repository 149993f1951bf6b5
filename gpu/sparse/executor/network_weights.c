// SPDX-License-Identifier: Apache-2.0
/* Copies weights to the device. The scale of a batch norm is multiplied into its
 * convolution's weights, in double; scales, biases and tables of all layers are one
 * block. */
#include <stdlib.h>
#include <string.h>

#include "gpu/sparse/executor/network_internal.h"

/* w * scale of its output channel; NULL where memory is exhausted. */
static float *fold(const struct vxd_net_layer *layer)
{
    size_t n_channels = (size_t)layer->n_channels;
    float *folded = malloc(layer->n_weights * sizeof *folded);

    for (size_t i = 0; i < layer->n_weights && folded != NULL; i++) {
        folded[i] =
            (float)((double)layer->weights[i] * (double)layer->scale[i % n_channels]);
    }
    return folded;
}

static enum vxd_status pack(struct vxd_queue *queue, struct vxd_net *net, int number,
                            const struct vxd_net_layer *layer, struct vxd_err *err)
{
    struct vxd_net_node *node = &net->nodes[number];
    const int *kernel = node->geometry.kernel;
    int n_taps = node->has_geometry ? kernel[0] * kernel[1] * kernel[2] : 1;
    int n_in = net->tensors[layer->inputs[0] + 1].n_channels;
    const float *weights = layer->weights;
    float *folded = NULL;
    enum vxd_status status;

    if (layer->scale != NULL) {
        folded = fold(layer);
        if (folded == NULL) {
            return vxd_net_fail(err, VXD_RESOURCE_EXHAUSTED, layer->name, "weights",
                                "no memory to fold %zu of them", layer->n_weights);
        }
        weights = folded;
    }
    status = vxd_conv_weights_pack(queue, weights, n_taps, n_in, layer->n_channels,
                                   net->options.precision, &node->weights, err);
    if (status != VXD_OK) {
        vxd_net_name_layer(err, layer->name);
    }
    free(folded);
    net->info.weight_bytes += node->weights.data.n_bytes;
    return status;
}

/* Places of a layer's constants in the block, in floats; SIZE_MAX = none. */
struct places {
    size_t scale;
    size_t bias;
    size_t table;
};

static bool add_array(size_t *n_bytes, const float *array, size_t n, size_t *place)
{
    size_t offset;

    *place = SIZE_MAX;
    if (array == NULL) {
        return true;
    }
    if (!vxd_layout_add(n_bytes, n, sizeof(float), &offset)) {
        return false;
    }
    *place = offset / sizeof(float);
    return true;
}

static bool lay_out(size_t *n_bytes, const struct vxd_net_layer *layer,
                    struct places *out)
{
    size_t n_channels = (size_t)layer->n_channels;
    bool is_convolution = vxd_net_is_convolution(layer->op);

    return add_array(n_bytes, is_convolution ? NULL : layer->scale, n_channels,
                     &out->scale) &&
           add_array(n_bytes, layer->bias, n_channels, &out->bias) &&
           add_array(n_bytes, layer->op == VXD_NET_EMBEDDING ? layer->weights : NULL,
                     layer->n_weights, &out->table);
}

static const float *put(float *host, const float *device, size_t place,
                        const float *array, size_t n)
{
    if (place == SIZE_MAX) {
        return NULL;
    }
    memcpy(host + place, array, n * sizeof *array);
    return device + place;
}

/* Copies all constants in one transfer. */
static enum vxd_status upload_constants(struct vxd_queue *queue, struct vxd_net *net,
                                        const struct vxd_net_builder *builder,
                                        struct vxd_err *err)
{
    struct places *places = calloc((size_t)net->n_layers + 1, sizeof *places);
    float *host = NULL;
    size_t n_bytes = 0;
    enum vxd_status status = VXD_OK;
    bool ok = places != NULL;

    for (int i = 0; i < net->n_layers && ok; i++) {
        ok = lay_out(&n_bytes, &builder->layers[i], &places[i]);
    }
    host = ok ? calloc(n_bytes + 1, 1) : NULL;
    if (host == NULL) {
        status = vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                          "no memory for the network's constants");
        goto out;
    }
    VXD_TRY(vxd_device_alloc(queue, n_bytes, &net->constants, err));
    for (int i = 0; i < net->n_layers; i++) {
        const struct vxd_net_layer *layer = &builder->layers[i];
        struct vxd_net_node *node = &net->nodes[i];
        const float *device = net->constants.ptr;

        node->scale =
            put(host, device, places[i].scale, layer->scale, (size_t)layer->n_channels);
        node->bias =
            put(host, device, places[i].bias, layer->bias, (size_t)layer->n_channels);
        node->table =
            put(host, device, places[i].table, layer->weights, layer->n_weights);
    }
    if (n_bytes > 0) {
        VXD_TRY(vxd_queue_copy(queue, net->constants.ptr, host, n_bytes, err));
    }
    VXD_TRY(vxd_queue_wait(queue, err));
    net->info.weight_bytes += n_bytes;
out:
    free(host);
    free(places);
    return status;
}

enum vxd_status vxd_net_upload(struct vxd_queue *queue, struct vxd_net *net,
                               const struct vxd_net_builder *builder, struct vxd_err *err)
{
    enum vxd_status status;

    for (int i = 0; i < net->n_layers; i++) {
        const struct vxd_net_layer *layer = &builder->layers[i];
        size_t n_channels = (size_t)layer->n_channels;

        net->info.n_parameters += layer->n_weights;
        net->info.n_parameters += layer->scale != NULL ? n_channels : 0;
        net->info.n_parameters += layer->bias != NULL ? n_channels : 0;
        if (vxd_net_is_convolution(layer->op) && net->tensors[i + 1].used) {
            VXD_TRY(pack(queue, net, i, layer, err));
        }
    }
    VXD_TRY(upload_constants(queue, net, builder, err));
    if (net->info.weight_bytes > net->options.max_bytes) {
        status = vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL,
                          "weights of %zu bytes, the network may take %zu",
                          net->info.weight_bytes, net->options.max_bytes);
    }
out:
    return status;
}
