// SPDX-License-Identifier: Apache-2.0
/* Reads the keys of a layer: how each is read, and which op takes which. */
#include <string.h>

#include "server/model/model_internal.h"

enum {
    MAX_ROWS = 1 << 20 /* of an embedding */
};

/* What the readers of a layer's keys share. */
struct reading {
    struct vxd_model_reader *reader;
    struct vxd_layer_config *layer;
};

enum vxd_status vxd_read_label(const struct vxd_json *json, const char *path,
                               const json_t *value, char *out, size_t n_bytes)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_./:-";
    enum vxd_status status = vxd_json_text(json, path, value, out, n_bytes);

    if (status == VXD_OK && out[strspn(out, allowed)] != '\0') {
        return vxd_json_fail(json, path,
                             "\"%s\" may have letters, digits and _ . / : - only", path);
    }
    return status;
}

enum vxd_status vxd_read_node(const struct vxd_model_reader *reader, const char *path,
                              const json_t *value, int *out)
{
    const char *name = json_string_value(value);

    if (name == NULL) {
        return vxd_json_fail_type(&reader->json, path, "the name of a layer", value);
    }
    for (int i = 0; i < reader->n_nodes; i++) {
        if (strcmp(reader->nodes[i].name, name) == 0) {
            *out = i;
            return VXD_OK;
        }
    }
    return vxd_json_fail(&reader->json, path,
                         "\"%s\": no layer before this one is named \"%.48s\"", path,
                         name);
}

static enum vxd_status read_vector(const struct reading *reading, const char *path,
                                   const json_t *value, int low, int high, int out[3])
{
    const int *axes = reading->reader->axes;
    int given[3];
    enum vxd_status status =
        vxd_json_ints3(&reading->reader->json, path, value, low, high, given);

    for (int i = 0; status == VXD_OK && i < 3; i++) {
        out[axes[i]] = given[i];
    }
    return status;
}

/* --- the keys ---------------------------------------------------------------------------- */

#define READER(name)                                                                     \
    static enum vxd_status name(const struct vxd_json *json, const char *path,           \
                                const json_t *value, void *to)

READER(skip)
{
    (void)json;
    (void)path;
    (void)value;
    (void)to; /* was read before the others */
    return VXD_OK;
}

READER(read_inputs)
{
    const struct reading *reading = to;
    struct vxd_layer_config *layer = reading->layer;
    size_t n = json_array_size(value);

    if (!json_is_array(value)) {
        layer->n_inputs = 1;
        return vxd_read_node(reading->reader, path, value, &layer->inputs[0]);
    }
    if (n < 1 || n > VXD_NET_MAX_INPUTS) {
        return vxd_json_fail(json, path, "\"%s\" has %zu items, it must have 1 to %d",
                             path, n, VXD_NET_MAX_INPUTS);
    }
    for (size_t i = 0; i < n; i++) {
        enum vxd_status status = vxd_read_node(
            reading->reader, path, json_array_get(value, i), &layer->inputs[i]);

        if (status != VXD_OK) {
            return status;
        }
    }
    layer->n_inputs = (int)n;
    return VXD_OK;
}

READER(read_channels)
{
    const struct reading *reading = to;

    return vxd_json_int(json, path, value, 1, VXD_NET_MAX_CHANNELS,
                        &reading->layer->n_channels);
}

READER(read_kernel)
{
    const struct reading *reading = to;

    (void)json;
    return read_vector(reading, path, value, 1, VXD_SPARSE_MAX_KERNEL,
                       reading->layer->kernel);
}

READER(read_stride)
{
    const struct reading *reading = to;

    (void)json;
    return read_vector(reading, path, value, 1, VXD_SPARSE_MAX_STRIDE,
                       reading->layer->stride);
}

READER(read_padding)
{
    const struct reading *reading = to;

    (void)json;
    return read_vector(reading, path, value, 0, VXD_SPARSE_MAX_PADDING,
                       reading->layer->padding);
}

READER(read_dilation)
{
    const struct reading *reading = to;

    (void)json;
    return read_vector(reading, path, value, 1, VXD_SPARSE_MAX_DILATION,
                       reading->layer->dilation);
}

READER(read_output_padding)
{
    const struct reading *reading = to;

    (void)json;
    return read_vector(reading, path, value, 0, VXD_SPARSE_MAX_PADDING,
                       reading->layer->output_padding);
}

READER(read_semantics)
{
    static const char *const names[] = {"spconv", "minkowski", NULL};
    const struct reading *reading = to;
    int choice = 0;
    enum vxd_status status = vxd_json_choice(json, path, value, names, &choice);

    reading->layer->semantics = (enum vxd_net_semantics)choice;
    return status;
}

READER(read_map)
{
    const struct reading *reading = to;

    return vxd_read_label(json, path, value, reading->layer->map,
                          sizeof reading->layer->map);
}

