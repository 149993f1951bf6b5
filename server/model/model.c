// SPDX-License-Identifier: Apache-2.0
/* Makes a model from two files: the top level of the config comes first, then its
 * sections in the order in which they build on each other. */
#include "server/model/model.h"

#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

#include "server/model/model_internal.h"

#define FORMAT "voxeld-net/1"
#define WEIGHTS_ENDING ".safetensors"

/* The top-level values that are read in a fixed order, whatever their order in the file. */
struct top {
    struct vxd_model_reader *reader;
    bool has_format;
    const json_t *axes;
    const json_t *semantics;
    const json_t *weights;
    const json_t *input;
    const json_t *defaults;
    const json_t *layers;
    const json_t *outputs;
    char weights_file[VXD_MODEL_NAME_BYTES + sizeof WEIGHTS_ENDING];
};

#define READER(name)                                                                     \
    static enum vxd_status name(const struct vxd_json *json, const char *path,           \
                                const json_t *value, void *to)

READER(read_format)
{
    static const char *const names[] = {FORMAT, NULL};
    struct top *top = to;
    int choice;

    top->has_format = true;
    return vxd_json_choice(json, path, value, names, &choice);
}

READER(read_name)
{
    struct top *top = to;
    const char *expected = top->reader->model->name;
    char name[VXD_MODEL_NAME_BYTES];
    enum vxd_status status = vxd_json_text(json, path, value, name, sizeof name);

    if (status == VXD_OK && strcmp(name, expected) != 0) {
        return vxd_json_fail(json, path, "\"name\" is \"%s\", the file's is \"%s\"", name,
                             expected);
    }
    return status;
}

READER(read_description)
{
    (void)to;
    return json_is_string(value) ? VXD_OK
                                 : vxd_json_fail_type(json, path, "a string", value);
}

READER(read_precision)
{
    /* In the order of enum vxd_net_precision. */
    static const char *const names[] = {"fp32", "tf32", "fp16", "bf16", "auto", NULL};
    struct top *top = to;
    int choice = 0;
    enum vxd_status status = vxd_json_choice(json, path, value, names, &choice);

    top->reader->model->precision =
        choice < VXD_N_MODEL_PRECISIONS ? choice : VXD_MODEL_AUTO_PRECISION;
    return status;
}

