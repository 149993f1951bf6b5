// SPDX-License-Identifier: Apache-2.0
/* Reads one item of "layers" into a vxd_layer_config: the defaults, and the keys that are
 * required. */
#include <string.h>

#include "server/model/model_internal.h"

/* In the order of enum vxd_layer_kind. */
const char *const vxd_layer_kind_names[VXD_N_LAYER_KINDS + 1] = {
    "subm",      "conv",  "inverse",   "transpose", "linear", "pool", "unpool",
    "global",    "add",   "add_union", "cat",       "bn",     "act",  "softmax",
    "embedding", "prune", "l2norm",    "attention", "tokens", NULL,
};

void vxd_layer_path(char out[VXD_JSON_PATH_BYTES], const char *layer, const char *key)
{
    (void)snprintf(out, VXD_JSON_PATH_BYTES, "layers[%s]%s%s", layer,
                   key != NULL ? "." : "", key != NULL ? key : "");
}

/* The least and the greatest number of inputs. */
static const struct {
    int low;
    int high;
} arity[VXD_N_LAYER_KINDS] = {
    [VXD_LAYER_SUBM] = {1, 1},
    [VXD_LAYER_CONV] = {1, 1},
    [VXD_LAYER_INVERSE] = {1, 1},
    [VXD_LAYER_TRANSPOSE] = {1, 1},
    [VXD_LAYER_LINEAR] = {1, 1},
    [VXD_LAYER_POOL] = {1, 1},
    [VXD_LAYER_UNPOOL] = {1, 1},
    [VXD_LAYER_GLOBAL] = {1, 1},
    [VXD_LAYER_ADD] = {2, VXD_NET_MAX_INPUTS},
    [VXD_LAYER_ADD_UNION] = {2, 2},
    [VXD_LAYER_CAT] = {2, VXD_NET_MAX_INPUTS},
    [VXD_LAYER_BN] = {1, 1},
    [VXD_LAYER_ACT] = {1, 1},
    [VXD_LAYER_SOFTMAX] = {1, 1},
    [VXD_LAYER_EMBEDDING] = {1, 1},
    [VXD_LAYER_PRUNE] = {2, 2},
    [VXD_LAYER_L2NORM] = {1, 1},
    [VXD_LAYER_ATTENTION] = {3, 3},
    [VXD_LAYER_TOKENS] = {2, 2},
};

static enum vxd_status read_head(struct vxd_model_reader *reader, size_t i,
                                 const json_t *value, struct vxd_layer_config *out)
{
    const struct vxd_json *json = &reader->json;
    const json_t *name = json_object_get(value, "name");
    const json_t *op = json_object_get(value, "op");
    char path[VXD_JSON_PATH_BYTES];
    enum vxd_status status;
    int kind = 0;

    (void)snprintf(path, sizeof path, "layers[%zu]", i);
    if (!json_is_object(value)) {
        return vxd_json_fail_type(json, path, "an object", value);
    }
    if (name == NULL || op == NULL) {
        return vxd_json_fail(json, path, "\"%s\" has no \"%s\"", path,
                             name == NULL ? "name" : "op");
    }
    (void)snprintf(path, sizeof path, "layers[%zu].name", i);
    VXD_TRY(vxd_read_label(json, path, name, out->name, sizeof out->name));
    for (int k = 0; k < reader->n_nodes; k++) {
        if (strcmp(reader->nodes[k].name, out->name) == 0) {
            return vxd_json_fail(json, path, "\"%s\" is a second \"%s\"", path,
                                 out->name);
        }
    }
    vxd_layer_path(path, out->name, "op");
    VXD_TRY(vxd_json_choice(json, path, op, vxd_layer_kind_names, &kind));
    out->kind = (enum vxd_layer_kind)kind;
out:
    return status;
}

/* Sets the defaults of a layer before its keys are read. */
static void begin_layer(const struct vxd_model_reader *reader,
                        struct vxd_layer_config *out)
{
    enum vxd_layer_kind kind = out->kind;
    bool is_conv = (VXD_OPS_CONV >> kind & 1U) != 0;