READER(read_of_map)
{
    const struct reading *reading = to;

    return vxd_read_label(json, path, value, reading->layer->of_map,
                          sizeof reading->layer->of_map);
}

READER(read_onto)
{
    const struct reading *reading = to;

    (void)json;
    return vxd_read_node(reading->reader, path, value, &reading->layer->onto);
}

READER(read_add)
{
    const struct reading *reading = to;

    (void)json;
    return vxd_read_node(reading->reader, path, value, &reading->layer->add);
}

READER(read_bias)
{
    const struct reading *reading = to;

    return vxd_json_bool(json, path, value, &reading->layer->bias);
}

READER(read_bn_eps)
{
    struct vxd_layer_bn *bn = to;

    return vxd_json_number(json, path, value, 0, 1, &bn->eps);
}

READER(read_bn_stats)
{
    static const char *const names[] = {"running", "batch", "sample", NULL};
    struct vxd_layer_bn *bn = to;
    int choice = 0;
    enum vxd_status status = vxd_json_choice(json, path, value, names, &choice);

    bn->batch = choice == 1;
    bn->sample = choice == 2;
    return status;
}

READER(read_bn)
{
    static const struct vxd_json_key keys[] = {
        {"eps", read_bn_eps},
        {"stats", read_bn_stats},
    };
    const struct reading *reading = to;
    struct vxd_layer_bn *bn = &reading->layer->bn;

    *bn = (struct vxd_layer_bn){.used = !json_is_null(value), .eps = 1e-5};
    if (json_is_null(value)) {
        return VXD_OK;
    }
    return vxd_json_object(json, path, value, keys, sizeof keys / sizeof keys[0], bn);
}

/* In the order of enum vxd_net_act. */
static const char *const act_names[] = {"none", "relu",    "leaky_relu",
                                        "gelu", "sigmoid", NULL};

READER(read_act_type)
{
    struct vxd_layer_config *layer = to;
    int choice = 0;
    enum vxd_status status = vxd_json_choice(json, path, value, act_names, &choice);

    layer->act = (enum vxd_net_act)choice;
    return status;
}

READER(read_act_alpha)
{
    struct vxd_layer_config *layer = to;

    return vxd_json_number(json, path, value, -1e6, 1e6, &layer->alpha);
}

READER(read_act)
{
    static const struct vxd_json_key keys[] = {
        {"type", read_act_type},
        {"alpha", read_act_alpha},
    };
    const struct reading *reading = to;

    reading->layer->act = VXD_ACT_NONE;
    reading->layer->alpha = 0.01; /* torch's slope */
    if (json_is_null(value)) {
        return VXD_OK;
    }
    return json_is_string(value)
               ? read_act_type(json, path, value, reading->layer)
               : vxd_json_object(json, path, value, keys, sizeof keys / sizeof keys[0],
                                 reading->layer);
}

READER(read_kind)
{
    static const char *const pools[] = {"max", "avg", "sum", NULL};
    static const char *const globals[] = {"max", "avg", "gem", NULL};
    const struct reading *reading = to;

    return vxd_json_choice(json, path, value,
                           reading->layer->kind == VXD_LAYER_POOL ? pools : globals,
                           &reading->layer->reduce);
}

READER(read_p)
{
    const struct reading *reading = to;

    return vxd_json_number(json, path, value, 0.01, 100, &reading->layer->p);
}

READER(read_eps)
{
    const struct reading *reading = to;

    return vxd_json_number(json, path, value, 1e-30, 1, &reading->layer->eps);
}

READER(read_scale)
{
    const struct reading *reading = to;

    return vxd_json_number(json, path, value, -1e6, 1e6, &reading->layer->scale);
}

READER(read_threshold)
{
    const struct reading *reading = to;

    return vxd_json_number(json, path, value, -1e30, 1e30, &reading->layer->threshold);
}

READER(read_rows)
{
    const struct reading *reading = to;

    return vxd_json_int(json, path, value, 1, MAX_ROWS, &reading->layer->n_rows);
}

READER(read_layout)
{
    /* In the order of enum vxd_weight_layout. */
    static const char *const names[] = {"krsc",  "rsck", "me", "torchsparse",
                                        "torch", "kio",  NULL};
    const struct reading *reading = to;
    int choice = 0;
    enum vxd_status status = vxd_json_choice(json, path, value, names, &choice);

    reading->layer->layout = (enum vxd_weight_layout)choice;
    return status;
}

READER(read_w)
{
    const struct reading *reading = to;

    return vxd_read_label(json, path, value, reading->layer->w, sizeof reading->layer->w);
}

READER(read_bn_w)
{
    const struct reading *reading = to;

    return vxd_read_label(json, path, value, reading->layer->bn_w,
                          sizeof reading->layer->bn_w);
}

READER(read_p_w)
{
    const struct reading *reading = to;

    return vxd_read_label(json, path, value, reading->layer->p_w,
                          sizeof reading->layer->p_w);
}

