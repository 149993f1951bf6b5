// SPDX-License-Identifier: Apache-2.0
/* Adds a layer to the engine's builder: its channels, its weights, and the further layers
 * that the engine needs where a batch norm cannot be folded. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "server/model/model_internal.h"

/* The arrays of one layer in host memory, until the builder has copied them. */
struct layer_arrays {
    float *weights;
    size_t n_weights;
    float *scale;
    float *bias;
};

static void layer_arrays_free(struct layer_arrays *layer_arrays)
{
    free(layer_arrays->weights);
    free(layer_arrays->scale);
    free(layer_arrays->bias);
}

static const enum vxd_net_op pool_ops[] = {VXD_NET_POOL_MAX, VXD_NET_POOL_AVG,
                                           VXD_NET_POOL_SUM};
static const enum vxd_net_op global_ops[] = {VXD_NET_GLOBAL_MAX, VXD_NET_GLOBAL_AVG,
                                             VXD_NET_GLOBAL_GEM};

static enum vxd_net_op op_of(const struct vxd_layer_config *layer)
{
    switch (layer->kind) {
    case VXD_LAYER_SUBM:
        return VXD_NET_SUBM;
    case VXD_LAYER_CONV:
        return VXD_NET_CONV;
    case VXD_LAYER_INVERSE:
        return VXD_NET_INVERSE;
    case VXD_LAYER_TRANSPOSE:
        return VXD_NET_TRANSPOSE;
    case VXD_LAYER_LINEAR:
        return VXD_NET_LINEAR;
    case VXD_LAYER_POOL:
        return pool_ops[layer->reduce];
    case VXD_LAYER_UNPOOL:
        return VXD_NET_UNPOOL;
    case VXD_LAYER_GLOBAL:
        return global_ops[layer->reduce];
    case VXD_LAYER_ADD:
        return VXD_NET_ADD;
    case VXD_LAYER_ADD_UNION:
        return VXD_NET_ADD_UNION;
    case VXD_LAYER_CAT:
        return VXD_NET_CAT;
    case VXD_LAYER_BN:
        return layer->bn.batch || layer->bn.sample ? VXD_NET_BATCH_NORM : VXD_NET_AFFINE;
    case VXD_LAYER_SOFTMAX:
        return VXD_NET_SOFTMAX;
    case VXD_LAYER_EMBEDDING:
        return VXD_NET_EMBEDDING;
    case VXD_LAYER_PRUNE:
        return VXD_NET_PRUNE;
    case VXD_LAYER_L2NORM:
        return VXD_NET_L2_NORM;
    case VXD_LAYER_ATTENTION:
        return VXD_NET_ATTENTION;
    case VXD_LAYER_TOKENS:
        return VXD_NET_TOKENS;
    case VXD_LAYER_ACT:
    case VXD_N_LAYER_KINDS:
        break;
    }
    return VXD_NET_ACT;
}

static bool is_conv(const struct vxd_layer_config *layer)
{
    return layer->kind <= VXD_LAYER_LINEAR;
}

static enum vxd_status fail_input(const struct vxd_model_reader *reader,
                                  const struct vxd_layer_config *layer, const char *key,
                                  const struct vxd_node *node, int expected)
{
    char path[VXD_JSON_PATH_BYTES];

    vxd_layer_path(path, layer->name, key);
    return vxd_json_fail(&reader->json, path,
                         "\"%s\": \"%s\" has %d channels, it must have %d", path,
                         node->name, node->n_channels, expected);
}

