// SPDX-License-Identifier: Apache-2.0
/* Reads "outputs": which layers make the reply, and in which form. */
#include <stdlib.h>
#include <string.h>

#include "server/model/model_internal.h"

/* What the readers of an output's keys share. */
struct reading {
    const struct vxd_model_reader *reader;
    struct vxd_model_output *output;
    int node; /* -1 = not said */
    bool has_as;
    bool l2norm;
    const json_t *fill;
    const json_t *labels;
    const char *dense_key; /* a key that only "dense" takes */
    bool has_l2norm;
};

#define READER(name)                                                                     \
    static enum vxd_status name(const struct vxd_json *json, const char *path,           \
                                const json_t *value, void *to)

READER(read_name)
{
    struct reading *reading = to;

    return vxd_read_label(json, path, value, reading->output->name, VXD_LAYER_NAME_BYTES);
}

READER(read_from)
{
    struct reading *reading = to;

    (void)json;
    return vxd_read_node(reading->reader, path, value, &reading->node);
}

READER(read_as)
{
    static const char *const names[] = {"voxels", "points", "dense", "vector", NULL};
    struct reading *reading = to;
    int choice = 0;
    enum vxd_status status = vxd_json_choice(json, path, value, names, &choice);

    reading->output->kind = (enum vxd_model_output_kind)choice;
    reading->has_as = true;
    return status;
}

READER(read_argmax)
{
    struct reading *reading = to;

    return vxd_json_bool(json, path, value, &reading->output->argmax);
}

READER(read_fill)
{
    struct reading *reading = to;

    if (!json_is_number(value)) {
        return vxd_json_fail_type(json, path, "a number", value);
    }
    reading->fill = value;
    return VXD_OK;
}

READER(read_labels)
{
    struct reading *reading = to;

    if (!json_is_array(value)) {
        return vxd_json_fail_type(json, path, "an array", value);
    }
    reading->labels = value;
    return VXD_OK;
}

READER(read_fold)
{
    static const char *const names[] = {"z", NULL};
    struct reading *reading = to;
    int choice;

    reading->dense_key = "fold";
    return vxd_json_choice(json, path, value, names, &choice);
}

READER(read_dense_layout)
{
    static const char *const names[] = {"nchw", NULL};
    struct reading *reading = to;
    int choice;

    reading->dense_key = "layout";
    return vxd_json_choice(json, path, value, names, &choice);
}

READER(read_l2norm)
{
    struct reading *reading = to;

    reading->has_l2norm = true;
    return vxd_json_bool(json, path, value, &reading->l2norm);
}

static enum vxd_status fail_output(const struct reading *reading, const char *key,
                                   const char *text)
{
    char path[VXD_JSON_PATH_BYTES];

    (void)snprintf(path, sizeof path, "outputs[%s]%s%s", reading->output->name,
                   key != NULL ? "." : "", key != NULL ? key : "");
    return vxd_json_fail(&reading->reader->json, path, "\"%s\" %s", path, text);
}

static enum vxd_status check_keys(const struct reading *reading)
{
    const struct vxd_model_output *output = reading->output;

    if (!reading->has_as || reading->node < 0) {
        return fail_output(reading, reading->has_as ? "from" : "as", "is missing");
    }
    if (output->argmax && output->kind != VXD_MODEL_VOXELS &&
        output->kind != VXD_MODEL_POINTS) {
        return fail_output(reading, "argmax", "needs \"as\" voxels or points");
    }
    if (reading->fill != NULL && output->kind != VXD_MODEL_POINTS) {
        return fail_output(reading, "fill", "needs \"as\" points");
    }
    if (reading->labels != NULL && !output->argmax) {
        return fail_output(reading, "labels", "needs \"argmax\"");
    }
    if (reading->dense_key != NULL && output->kind != VXD_MODEL_DENSE) {
        return fail_output(reading, reading->dense_key, "needs \"as\" dense");
    }
    if (reading->has_l2norm && output->kind != VXD_MODEL_VECTOR) {
        return fail_output(reading, "l2norm", "needs \"as\" vector");
    }
    return VXD_OK;
}

