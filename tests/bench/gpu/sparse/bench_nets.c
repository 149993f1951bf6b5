// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/gpu/sparse/bench_nets.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct making {
    struct vxd_net_builder *builder;
    uint64_t random;
    int n_layers;
    int n_channels[VXD_NET_MAX_LAYERS + 1]; /* of layer i - 1 */
    enum vxd_net_semantics semantics;
    enum vxd_status status; /* of the first fault; layers are not added after it */
    struct vxd_err *err;
};

/* The shape of a layer; kernel, stride and padding are x, y, z. */
struct shape {
    int kernel[3];
    int stride[3];
    int padding[3];
};

static const struct shape cube = {{3, 3, 3}, {1, 1, 1}, {1, 1, 1}};
static const struct shape halving = {{3, 3, 3}, {2, 2, 2}, {1, 1, 1}};
static const struct shape halving_flat = {{3, 3, 3}, {2, 2, 2}, {1, 1, 0}};
static const struct shape flattening = {{1, 1, 3}, {1, 1, 2}, {0, 0, 0}};
static const struct shape pairs = {{2, 2, 2}, {2, 2, 2}, {0, 0, 0}};
static const struct shape point = {{1, 1, 1}, {1, 1, 1}, {0, 0, 0}};

static float random_float(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15ULL);

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
    z ^= z >> 31;
    return (float)(z >> 40) * 0x1p-23f - 1.0f;
}

static float *random_floats(uint64_t *state, size_t n, float scale)
{
    float *values = malloc(n * sizeof *values);

    for (size_t i = 0; i < n && values != NULL; i++) {
        values[i] = scale * random_float(state);
    }
    return values;
}

static int add_layer(struct making *making, struct vxd_net_layer *layer)
{
    int id = making->n_layers;

    if (making->status != VXD_OK) {
        return 0;
    }
    (void)snprintf(layer->name, sizeof layer->name, "layer%d", making->n_layers);
    layer->semantics = making->semantics;
    making->status = vxd_net_builder_add(making->builder, layer, &id, making->err);
    making->n_layers++;
    return id;
}