/* Returns the channels of the result. */
static enum vxd_status count_channels(const struct vxd_model_reader *reader,
                                      const struct vxd_layer_config *layer, int *out)
{
    const struct vxd_node *first = &reader->nodes[layer->inputs[0]];
    const struct vxd_node *second = &reader->nodes[layer->inputs[1]];
    char path[VXD_JSON_PATH_BYTES];

    *out = layer->n_channels > 0 ? layer->n_channels : first->n_channels;
    switch (layer->kind) {
    case VXD_LAYER_ADD:
    case VXD_LAYER_ADD_UNION:
        for (int i = 1; i < layer->n_inputs; i++) {
            const struct vxd_node *node = &reader->nodes[layer->inputs[i]];

            if (node->n_channels != *out) {
                return fail_input(reader, layer, "in", node, *out);
            }
        }
        return VXD_OK;
    case VXD_LAYER_CAT:
        for (int i = 1; i < layer->n_inputs; i++) {
            *out += reader->nodes[layer->inputs[i]].n_channels;
        }
        if (*out > VXD_NET_MAX_CHANNELS) {
            vxd_layer_path(path, layer->name, "in");
            return vxd_json_fail(&reader->json, path,
                                 "\"%s\": %d channels, at most %d are supported", path,
                                 *out, VXD_NET_MAX_CHANNELS);
        }
        return VXD_OK;
    case VXD_LAYER_ATTENTION:
        *out = reader->nodes[layer->inputs[2]].n_channels;
        return second->n_channels == first->n_channels
                   ? VXD_OK
                   : fail_input(reader, layer, "in", second, first->n_channels);
    case VXD_LAYER_TOKENS:
        *out = second->n_channels;
        return VXD_OK;
    default:
        return VXD_OK;
    }
}

/* PREFIX + (stem, or the layer's name) + ending. */
static void name_tensor(const struct vxd_model_reader *reader,
                        const struct vxd_layer_config *layer, const char *stem,
                        const char *ending, char out[VXD_TENSOR_NAME_BYTES])
{
    (void)snprintf(out, VXD_TENSOR_NAME_BYTES, "%s%s%s", reader->prefix,
                   stem[0] != '\0' ? stem : layer->name, ending);
}

static enum vxd_status read_channels(struct vxd_model_reader *reader, const char *path,
                                     const char *name, int n_channels, bool learned,
                                     double center, double bound, double **out)
{
    struct vxd_tensor_want want = {.path = path,
                                   .n_dims = 1,
                                   .shape = {(size_t)n_channels},
                                   .learned = learned,
                                   .center = center,
                                   .bound = bound};

    (void)snprintf(want.name, sizeof want.name, "%s", name);
    return vxd_tensors_read(&reader->tensors, &want, out, reader->err);
}

/* The four tensors of a batch norm. Mean and variance are NULL where they are not used. */
struct norm {
    double *weight;
    double *bias;
    double *mean;
    double *variance;
};

static void norm_free(struct norm *norm)
{
    free(norm->weight);
    free(norm->bias);
    free(norm->mean);
    free(norm->variance);
}

static enum vxd_status read_norm(struct vxd_model_reader *reader,
                                 const struct vxd_layer_config *layer, int n_channels,
                                 struct norm *out)
{
    char stem[VXD_TENSOR_STEM_BYTES + 8];
    char name[VXD_TENSOR_NAME_BYTES];
    char path[VXD_JSON_PATH_BYTES];
    enum vxd_status status;

    (void)snprintf(stem, sizeof stem, "%s%s",
                   layer->w[0] != '\0' ? layer->w : layer->name,
                   layer->kind == VXD_LAYER_BN ? "" : ".bn");
    if (layer->bn_w[0] != '\0') {
        (void)snprintf(stem, sizeof stem, "%s", layer->bn_w);
    }
    vxd_layer_path(path, layer->name, "bn_w");
    name_tensor(reader, layer, stem, ".weight", name);
    VXD_TRY(read_channels(reader, path, name, n_channels, true, 1, 0.2, &out->weight));
    name_tensor(reader, layer, stem, ".bias", name);
    VXD_TRY(read_channels(reader, path, name, n_channels, true, 0, 0.1, &out->bias));
    if (layer->bn.batch || layer->bn.sample) {
        goto out;
    }
    name_tensor(reader, layer, stem, ".running_mean", name);
    VXD_TRY(read_channels(reader, path, name, n_channels, false, 0, 0.1, &out->mean));
    name_tensor(reader, layer, stem, ".running_var", name);
    VXD_TRY(read_channels(reader, path, name, n_channels, false, 1, 0.3, &out->variance));
out:
    return status;
}