#define KEEPER(member)                                                                   \
    READER(keep_##member)                                                                \
    {                                                                                    \
        (void)json;                                                                      \
        (void)path;                                                                      \
        ((struct top *)to)->member = value;                                              \
        return VXD_OK;                                                                   \
    }

KEEPER(axes)
KEEPER(semantics)
KEEPER(weights)
KEEPER(input)
KEEPER(defaults)
KEEPER(layers)
KEEPER(outputs)

static const struct vxd_json_key top_keys[] = {
    {"format", read_format},
    {"name", read_name},
    {"description", read_description},
    {"precision", read_precision},
    {"axes", keep_axes},
    {"semantics", keep_semantics},
    {"weights", keep_weights},
    {"input", keep_input},
    {"defaults", keep_defaults},
    {"layers", keep_layers},
    {"outputs", keep_outputs},
};

/* NAME.safetensors, with a name of the same form as the config's: no other directory. */
READER(read_weights_file)
{
    struct top *top = to;
    char name[VXD_MODEL_NAME_BYTES];
    const size_t n_ending = strlen(WEIGHTS_ENDING);
    enum vxd_status status =
        vxd_json_text(json, path, value, top->weights_file, sizeof top->weights_file);
    size_t n = strlen(top->weights_file);

    if (status != VXD_OK) {
        return status;
    }
    if (n > n_ending && n - n_ending < sizeof name &&
        strcmp(top->weights_file + n - n_ending, WEIGHTS_ENDING) == 0) {
        memcpy(name, top->weights_file, n - n_ending);
        name[n - n_ending] = '\0';
        if (vxd_model_name_ok(name)) {
            return VXD_OK;
        }
    }
    return vxd_json_fail(json, path,
                         "\"%s\" must be NAME.safetensors beside the config, NAME of a-z "
                         "0-9 . _ -, its first a letter or digit",
                         path);
}

READER(read_weights_layout)
{
    /* In the order of enum vxd_weight_layout. */
    static const char *const names[] = {"krsc",  "rsck", "me", "torchsparse",
                                        "torch", "kio",  NULL};
    struct top *top = to;
    int choice = 0;
    enum vxd_status status = vxd_json_choice(json, path, value, names, &choice);

    top->reader->layout = (enum vxd_weight_layout)choice;
    return status;
}

READER(read_weights_prefix)
{
    struct top *top = to;

    if (json_is_string(value) && json_string_length(value) == 0) {
        return VXD_OK;
    }
    return vxd_read_label(json, path, value, top->reader->prefix,
                          sizeof top->reader->prefix);
}

static enum vxd_status read_weights(struct top *top)
{
    static const struct vxd_json_key keys[] = {
        {"file", read_weights_file},
        {"layout", read_weights_layout},
        {"prefix", read_weights_prefix},
    };

    (void)snprintf(top->weights_file, sizeof top->weights_file, "%s%s",
                   top->reader->model->name, WEIGHTS_ENDING);
    return vxd_json_object(&top->reader->json, "weights", top->weights, keys,
                           sizeof keys / sizeof keys[0], top);
}

/* Reads the axes, for example ["z", "y", "x"]: each of the three once. */
static enum vxd_status read_axes(struct vxd_model_reader *reader, const json_t *value)
{
    static const char *const names[] = {"x", "y", "z", NULL};
    const struct vxd_json *json = &reader->json;
    unsigned seen = 0;

    if (!json_is_array(value) || json_array_size(value) != 3) {
        return vxd_json_fail(json, "axes",
                             "\"axes\" must be an array of three: x, y, z "
                             "in the order of the config's vectors");
    }
    for (size_t i = 0; i < 3; i++) {
        enum vxd_status status = vxd_json_choice(json, "axes", json_array_get(value, i),
                                                 names, &reader->axes[i]);

        if (status != VXD_OK) {
            return status;
        }
        seen |= 1U << reader->axes[i];
    }
    return seen == 7U
               ? VXD_OK
               : vxd_json_fail(json, "axes", "\"axes\" must have each of x, y, z once");
}

static enum vxd_status read_semantics(struct vxd_model_reader *reader,
                                      const json_t *value)
{
    static const char *const names[] = {"spconv", "minkowski", NULL};
    int choice = 0;
    enum vxd_status status =
        vxd_json_choice(&reader->json, "semantics", value, names, &choice);

    reader->semantics = (enum vxd_net_semantics)choice;
    return status;
}

static enum vxd_status read_layers(struct vxd_model_reader *reader, const json_t *value)
{
    struct vxd_layer_config layer;
    size_t n = json_array_size(value);

    if (!json_is_array(value)) {
        return vxd_json_fail_type(&reader->json, "layers", "an array", value);
    }
    if (n < 1 || n > VXD_NET_MAX_LAYERS) {
        return vxd_json_fail(&reader->json, "layers",
                             "\"layers\" has %zu items, it must have 1 to %d", n,
                             VXD_NET_MAX_LAYERS);
    }
    for (size_t i = 0; i < n; i++) {
        enum vxd_status status =
            vxd_model_read_layer(reader, i, json_array_get(value, i), &layer);

        if (status == VXD_OK) {
            status = vxd_model_add_layer(reader, &layer);
        }
        if (status != VXD_OK) {
            return status;
        }
    }
    return VXD_OK;
}

static enum vxd_status reserve_nodes(struct vxd_model_reader *reader)
{
    reader->nodes = calloc(VXD_NET_MAX_LAYERS + 1, sizeof reader->nodes[0]);
    reader->sets = calloc(VXD_NET_MAX_LAYERS + 1, sizeof reader->sets[0]);
    reader->maps = calloc(VXD_NET_MAX_LAYERS, sizeof reader->maps[0]);
    reader->model->layers = calloc(VXD_NET_MAX_LAYERS, sizeof reader->model->layers[0]);
    return reader->nodes != NULL && reader->sets != NULL && reader->maps != NULL &&
                   reader->model->layers != NULL
               ? VXD_OK
               : vxd_json_no_memory(&reader->json);
}

/* The input as node 0 and set 0. */
static enum vxd_status begin_nodes(struct vxd_model_reader *reader)
{
    const struct vxd_model_input *input = &reader->model->input;
    struct vxd_node *node = &reader->nodes[reader->n_nodes++];
    struct vxd_node_set *set = &reader->sets[reader->n_sets++];

    memcpy(node->name, "@in", sizeof "@in");
    node->layer = VXD_NET_INPUT;
    node->n_channels = input->n_features;
    set->from = -1;
    set->with = -1;
    for (int i = 0; i < 3; i++) {
        set->shape[i] = input->shape[i];
        set->stride[i] = 1;
    }
    return vxd_model_lists_only(reader)
               ? VXD_OK
               : vxd_net_builder_create(input->n_features, input->shape,
                                        &reader->model->builder, reader->err);
}

/* Reads the config's top level; the sections that it has are in *top. */
static enum vxd_status read_top(struct vxd_model_reader *reader, const char *text,
                                size_t n_text, struct top *top)
{
    static const struct {
        const char *name;
        size_t offset;
    } required[] = {
        {"axes", offsetof(struct top, axes)},
        {"semantics", offsetof(struct top, semantics)},
        {"weights", offsetof(struct top, weights)},
        {"input", offsetof(struct top, input)},
        {"layers", offsetof(struct top, layers)},
        {"outputs", offsetof(struct top, outputs)},
    };
    json_error_t error;
    enum vxd_status status;

    reader->root = json_loadb(text, n_text, JSON_REJECT_DUPLICATES, &error);
    if (reader->root == NULL) {
        return vxd_json_is_memory(&error)
                   ? vxd_json_no_memory(&reader->json)
                   : vxd_json_fail(&reader->json, NULL, "line %d, column %d: %.100s",
                                   error.line, error.column, error.text);
    }
    top->reader = reader;
    VXD_TRY(vxd_json_object(&reader->json, "", reader->root, top_keys,
                            sizeof top_keys / sizeof top_keys[0], top));
    if (!top->has_format) {
        return vxd_json_fail(&reader->json, "format", "\"format\" is missing: \"%s\"",
                             FORMAT);
    }
    for (size_t i = 0; i < sizeof required / sizeof required[0]; i++) {
        const json_t *value;

        memcpy(&value, (const char *)top + required[i].offset, sizeof(json_t *));
        if (value == NULL) {
            return vxd_json_fail(&reader->json, required[i].name, "\"%s\" is missing",
                                 required[i].name);
        }
    }
    VXD_TRY(read_axes(reader, top->axes));
    VXD_TRY(read_semantics(reader, top->semantics));
    VXD_TRY(read_weights(top));
out:
    return status;
}

static enum vxd_status read_sections(struct vxd_model_reader *reader,
                                     const struct top *top)
{
    enum vxd_status status;

    VXD_TRY(reserve_nodes(reader));
    VXD_TRY(vxd_model_read_input(reader, top->input));
    VXD_TRY(begin_nodes(reader));
    if (top->defaults != NULL) {
        VXD_TRY(vxd_model_read_defaults(reader, top->defaults));
    }
    VXD_TRY(read_layers(reader, top->layers));
    VXD_TRY(vxd_model_read_outputs(reader, top->outputs));
    reader->model->n_parameters = reader->tensors.n_parameters;
out:
    return status;
}

static void make_digest(const char *text, size_t n_text, const void *weights,
                        size_t n_weights, char out[VXD_MODEL_DIGEST_BYTES])
{
    uint8_t both[2][SHA256_DIGEST_SIZE];
    struct sha256_ctx hash;

    sha256_init(&hash);
    sha256_update(&hash, n_text, (const uint8_t *)text);
    sha256_digest(&hash, SHA256_DIGEST_SIZE, both[0]);
    sha256_update(&hash, n_weights, weights);
    sha256_digest(&hash, SHA256_DIGEST_SIZE, both[1]);
    sha256_update(&hash, sizeof both, both[0]);
    sha256_digest(&hash, SHA256_DIGEST_SIZE, both[0]);
    for (size_t i = 0; i < SHA256_DIGEST_SIZE; i++) {
        (void)snprintf(out + 2 * i, 3, "%02x", both[0][i]);
    }
}

static enum vxd_status begin_reader(const char *name, struct vxd_model_reader *reader,
                                    struct vxd_err *err)
{
    memset(reader, 0, sizeof *reader);
    if (!vxd_model_name_ok(name)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "name",
                        "a network's name must have 1 to %d of a-z 0-9 . _ -, the first "
                        "a letter or digit",
                        VXD_MODEL_NAME_BYTES - 1);
    }
    reader->json = (struct vxd_json){.file = name, .err = err};
    reader->err = err;
    reader->tensors.name = name;
    reader->model = calloc(1, sizeof *reader->model);
    if (reader->model == NULL) {
        return vxd_json_no_memory(&reader->json);
    }
    memcpy(reader->model->name, name, strlen(name) + 1);
    return VXD_OK;
}