/* --- which op takes which ---------------------------------------------------------------- */

static const struct vxd_json_key keys[] = {
    {"name", skip},
    {"op", skip},
    {"in", read_inputs},
    {"ch", read_channels},
    {"kernel", read_kernel},
    {"stride", read_stride},
    {"padding", read_padding},
    {"dilation", read_dilation},
    {"output_padding", read_output_padding},
    {"semantics", read_semantics},
    {"map", read_map},
    {"of_map", read_of_map},
    {"onto", read_onto},
    {"add", read_add},
    {"bias", read_bias},
    {"bn", read_bn},
    {"act", read_act},
    {"kind", read_kind},
    {"p", read_p},
    {"p_w", read_p_w},
    {"eps", read_eps},
    {"scale", read_scale},
    {"threshold", read_threshold},
    {"rows", read_rows},
    {"layout", read_layout},
    {"w", read_w},
    {"bn_w", read_bn_w},
};

/* The ops that take each key of the table above, in its order. */
static const unsigned takers[] = {
    VXD_OPS_ALL,
    VXD_OPS_ALL,
    VXD_OPS_ALL,
    VXD_OPS_CONV | VXD_OPS_OF(EMBEDDING),
    VXD_OPS_TAPS | VXD_OPS_OF(POOL),
    VXD_OPS_OF(CONV) | VXD_OPS_OF(TRANSPOSE) | VXD_OPS_OF(POOL),
    VXD_OPS_OF(CONV) | VXD_OPS_OF(TRANSPOSE) | VXD_OPS_OF(POOL),
    VXD_OPS_OF(SUBM) | VXD_OPS_OF(CONV) | VXD_OPS_OF(TRANSPOSE) | VXD_OPS_OF(POOL),
    VXD_OPS_OF(TRANSPOSE),
    VXD_OPS_OF(SUBM) | VXD_OPS_OF(CONV) | VXD_OPS_OF(TRANSPOSE) | VXD_OPS_OF(POOL),
    VXD_OPS_OF(SUBM) | VXD_OPS_OF(CONV) | VXD_OPS_OF(POOL),
    VXD_OPS_OF(INVERSE) | VXD_OPS_OF(UNPOOL),
    VXD_OPS_OF(TRANSPOSE),
    VXD_OPS_CONV,
    VXD_OPS_CONV,
    VXD_OPS_CONV | VXD_OPS_OF(BN),
    VXD_OPS_CONV | VXD_OPS_OF(ADD) | VXD_OPS_OF(ADD_UNION) | VXD_OPS_OF(BN) |
        VXD_OPS_OF(ACT),
    VXD_OPS_OF(POOL) | VXD_OPS_OF(GLOBAL),
    VXD_OPS_OF(GLOBAL),
    VXD_OPS_OF(GLOBAL),
    VXD_OPS_OF(GLOBAL) | VXD_OPS_OF(L2NORM),
    VXD_OPS_OF(ATTENTION),
    VXD_OPS_OF(PRUNE),
    VXD_OPS_OF(EMBEDDING),
    VXD_OPS_CONV,
    VXD_OPS_CONV | VXD_OPS_OF(EMBEDDING),
    VXD_OPS_CONV | VXD_OPS_OF(BN),
};

static enum vxd_status check_keys(const struct vxd_model_reader *reader,
                                  const struct vxd_layer_config *layer,
                                  const json_t *value)
{
    char path[VXD_JSON_PATH_BYTES];

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if ((takers[i] >> layer->kind & 1U) == 0 &&
            json_object_get(value, keys[i].name) != NULL) {
            vxd_layer_path(path, layer->name, keys[i].name);
            return vxd_json_fail(&reader->json, path, "\"%s\": op \"%s\" takes no \"%s\"",
                                 path, vxd_layer_kind_names[layer->kind], keys[i].name);
        }
    }
    return VXD_OK;
}

enum vxd_status vxd_model_read_keys(struct vxd_model_reader *reader, const json_t *value,
                                    struct vxd_layer_config *layer)
{
    struct reading reading = {.reader = reader, .layer = layer};
    char path[VXD_JSON_PATH_BYTES];
    enum vxd_status status;

    VXD_TRY(check_keys(reader, layer, value));
    vxd_layer_path(path, layer->name, NULL);
    VXD_TRY(vxd_json_object(&reader->json, path, value, keys,
                            sizeof keys / sizeof keys[0], &reading));
out:
    return status;
}

enum vxd_status vxd_model_read_defaults(struct vxd_model_reader *reader,
                                        const json_t *value)
{
    static const struct vxd_json_key default_keys[] = {
        {"kernel", read_kernel},
        {"bias", read_bias},
        {"bn", read_bn},
        {"act", read_act},
    };
    struct reading reading = {.reader = reader, .layer = &reader->defaults};

    return vxd_json_object(&reader->json, "defaults", value, default_keys,
                           sizeof default_keys / sizeof default_keys[0], &reading);
}