static enum vxd_status fail_channel(const struct vxd_model_reader *reader,
                                    const struct vxd_layer_config *layer, const char *key,
                                    int channel)
{
    char path[VXD_JSON_PATH_BYTES];

    vxd_layer_path(path, layer->name, key);
    return vxd_json_fail(&reader->json, path,
                         "\"%s\": scale or bias of channel %d is no finite float32: a "
                         "variance of 0 or less, or values too large",
                         path, channel);
}

/* Computes the engine's scale and bias from a batch norm and the convolution's own bias
 * (NULL = none), in double, rounded once. */
static enum vxd_status fold(const struct vxd_model_reader *reader,
                            const struct vxd_layer_config *layer, const struct norm *norm,
                            const double *bias, int n_channels, struct layer_arrays *out)
{
    out->scale = malloc((size_t)n_channels * sizeof *out->scale);
    out->bias = malloc((size_t)n_channels * sizeof *out->bias);
    if (out->scale == NULL || out->bias == NULL) {
        return vxd_json_no_memory(&reader->json);
    }
    for (int i = 0; i < n_channels; i++) {
        double scale = norm->weight[i];
        double shift = norm->bias[i];

        if (norm->variance != NULL) {
            scale /= sqrt(norm->variance[i] + layer->bn.eps);
            shift -= norm->mean[i] * scale;
        }
        if (bias != NULL) {
            shift += bias[i] * scale;
        }
        if (!isfinite(scale) || !isfinite(shift) || !(fabs(scale) < 3.4e38) ||
            !(fabs(shift) < 3.4e38)) {
            return fail_channel(reader, layer, "bn", i);
        }
        out->scale[i] = (float)scale;
        out->bias[i] = (float)shift;
    }
    return VXD_OK;
}

/* Makes a bias that nothing is folded into. */
static enum vxd_status round_bias(const struct vxd_model_reader *reader,
                                  const double *bias, int n_channels,
                                  struct layer_arrays *out)
{
    out->bias = malloc((size_t)n_channels * sizeof *out->bias);
    if (out->bias == NULL) {
        return vxd_json_no_memory(&reader->json);
    }
    for (int i = 0; i < n_channels; i++) {
        out->bias[i] = (float)bias[i];
    }
    return VXD_OK;
}

/* A batch norm of the run's own statistics is a layer of its own. */
static bool is_separate(const struct vxd_layer_config *layer)
{
    return layer->kind != VXD_LAYER_BN && (layer->bn.batch || layer->bn.sample);
}

static enum vxd_status read_conv(struct vxd_model_reader *reader,
                                 const struct vxd_layer_config *layer, int n_in,
                                 struct layer_arrays *out)
{
    bool is_kernel =
        layer->layout == VXD_LAYOUT_ME || layer->layout == VXD_LAYOUT_TORCHSPARSE;
    struct vxd_conv_want want = {
        .layout = layer->layout, .n_in = n_in, .n_out = layer->n_channels};
    char name[VXD_TENSOR_NAME_BYTES];
    char path[VXD_JSON_PATH_BYTES];
    struct norm norm = {0};
    double *bias = NULL;
    enum vxd_status status;