/* Checks that the layer's rows can be sent in that form. */
static enum vxd_status check_rows(const struct reading *reading)
{
    const struct vxd_model_reader *reader = reading->reader;
    const struct vxd_node *node = &reader->nodes[reading->node];
    const struct vxd_node_set *set = &reader->sets[node->set >= 0 ? node->set : 0];

    switch (reading->output->kind) {
    case VXD_MODEL_VECTOR:
        return node->set < 0 && node->n_tokens == 1
                   ? VXD_OK
                   : fail_output(reading, "from",
                                 "must have one row a sample, as the op "
                                 "\"global\" makes it");
    case VXD_MODEL_POINTS:
        return node->set == 0
                   ? VXD_OK
                   : fail_output(reading, "from",
                                 "must have the input's voxels, which points belong to");
    case VXD_MODEL_DENSE:
        return node->set >= 0 && set->shape[0] > 0 && set->shape[1] > 0 &&
                       set->shape[2] > 0
                   ? VXD_OK
                   : fail_output(reading, "from",
                                 "must be bounded on every axis: \"input.bounded\" and "
                                 "spconv's semantics all the way");
    case VXD_MODEL_VOXELS:
        break;
    }
    return node->set >= 0 ? VXD_OK
                          : fail_output(reading, "from", "must have voxels, not tokens");
}

static enum vxd_status take_fill(const struct reading *reading)
{
    struct vxd_model_output *output = reading->output;
    char path[VXD_JSON_PATH_BYTES];
    double fill = 0;
    enum vxd_status status;

    output->fill_label = -1;
    if (reading->fill == NULL) {
        return VXD_OK;
    }
    (void)snprintf(path, sizeof path, "outputs[%s].fill", output->name);
    if (output->argmax) {
        int label = 0;

        status = vxd_json_int(&reading->reader->json, path, reading->fill, INT32_MIN,
                              INT32_MAX, &label);
        output->fill_label = label;
        return status;
    }
    status =
        vxd_json_number(&reading->reader->json, path, reading->fill, -1e30, 1e30, &fill);
    output->fill = (float)fill;
    return status;
}

/* Copies the names into one block, behind the pointers to them. */
static enum vxd_status take_labels(const struct reading *reading, char ***out)
{
    const struct vxd_json *json = &reading->reader->json;
    size_t n = json_array_size(reading->labels);
    char path[VXD_JSON_PATH_BYTES];
    char *names;

    *out = NULL;
    if (reading->labels == NULL) {
        return VXD_OK;
    }
    if (n != (size_t)reading->output->n_channels || n > VXD_MODEL_MAX_LABELS) {
        return fail_output(
            reading, "labels",
            "must have a name for each channel of the layer, at most 1024");
    }
    *out = malloc(n * (sizeof(char *) + VXD_MODEL_NAME_BYTES));
    if (*out == NULL) {
        return vxd_json_no_memory(json);
    }
    names = (char *)(*out + n);
    for (size_t i = 0; i < n; i++) {
        enum vxd_status status;

        (void)snprintf(path, sizeof path, "outputs[%.48s].labels[%zu]",
                       reading->output->name, i);
        (*out)[i] = names + i * VXD_MODEL_NAME_BYTES;
        status = vxd_json_text(json, path, json_array_get(reading->labels, i), (*out)[i],
                               VXD_MODEL_NAME_BYTES);
        if (status != VXD_OK) {
            return status; /* the model owns the block */
        }
    }
    reading->output->label_names = (const char *const *)*out;
    reading->output->n_labels = (int)n;
    return VXD_OK;
}

static enum vxd_status add_to_engine(struct vxd_model_reader *reader,
                                     struct reading *reading)
{
    struct vxd_model_output *output = reading->output;
    struct vxd_net_output engine = {.kind = VXD_NET_OUT_ROWS,
                                    .layer = reader->nodes[reading->node].layer};
    enum vxd_status status = VXD_OK;

