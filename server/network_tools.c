// SPDX-License-Identifier: Apache-2.0
#include "server/network_tools.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "server/registry/networks/networks.h"
#include "server/tool_report.h"

enum {
    PATH_BYTES = 4096
};

/* Where a network's config lies. */
struct place {
    char directory[PATH_BYTES];
    char name[VXD_MODEL_NAME_BYTES];
};

/* "dir/NAME.json" to "dir" and "NAME". */
static enum vxd_status split(const char *path, struct place *out, struct vxd_err *err)
{
    const char *slash = strrchr(path, '/');
    const char *file = slash != NULL ? slash + 1 : path;
    size_t n_file = strlen(file);
    size_t n_directory = slash != NULL ? (size_t)(slash - path) : 0;

    if (n_file < 6 || strcmp(file + n_file - 5, ".json") != 0 ||
        n_file - 5 >= sizeof out->name || n_directory >= sizeof out->directory) {
        return vxd_fail(err, VXD_INVALID_ARGUMENT, NULL,
                        "%.150s: must be NAME.json, NAME [a-z0-9][a-z0-9._-]{0,62}",
                        path);
    }
    memcpy(out->name, file, n_file - 5);
    out->name[n_file - 5] = '\0';
    if (slash == NULL) {
        (void)snprintf(out->directory, sizeof out->directory, ".");
    } else if (n_directory == 0) {
        (void)snprintf(out->directory, sizeof out->directory, "/");
    } else {
        memcpy(out->directory, path, n_directory);
        out->directory[n_directory] = '\0';
    }
    return VXD_OK;
}

static enum vxd_net_precision precision_here(const struct vxd_model *model)
{
    return vxd_model_choose_precision(model, VXD_MODEL_ITS_PRECISION, VXD_BACKEND_CPU);
}

/* Builds the network on the CPU, where that always works, and runs it once. */
static enum vxd_status try_model(struct vxd_model *model, struct vxd_net_info *info,
                                 struct vxd_err *err)
{
    const struct vxd_context_options options = {.backend = VXD_BACKEND_CPU};
    const struct vxd_net_options net_options = {.precision = precision_here(model),
                                                .max_rows = VXD_NETWORK_MAX_VOXELS,
                                                .max_samples = VXD_NETWORK_MAX_ITEMS};
    struct vxd_network network = {.model = model};
    struct vxd_context *context = NULL;
    struct vxd_queue *queue = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_context_create(&options, &context, err));
    VXD_TRY(vxd_queue_create(context, &queue, err));
    VXD_TRY(
        vxd_net_create(queue, vxd_model_builder(model), &net_options, &network.net, err));
    vxd_net_get_info(network.net, info);
    VXD_TRY(vxd_network_warm_up(&network, queue, err));
out:
    if (network.net != NULL) {
        vxd_net_destroy(queue, network.net);
    }
    vxd_queue_destroy(queue);
    if (context != NULL) {
        vxd_context_destroy(context);
    }
    return status;
}

static const char *const precisions[] = {[VXD_NET_FP32] = "fp32",
                                         [VXD_NET_TF32] = "tf32",
                                         [VXD_NET_FP16] = "fp16",
                                         [VXD_NET_BF16] = "bf16"};

static void print_output(const struct vxd_model_output *output)
{
    static const char *const kinds[] = {[VXD_MODEL_VOXELS] = "voxels",
                                        [VXD_MODEL_POINTS] = "points",
                                        [VXD_MODEL_DENSE] = "dense",
                                        [VXD_MODEL_VECTOR] = "vector"};

    (void)printf("output      %s: %s of %d channels%s\n", output->name,
                 kinds[output->kind], output->n_channels,
                 output->argmax ? ", as label and score" : "");
}

static void print_model(const struct vxd_model *model, const struct vxd_net_info *info)
{
    const struct vxd_model_input *input = vxd_model_input(model);

    (void)printf("name        %s\ndigest      %s\n", vxd_model_name(model),
                 vxd_model_digest(model));
    (void)printf("parameters  %zu in %zu layers, %s: %zu bytes\n",
                 vxd_model_n_parameters(model), vxd_model_n_layers(model),
                 precisions[precision_here(model)], info->weight_bytes);
    (void)printf("sets        %zu, and %zu kernel maps\ninput       ", info->n_coord_sets,
                 info->n_maps);
    for (int i = 0; i < input->n_features; i++) {
        (void)printf("%s%s", i > 0 ? ", " : "", input->features[i].name);
    }
    (void)putchar('\n');
    for (size_t i = 0; i < vxd_model_n_outputs(model); i++) {
        print_output(vxd_model_output(model, i));
    }
}