    for (int i = 0; i < 3; i++) {
        want.axes[i] = reader->axes[i];
        want.kernel[i] = layer->kind == VXD_LAYER_LINEAR ? 1 : layer->kernel[i];
    }
    vxd_layer_path(path, layer->name, "w");
    name_tensor(reader, layer, layer->w, is_kernel ? ".kernel" : ".weight", name);
    want.tensor = name;
    want.path = path;
    VXD_TRY(vxd_tensors_conv(&reader->tensors, &want, &out->weights, &out->n_weights,
                             reader->err));
    if (layer->bias) {
        name_tensor(reader, layer, layer->w, ".bias", name);
        VXD_TRY(
            read_channels(reader, path, name, layer->n_channels, true, 0, 0.1, &bias));
    }
    if (layer->bn.used && !is_separate(layer)) {
        VXD_TRY(read_norm(reader, layer, layer->n_channels, &norm));
        if (norm.weight != NULL) {
            VXD_TRY(fold(reader, layer, &norm, bias, layer->n_channels, out));
        }
    } else if (bias != NULL) {
        VXD_TRY(round_bias(reader, bias, layer->n_channels, out));
    }
out:
    norm_free(&norm);
    free(bias);
    return status;
}

static enum vxd_status read_table(struct vxd_model_reader *reader,
                                  const struct vxd_layer_config *layer,
                                  struct layer_arrays *out)
{
    struct vxd_tensor_want want = {
        .n_dims = 2,
        .shape = {(size_t)layer->n_rows, (size_t)layer->n_channels},
        .learned = true,
        .bound = 1};
    char path[VXD_JSON_PATH_BYTES];
    double *values;
    enum vxd_status status;

    vxd_layer_path(path, layer->name, "w");
    want.path = path;
    name_tensor(reader, layer, layer->w, ".weight", want.name);
    status = vxd_tensors_read(&reader->tensors, &want, &values, reader->err);
    if (status != VXD_OK || values == NULL) {
        return status;
    }
    out->n_weights = want.shape[0] * want.shape[1];
    out->weights = malloc(out->n_weights * sizeof *out->weights);
    for (size_t i = 0; out->weights != NULL && i < out->n_weights; i++) {
        out->weights[i] = (float)values[i];
    }
    free(values);
    return out->weights != NULL ? VXD_OK : vxd_json_no_memory(&reader->json);
}

/* GeM's p, where it was learned. */
static enum vxd_status read_p(struct vxd_model_reader *reader,
                              const struct vxd_layer_config *layer, double *p)
{
    struct vxd_tensor_want want = {
        .n_dims = 1, .shape = {1}, .learned = true, .center = layer->p};
    char path[VXD_JSON_PATH_BYTES];
    double *value;
    enum vxd_status status;

    if (layer->p_w[0] == '\0') {
        return VXD_OK;
    }
    vxd_layer_path(path, layer->name, "p_w");
    want.path = path;
    name_tensor(reader, layer, layer->p_w, "", want.name);
    status = vxd_tensors_read(&reader->tensors, &want, &value, reader->err);
    if (status != VXD_OK || value == NULL) {
        return status;
    }
    *p = value[0];
    free(value);
    if (!(*p >= 0.01 && *p <= 100)) {
        return vxd_json_fail(&reader->json, path, "\"%s\" is %g, it must be 0.01 to 100",
                             path, *p);
    }
    return VXD_OK;
}

static enum vxd_status read_arrays(struct vxd_model_reader *reader,
                                   const struct vxd_layer_config *layer, int n_in,
                                   struct layer_arrays *out)
{
    struct norm norm = {0};
    enum vxd_status status = VXD_OK;

    if (is_conv(layer)) {
        return read_conv(reader, layer, n_in, out);
    }
    if (layer->kind == VXD_LAYER_EMBEDDING) {
        return read_table(reader, layer, out);
    }
    if (layer->kind == VXD_LAYER_BN) {
        VXD_TRY(read_norm(reader, layer, n_in, &norm));
        if (norm.weight != NULL) {
            VXD_TRY(fold(reader, layer, &norm, NULL, n_in, out));
        }
    }
out:
    norm_free(&norm);
    return status;
}