    for (int i = 0; i < 3; i++) {
        out->stride[i] = kind == VXD_LAYER_POOL ? 0 : 1;
        out->dilation[i] = 1;
    }
    if ((VXD_OPS_TAPS >> kind & 1U) != 0 && kind != VXD_LAYER_INVERSE) {
        memcpy(out->kernel, reader->defaults.kernel, sizeof out->kernel);
    }
    if (is_conv) {
        out->bias = reader->defaults.bias;
        out->bn = reader->defaults.bn;
        out->act = reader->defaults.act;
        out->alpha = reader->defaults.alpha;
    }
    if (kind == VXD_LAYER_BN) {
        out->bn = (struct vxd_layer_bn){.used = true, .eps = 1e-5};
    }
    out->inputs[0] = reader->n_nodes - 1;
    out->n_inputs = 1;
    out->semantics = reader->semantics;
    out->layout = reader->layout;
    out->onto = VXD_NET_NONE;
    out->add = VXD_NET_NONE;
    out->reduce = -1;
    out->p = 3;
    out->eps = kind == VXD_LAYER_L2NORM ? 1e-12 : 1e-6; /* torch's, MinkLoc3D's */
    out->scale = 1;
}

static enum vxd_status require(const struct vxd_model_reader *reader,
                               const struct vxd_layer_config *layer, bool is_there,
                               const char *key)
{
    char path[VXD_JSON_PATH_BYTES];

    if (is_there) {
        return VXD_OK;
    }
    vxd_layer_path(path, layer->name, key);
    return vxd_json_fail(&reader->json, path, "\"%s\" is missing", path);
}

static enum vxd_status check_layer(const struct vxd_model_reader *reader,
                                   struct vxd_layer_config *layer, const json_t *value)
{
    enum vxd_layer_kind kind = layer->kind;
    char path[VXD_JSON_PATH_BYTES];
    enum vxd_status status;

    if (layer->n_inputs < arity[kind].low || layer->n_inputs > arity[kind].high) {
        vxd_layer_path(path, layer->name, "in");
        return vxd_json_fail(&reader->json, path,
                             "op \"%s\" takes %d to %d inputs, not %d",
                             vxd_layer_kind_names[kind], arity[kind].low,
                             arity[kind].high, layer->n_inputs);
    }
    VXD_TRY(require(reader, layer,
                    ((VXD_OPS_CONV | VXD_OPS_OF(EMBEDDING)) >> kind & 1U) == 0 ||
                        layer->n_channels > 0,
                    "ch"));
    VXD_TRY(require(reader, layer,
                    ((VXD_OPS_TAPS | VXD_OPS_OF(POOL)) >> kind & 1U) == 0 ||
                        kind == VXD_LAYER_INVERSE || layer->kernel[0] > 0,
                    "kernel"));
    VXD_TRY(require(reader, layer,
                    ((VXD_OPS_OF(INVERSE) | VXD_OPS_OF(UNPOOL)) >> kind & 1U) == 0 ||
                        layer->of_map[0] != '\0',
                    "of_map"));
    VXD_TRY(require(reader, layer,
                    ((VXD_OPS_OF(POOL) | VXD_OPS_OF(GLOBAL)) >> kind & 1U) == 0 ||
                        layer->reduce >= 0,
                    "kind"));
    VXD_TRY(
        require(reader, layer, kind != VXD_LAYER_EMBEDDING || layer->n_rows > 0, "rows"));
    VXD_TRY(require(reader, layer, kind != VXD_LAYER_BN || layer->bn.used, "bn"));
    VXD_TRY(require(reader, layer, kind != VXD_LAYER_ACT || layer->act != VXD_ACT_NONE,
                    "act"));
    if (layer->semantics == VXD_NET_MINKOWSKI &&
        json_object_get(value, "padding") != NULL) {
        vxd_layer_path(path, layer->name, "padding");
        return vxd_json_fail(&reader->json, path,
                             "\"%s\": minkowski's kernels are centred and take none",
                             path);
    }
    for (int i = 0; i < 3; i++) { /* a pool's stride is its kernel unless it is given */
        layer->stride[i] = layer->stride[i] == 0 ? layer->kernel[i] : layer->stride[i];
    }
out:
    return status;
}

enum vxd_status vxd_model_read_layer(struct vxd_model_reader *reader, size_t i,
                                     const json_t *value, struct vxd_layer_config *out)
{
    enum vxd_status status;

    memset(out, 0, sizeof *out);
    VXD_TRY(read_head(reader, i, value, out));
    begin_layer(reader, out);
    VXD_TRY(vxd_model_read_keys(reader, value, out));
    VXD_TRY(check_layer(reader, out, value));
out:
    return status;
}