/* The keys are those of voxelctl net info --json, as far as files know them. */
static int print_json(const struct vxd_model *model, const struct vxd_net_info *info)
{
    const struct vxd_model_input *input = vxd_model_input(model);
    struct vxd_text text = {0};

    vxd_text_append(&text, "{", 1);
    vxd_tool_member(&text, true, "name", vxd_model_name(model));
    vxd_tool_member(&text, false, "digest", vxd_model_digest(model));
    vxd_tool_member(&text, false, "precision", precisions[precision_here(model)]);
    vxd_text_printf(&text,
                    ", \"n_parameters\": %zu, \"n_layers\": %zu, \"n_bytes\": %zu, "
                    "\"n_sets\": %zu, \"n_maps\": %zu, \"features\": [",
                    vxd_model_n_parameters(model), vxd_model_n_layers(model),
                    info->weight_bytes, info->n_coord_sets, info->n_maps);
    for (int i = 0; i < input->n_features; i++) {
        const char *name = input->features[i].name;

        vxd_text_printf(&text, "%s", i > 0 ? ", " : "");
        vxd_text_json_string(&text, name, strlen(name));
    }
    vxd_text_printf(&text, "], \"outputs\": [");
    for (size_t i = 0; i < vxd_model_n_outputs(model); i++) {
        const char *name = vxd_model_output(model, i)->name;

        vxd_text_printf(&text, "%s", i > 0 ? ", " : "");
        vxd_text_json_string(&text, name, strlen(name));
    }
    vxd_text_printf(&text, "]}\n");
    return vxd_tool_print(&text, EXIT_SUCCESS);
}

int vxd_network_tool_check(const char *path, bool json)
{
    struct place *place = malloc(sizeof *place);
    struct vxd_model *model = NULL;
    struct vxd_net_info info = {0};
    struct vxd_err err = {0};
    struct vxd_err missing = {0};
    int result = EXIT_SUCCESS;
    enum vxd_status status = VXD_OK;

    if (place == NULL) {
        VXD_TRY(vxd_fail(&err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory"));
    }
    VXD_TRY(split(path, place, &err));
    status = vxd_model_read(place->directory, place->name, &model, &err);
    if (status == VXD_NOT_FOUND) {
        missing = err;
        status = vxd_model_read_random(place->directory, place->name, 1, &model, &err);
    }
    VXD_TRY(status);
    VXD_TRY(try_model(model, &info, &err));
    if (json) {
        result = print_json(model, &info);
    } else {
        print_model(model, &info);
    }
    if (missing.code != VXD_OK) {
        VXD_TRY(
            vxd_fail(&err, VXD_NOT_FOUND, NULL,
                     "the config is fine, with random weights; its own are not there: "
                     "%.120s",
                     missing.message));
    }
    if (!json) {
        (void)puts("ok");
    }
out:
    vxd_model_destroy(model);
    free(place);
    return status == VXD_OK ? result : vxd_tool_fail(json, NULL, &err, NULL);
}

int vxd_network_tool_init(const char *path, uint64_t seed, bool replace, bool json)
{
    struct place *place = malloc(sizeof *place);
    struct vxd_err err = {0};
    int result = EXIT_SUCCESS;
    enum vxd_status status = VXD_OK;

    if (place == NULL) {
        VXD_TRY(vxd_fail(&err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory"));
    }
    VXD_TRY(split(path, place, &err));
    VXD_TRY(vxd_model_init_weights(place->directory, place->name, seed, replace, &err));
    if (json) {
        struct vxd_text text = {0};

        vxd_text_append(&text, "{", 1);
        vxd_tool_member(&text, true, "name", place->name);
        vxd_text_printf(&text, ", \"seed\": %" PRIu64 "}\n", seed);
        result = vxd_tool_print(&text, EXIT_SUCCESS);
    } else {
        (void)printf("%s: random weights of seed %" PRIu64 "\n", place->name, seed);
    }
out:
    free(place);
    return status == VXD_OK ? result : vxd_tool_fail(json, NULL, &err, NULL);
}