static enum vxd_status add_to_engine(struct vxd_model_reader *reader,
                                     struct vxd_net_layer *layer, const char *name,
                                     const char *ending, int *id)
{
    *id = reader->n_layers++;
    if (reader->n_layers > VXD_NET_MAX_LAYERS) {
        return vxd_json_fail(&reader->json, "layers",
                             "more than %d layers, those of batch norms that cannot be "
                             "folded counted",
                             VXD_NET_MAX_LAYERS);
    }
    (void)snprintf(layer->name, sizeof layer->name, "%s%s", name, ending);
    return vxd_model_lists_only(reader)
               ? VXD_OK
               : vxd_net_builder_add(reader->model->builder, layer, id, reader->err);
}

/* Adds batch norm, residual and activation behind a convolution that could not include
 * them. */
static enum vxd_status add_separate_norm(struct vxd_model_reader *reader,
                                         const struct vxd_layer_config *layer, int *id)
{
    struct vxd_net_layer norm_layer = {.op = VXD_NET_BATCH_NORM,
                                       .inputs = {*id},
                                       .n_inputs = 1,
                                       .n_channels = layer->n_channels,
                                       .whole_batch = layer->bn.batch,
                                       .eps = (float)layer->bn.eps,
                                       .of_map = VXD_NET_NONE,
                                       .onto = VXD_NET_NONE,
                                       .add = VXD_NET_NONE};
    struct vxd_net_layer sum = norm_layer;
    struct layer_arrays layer_arrays = {0};
    struct norm norm = {0};
    enum vxd_status status;

    VXD_TRY(read_norm(reader, layer, layer->n_channels, &norm));
    if (norm.weight != NULL) {
        VXD_TRY(fold(reader, layer, &norm, NULL, layer->n_channels, &layer_arrays));
    }
    norm_layer.scale = layer_arrays.scale;
    norm_layer.bias = layer_arrays.bias;
    if (layer->add == VXD_NET_NONE) {
        norm_layer.act = layer->act;
        norm_layer.alpha = (float)layer->alpha;
    }
    VXD_TRY(add_to_engine(reader, &norm_layer, layer->name, ".bn", id));
    if (layer->add != VXD_NET_NONE) {
        sum.op = VXD_NET_ADD;
        sum.n_channels = 0;
        sum.whole_batch = false;
        sum.inputs[0] = *id;
        sum.inputs[1] = reader->nodes[layer->add].layer;
        sum.n_inputs = 2;
        sum.act = layer->act;
        sum.alpha = (float)layer->alpha;
        VXD_TRY(add_to_engine(reader, &sum, layer->name, ".add", id));
    }
out:
    layer_arrays_free(&layer_arrays);
    norm_free(&norm);
    return status;
}

/* Fills in the engine's layer, except for its weights. */
static void describe(const struct vxd_model_reader *reader,
                     const struct vxd_layer_config *layer,
                     const struct vxd_node_map *of_map, struct vxd_net_layer *out)
{
    *out = (struct vxd_net_layer){.op = op_of(layer),
                                  .semantics = layer->semantics,
                                  .n_inputs = layer->n_inputs,
                                  .n_channels = layer->n_channels,
                                  .of_map = of_map != NULL ? of_map->layer : VXD_NET_NONE,
                                  .onto = layer->onto != VXD_NET_NONE
                                              ? reader->nodes[layer->onto].layer
                                              : VXD_NET_NONE,
                                  .add = VXD_NET_NONE,
                                  .eps = (float)layer->eps};
    for (int i = 0; i < layer->n_inputs; i++) {
        out->inputs[i] = reader->nodes[layer->inputs[i]].layer;
    }
    for (int i = 0; i < 3; i++) {
        out->kernel[i] = layer->kernel[i];
        out->stride[i] = layer->stride[i];
        out->padding[i] = layer->padding[i];
        out->dilation[i] = layer->dilation[i];
        out->output_padding[i] = layer->output_padding[i];
    }
    if (layer->kind == VXD_LAYER_BN) {
        out->n_channels = reader->nodes[layer->inputs[0]].n_channels;
        out->eps = (float)layer->bn.eps;
        out->whole_batch = layer->bn.batch;
    }
    if (!is_separate(layer)) {
        out->act = layer->act;
        out->alpha = (float)layer->alpha;
        if (layer->add != VXD_NET_NONE) {
            out->add = reader->nodes[layer->add].layer;
        }
    }
    if (layer->kind == VXD_LAYER_PRUNE) {
        out->alpha = (float)layer->threshold;
    } else if (layer->kind == VXD_LAYER_ATTENTION) {
        out->alpha = (float)layer->scale;
    }
}