/* Gives the model to *take_model, or frees it where that is NULL. */
static void end_reader(struct vxd_model_reader *reader, struct vxd_model **take_model)
{
    json_decref(reader->root);
    free(reader->nodes);
    free(reader->sets);
    free(reader->maps);
    if (take_model != NULL) {
        *take_model = reader->model;
    } else {
        vxd_model_destroy(reader->model);
    }
}

enum vxd_status vxd_model_parse(const char *name, const char *text, size_t n_text,
                                const void *weights, size_t n_weights,
                                struct vxd_model **out, struct vxd_err *err)
{
    struct vxd_model_reader reader;
    struct vxd_safetensors file = {0};
    struct top top = {0};
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(begin_reader(name, &reader, err));
    VXD_TRY(read_top(&reader, text, n_text, &top));
    VXD_TRY(vxd_safetensors_parse(top.weights_file, weights, n_weights, &file, err));
    reader.tensors.name = top.weights_file;
    reader.tensors.file = &file;
    VXD_TRY(read_sections(&reader, &top));
    make_digest(text, n_text, weights, n_weights, reader.model->digest);
out:
    vxd_safetensors_free(&file);
    end_reader(&reader, status == VXD_OK ? out : NULL);
    return status;
}

/* Lists the tensors that a config would take, and the file that they come from. */
static enum vxd_status list_tensors(const char *name, const char *text, size_t n_text,
                                    struct top *top, struct vxd_tensor_list *list,
                                    struct vxd_err *err)
{
    struct vxd_model_reader reader;
    enum vxd_status status;