/* A convolution with its bias (a folded batch norm's), ReLU unless is_linear. */
static int add_conv(struct making *making, enum vxd_net_op op, int in, int n_channels,
                    const struct shape *shape, int onto, int residual, bool is_linear)
{
    int n_in = making->n_channels[in + 1];
    size_t n_taps =
        op == VXD_NET_LINEAR
            ? 1
            : (size_t)(shape->kernel[0] * shape->kernel[1] * shape->kernel[2]);
    struct vxd_net_layer layer = {.op = op,
                                  .inputs = {in},
                                  .n_inputs = 1,
                                  .n_channels = n_channels,
                                  .dilation = {1, 1, 1},
                                  .of_map = VXD_NET_NONE,
                                  .onto = onto,
                                  .add = residual,
                                  .act = is_linear ? VXD_ACT_NONE : VXD_ACT_RELU,
                                  .n_weights =
                                      n_taps * (size_t)n_in * (size_t)n_channels};
    /* About eight of 27 taps read a row. */
    double n_read = (double)n_in * (n_taps > 8 ? 8.0 : (double)n_taps);
    float *weights;
    float *bias;
    int id;

    memcpy(layer.kernel, shape->kernel, sizeof layer.kernel);
    memcpy(layer.stride, shape->stride, sizeof layer.stride);
    memcpy(layer.padding, shape->padding, sizeof layer.padding);
    weights = random_floats(&making->random, layer.n_weights, (float)sqrt(3.0 / n_read));
    bias = random_floats(&making->random, (size_t)n_channels, 0.1f);
    if (weights == NULL || bias == NULL) {
        making->status =
            vxd_fail(making->err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for weights");
    }
    layer.weights = weights;
    layer.bias = bias;
    id = add_layer(making, &layer);
    making->n_channels[id + 1] = n_channels;
    free(weights);
    free(bias);
    return id;
}

static int subm(struct making *making, int in, int n_channels)
{
    return add_conv(making, VXD_NET_SUBM, in, n_channels, &cube, VXD_NET_NONE,
                    VXD_NET_NONE, false);
}

static int strided(struct making *making, int in, int n_channels,
                   const struct shape *shape)
{
    return add_conv(making, VXD_NET_CONV, in, n_channels, shape, VXD_NET_NONE,
                    VXD_NET_NONE, false);
}

/* Two convolutions and the residual around them, through a 1x1 convolution where
 * channels change. */
static int residual_block(struct making *making, int in, int n_channels)
{
    int past = in;
    int first = subm(making, in, n_channels);

    if (making->n_channels[in + 1] != n_channels) {
        past = add_conv(making, VXD_NET_LINEAR, in, n_channels, &point, VXD_NET_NONE,
                        VXD_NET_NONE, true);
    }
    return add_conv(making, VXD_NET_SUBM, first, n_channels, &cube, VXD_NET_NONE, past,
                    false);
}

static void add_output(struct making *making, int layer, enum vxd_net_output_kind kind)
{
    struct vxd_net_output output = {"out", kind, layer};

    if (making->status == VXD_OK) {
        making->status = vxd_net_builder_output(making->builder, &output, making->err);
    }
}

static void make_second(struct making *making)
{
    static const int n_channels[4] = {16, 32, 64, 64};
    int at = subm(making, VXD_NET_INPUT, 16);

    at = subm(making, at, 16);
    for (int stage = 1; stage < 4; stage++) {
        at =
            strided(making, at, n_channels[stage], stage == 3 ? &halving_flat : &halving);
        at = subm(making, at, n_channels[stage]);
        at = subm(making, at, n_channels[stage]);
    }
    add_output(making, strided(making, at, 128, &flattening), VXD_NET_OUT_DENSE_BEV);
}

static void make_centerpoint(struct making *making)
{
    static const int n_channels[4] = {16, 32, 64, 128};
    int at = subm(making, VXD_NET_INPUT, 16);

    for (int stage = 0; stage < 4; stage++) {
        if (stage > 0) {
            at = strided(making, at, n_channels[stage],
                         stage == 3 ? &halving_flat : &halving);
        }
        at = residual_block(making, at, n_channels[stage]);
        at = residual_block(making, at, n_channels[stage]);
    }
    add_output(making, strided(making, at, 128, &flattening), VXD_NET_OUT_DENSE_BEV);
}

static void make_minkunet42(struct making *making)
{
    static const int n_down[4] = {32, 64, 128, 256};
    static const int n_up[4] = {256, 128, 96, 96};
    int skips[5];
    int at = subm(making, VXD_NET_INPUT, 32);

    at = subm(making, at, 32);
    skips[0] = at;
    for (int i = 0; i < 4; i++) {
        at = strided(making, at, making->n_channels[at + 1], &pairs);
        at = residual_block(making, at, n_down[i]);
        at = residual_block(making, at, n_down[i]);
        skips[i + 1] = at;
    }
    for (int i = 0; i < 4; i++) {
        int skip = skips[3 - i];
        struct vxd_net_layer cat = {.op = VXD_NET_CAT,
                                    .n_inputs = 2,
                                    .of_map = VXD_NET_NONE,
                                    .onto = VXD_NET_NONE,
                                    .add = VXD_NET_NONE};

        cat.inputs[0] = add_conv(making, VXD_NET_TRANSPOSE, at, n_up[i], &pairs, skip,
                                 VXD_NET_NONE, false);
        cat.inputs[1] = skip;
        at = add_layer(making, &cat);
        making->n_channels[at + 1] = n_up[i] + making->n_channels[skip + 1];
        at = residual_block(making, at, n_up[i]);
        at = residual_block(making, at, n_up[i]);
    }
    at = add_conv(making, VXD_NET_LINEAR, at, 19, &point, VXD_NET_NONE, VXD_NET_NONE,
                  true);
    add_output(making, at, VXD_NET_OUT_ARGMAX);
}

enum vxd_status bench_net_build(const char *name, int n_channels, const int32_t shape[3],
                                struct vxd_net_builder **out, struct vxd_err *err)
{
    static const int32_t unbounded[3] = {0, 0, 0};
    bool is_unet = strcmp(name, "minkunet42") == 0;
    struct making *making = calloc(1, sizeof *making);
    enum vxd_status status;

    *out = NULL;
    if (making == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for a network");
    }
    making->err = err;
    making->random = 7;
    making->n_channels[0] = n_channels;
    making->semantics = is_unet ? VXD_NET_MINKOWSKI : VXD_NET_SPCONV;
    VXD_TRY(vxd_net_builder_create(n_channels, is_unet ? unbounded : shape,
                                   &making->builder, err));
    if (is_unet) {
        make_minkunet42(making);
    } else if (strcmp(name, "second") == 0) {
        make_second(making);
    } else if (strcmp(name, "centerpoint") == 0) {
        make_centerpoint(making);
    } else {
        making->status = vxd_fail(err, VXD_NOT_FOUND, "network",
                                  "%s is none of second, centerpoint, minkunet42", name);
    }
    VXD_TRY(making->status);
    *out = making->builder;
    making->builder = NULL;
out:
    vxd_net_builder_destroy(making->builder);
    free(making);
    return status;
}