    output->engine_output = (int)(output - reader->model->outputs);
    memcpy(engine.name, output->name, sizeof engine.name);
    if (reading->l2norm) {
        struct vxd_net_layer norm = {.op = VXD_NET_L2_NORM,
                                     .inputs = {engine.layer},
                                     .n_inputs = 1,
                                     .eps = 1e-12F,
                                     .of_map = VXD_NET_NONE,
                                     .onto = VXD_NET_NONE,
                                     .add = VXD_NET_NONE};

        /* No layer's name in a config begins with '@'. */
        (void)snprintf(norm.name, sizeof norm.name, "@l2norm.%.48s", output->name);
        engine.layer = reader->n_layers++;
        if (!vxd_model_lists_only(reader)) {
            VXD_TRY(vxd_net_builder_add(reader->model->builder, &norm, &engine.layer,
                                        reader->err));
        }
    }
    if (output->argmax) {
        engine.kind = VXD_NET_OUT_ARGMAX;
    } else if (output->kind == VXD_MODEL_DENSE) {
        engine.kind = VXD_NET_OUT_DENSE_BEV;
    }
    if (!vxd_model_lists_only(reader)) {
        VXD_TRY(vxd_net_builder_output(reader->model->builder, &engine, reader->err));
    }
out:
    return status;
}

static enum vxd_status read_output(struct vxd_model_reader *reader, size_t i,
                                   const json_t *value)
{
    static const struct vxd_json_key keys[] = {
        {"name", read_name},     {"from", read_from},           {"as", read_as},
        {"argmax", read_argmax}, {"fill", read_fill},           {"labels", read_labels},
        {"fold", read_fold},     {"layout", read_dense_layout}, {"l2norm", read_l2norm},
    };
    struct vxd_model *model = reader->model;
    struct vxd_model_output *output = &model->outputs[i];
    struct reading reading = {.reader = reader, .output = output, .node = -1};
    const struct vxd_node *node;
    char path[VXD_JSON_PATH_BYTES];
    enum vxd_status status;

    (void)snprintf(path, sizeof path, "outputs[%zu]", i);
    VXD_TRY(vxd_json_object(&reader->json, path, value, keys,
                            sizeof keys / sizeof keys[0], &reading));
    if (output->name[0] == '\0') {
        return vxd_json_fail(&reader->json, path, "\"%s.name\" is missing", path);
    }
    for (size_t k = 0; k < i; k++) {
        if (strcmp(model->outputs[k].name, output->name) == 0) {
            return fail_output(&reading, "name", "is the name of another output too");
        }
    }
    VXD_TRY(check_keys(&reading));
    VXD_TRY(check_rows(&reading));
    node = &reader->nodes[reading.node];
    output->n_channels = node->n_channels;
    for (int k = 0; k < 3; k++) {
        output->stride[k] = node->set >= 0 ? reader->sets[node->set].stride[k] : 1;
    }
    VXD_TRY(take_fill(&reading));
    VXD_TRY(take_labels(&reading, &model->label_names[i]));
    VXD_TRY(add_to_engine(reader, &reading));
out:
    return status;
}

enum vxd_status vxd_model_read_outputs(struct vxd_model_reader *reader,
                                       const json_t *value)
{
    size_t n = json_array_size(value);

    if (!json_is_array(value)) {
        return vxd_json_fail_type(&reader->json, "outputs", "an array", value);
    }
    if (n < 1 || n > VXD_NET_MAX_OUTPUTS) {
        return vxd_json_fail(&reader->json, "outputs",
                             "\"outputs\" has %zu items, it must have 1 to %d", n,
                             VXD_NET_MAX_OUTPUTS);
    }
    for (size_t i = 0; i < n; i++) {
        enum vxd_status status = read_output(reader, i, json_array_get(value, i));

        if (status != VXD_OK) {
            return status;
        }
        reader->model->n_outputs++;
    }
    return VXD_OK;
}