static enum vxd_status check_residual(const struct vxd_model_reader *reader,
                                      const struct vxd_layer_config *layer,
                                      const struct vxd_node *result)
{
    const struct vxd_node *node;
    char path[VXD_JSON_PATH_BYTES];

    if (layer->add == VXD_NET_NONE) {
        return VXD_OK;
    }
    node = &reader->nodes[layer->add];
    vxd_layer_path(path, layer->name, "add");
    if (node->set != result->set || node->n_tokens != result->n_tokens) {
        return vxd_json_fail(&reader->json, path,
                             "\"%s\": \"%s\" has other voxels than the layer's result",
                             path, node->name);
    }
    return node->n_channels == result->n_channels
               ? VXD_OK
               : fail_input(reader, layer, "add", node, result->n_channels);
}

static void note_layer(struct vxd_model_reader *reader,
                       const struct vxd_layer_config *layer, int n_out,
                       size_t n_parameters)
{
    struct vxd_model *model = reader->model;
    struct vxd_model_layer *to = &model->layers[model->n_layers++];

    memcpy(to->name, layer->name, sizeof layer->name);
    to->op = vxd_layer_kind_names[layer->kind];
    to->n_in = reader->nodes[layer->inputs[0]].n_channels;
    to->n_out = n_out;
    to->n_parameters = n_parameters;
}

enum vxd_status vxd_model_add_layer(struct vxd_model_reader *reader,
                                    struct vxd_layer_config *layer)
{
    const size_t n_before = reader->tensors.n_parameters;
    const struct vxd_node_map *of_map;
    struct vxd_node result = {0};
    struct vxd_net_layer engine;
    struct layer_arrays layer_arrays = {0};
    double p = layer->p;
    enum vxd_status status;

    VXD_TRY(count_channels(reader, layer, &result.n_channels));
    VXD_TRY(vxd_model_place_layer(reader, layer, &result, &of_map));
    VXD_TRY(check_residual(reader, layer, &result));
    if (of_map != NULL) {
        memcpy(layer->kernel, of_map->geometry.kernel, sizeof layer->kernel);
    }
    VXD_TRY(read_arrays(reader, layer, reader->nodes[layer->inputs[0]].n_channels,
                        &layer_arrays));
    VXD_TRY(read_p(reader, layer, &p));
    describe(reader, layer, of_map, &engine);
    if (layer->kind == VXD_LAYER_GLOBAL && layer->reduce == 2) {
        engine.alpha = (float)p;
    }
    engine.weights = layer_arrays.weights;
    engine.n_weights = layer_arrays.n_weights;
    engine.scale = layer_arrays.scale;
    engine.bias = layer_arrays.bias;
    VXD_TRY(add_to_engine(reader, &engine, layer->name, "", &result.layer));
    if (is_separate(layer)) {
        VXD_TRY(add_separate_norm(reader, layer, &result.layer));
    }
    note_layer(reader, layer, result.n_channels, reader->tensors.n_parameters - n_before);
    memcpy(result.name, layer->name, sizeof result.name);
    reader->nodes[reader->n_nodes++] = result;
out:
    layer_arrays_free(&layer_arrays);
    return status;
}