    VXD_TRY(begin_reader(name, &reader, err));
    reader.tensors.list = list;
    VXD_TRY(read_top(&reader, text, n_text, top));
    VXD_TRY(read_sections(&reader, top));
out:
    end_reader(&reader, NULL);
    return status;
}

static enum vxd_status load_config(const char *directory, const char *name,
                                   uint8_t **text, size_t *n_text, struct vxd_err *err)
{
    char file[VXD_MODEL_NAME_BYTES + sizeof ".json"];

    if (!vxd_model_name_ok(name)) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, "name",
                        "a network's name must have 1 to %d of a-z 0-9 . _ -, the first "
                        "a letter or digit",
                        VXD_MODEL_NAME_BYTES - 1);
    }
    (void)snprintf(file, sizeof file, "%s.json", name);
    return vxd_model_load_file(directory, file, VXD_MODEL_MAX_CONFIG_BYTES, text, n_text,
                               err);
}

enum vxd_status vxd_model_read(const char *directory, const char *name,
                               struct vxd_model **out, struct vxd_err *err)
{
    struct vxd_model_reader reader = {0};
    struct top top = {0};
    uint8_t *text = NULL;
    uint8_t *weights = NULL;
    size_t n_text = 0;
    size_t n_weights = 0;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(load_config(directory, name, &text, &n_text, err));
    VXD_TRY(begin_reader(name, &reader, err));
    VXD_TRY(read_top(&reader, (char *)text, n_text, &top));
    VXD_TRY(vxd_model_load_file(directory, top.weights_file, VXD_MODEL_MAX_WEIGHT_BYTES,
                                &weights, &n_weights, err));
    VXD_TRY(vxd_model_parse(name, (char *)text, n_text, weights, n_weights, out, err));
out:
    end_reader(&reader, NULL);
    free(text);
    free(weights);
    return status;
}

/* Reads the config DIRECTORY/NAME.json and draws its weights; the caller frees text and
 * weights, also after a failure. */
static enum vxd_status draw_weights(const char *directory, const char *name,
                                    uint64_t seed, uint8_t **text, size_t *n_text,
                                    struct top *top, uint8_t **weights, size_t *n_weights,
                                    struct vxd_err *err)
{
    struct vxd_tensor_list list = {0};
    enum vxd_status status;

    VXD_TRY(load_config(directory, name, text, n_text, err));
    VXD_TRY(list_tensors(name, (char *)*text, *n_text, top, &list, err));
    VXD_TRY(vxd_tensor_list_draw(&list, seed, weights, n_weights, err));
out:
    vxd_tensor_list_free(&list);
    return status;
}

enum vxd_status vxd_model_read_random(const char *directory, const char *name,
                                      uint64_t seed, struct vxd_model **out,
                                      struct vxd_err *err)
{
    struct top top = {0};
    uint8_t *text = NULL;
    uint8_t *weights = NULL;
    size_t n_text = 0;
    size_t n_weights = 0;
    enum vxd_status status;

    *out = NULL;
    VXD_TRY(draw_weights(directory, name, seed, &text, &n_text, &top, &weights,
                         &n_weights, err));
    VXD_TRY(vxd_model_parse(name, (char *)text, n_text, weights, n_weights, out, err));
out:
    free(text);
    free(weights);
    return status;
}

enum vxd_status vxd_model_init_weights(const char *directory, const char *name,
                                       uint64_t seed, bool replace, struct vxd_err *err)
{
    struct top top = {0};
    uint8_t *text = NULL;
    uint8_t *weights = NULL;
    size_t n_text = 0;
    size_t n_weights = 0;
    enum vxd_status status;

    VXD_TRY(draw_weights(directory, name, seed, &text, &n_text, &top, &weights,
                         &n_weights, err));
    VXD_TRY(vxd_model_store_file(directory, top.weights_file, weights, n_weights, replace,
                                 err));
out:
    free(text);
    free(weights);
    return status;
}

void vxd_model_destroy(struct vxd_model *model)
{
    if (model == NULL) {
        return;
    }
    for (size_t i = 0; i < VXD_NET_MAX_OUTPUTS; i++) {
        free(model->label_names[i]);
    }
    vxd_net_builder_destroy(model->builder);
    free(model->layers);
    free(model);
}

const char *vxd_model_name(const struct vxd_model *model)
{
    return model->name;
}

const char *vxd_model_digest(const struct vxd_model *model)
{
    return model->digest;
}

enum vxd_net_precision vxd_model_choose_precision(const struct vxd_model *model,
                                                  int wished, enum vxd_backend backend)
{
    int choice = wished == VXD_MODEL_ITS_PRECISION ? model->precision : wished;

    if (choice != VXD_MODEL_AUTO_PRECISION) {
        return (enum vxd_net_precision)choice;
    }
    /* A CPU computes fp16 by way of fp32, at about half the speed. */
    return backend == VXD_BACKEND_CUDA ? VXD_NET_FP16 : VXD_NET_FP32;
}

const struct vxd_net_builder *vxd_model_builder(const struct vxd_model *model)
{
    return model->builder;
}

const struct vxd_model_input *vxd_model_input(const struct vxd_model *model)
{
    return &model->input;
}

size_t vxd_model_n_outputs(const struct vxd_model *model)
{
    return model->n_outputs;
}

const struct vxd_model_output *vxd_model_output(const struct vxd_model *model, size_t i)
{
    return &model->outputs[i];
}

size_t vxd_model_n_parameters(const struct vxd_model *model)
{
    return model->n_parameters;
}

size_t vxd_model_n_layers(const struct vxd_model *model)
{
    return model->n_layers;
}

const struct vxd_model_layer *vxd_model_layer(const struct vxd_model *model, size_t i)
{
    return &model->layers[i];
}
