// SPDX-License-Identifier: Apache-2.0
/* Networks' files: what is read, what is refused and in whose name, random weights, and every
 * allocation failing in turn. */
#include "tests/support/test.h"

#include <jansson.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/failing_alloc.h"
#include "tests/support/server/model_files.h"

#define CONFIGS VOXELD_SOURCE_DIR "/configs/networks"

enum {
    ENOUGH = 100000,
    PATH_CAPACITY = 512
};

/* The one that failed was jansson's, which may take it for a fault of the text. */
static bool failed_in_json;

static void *json_malloc_that_fails(size_t n_bytes)
{
    bool fails = fails_now();

    failed_in_json = failed_in_json || fails;
    return fails ? NULL : __real_malloc(n_bytes);
}

/* The base config and its random weights, in memory. */
struct base {
    uint8_t *weights;
    size_t n_weights;
};

static bool base_begin(struct base *base)
{
    char directory[64];
    char path[PATH_CAPACITY];

    memset(base, 0, sizeof *base);
    if (!model_directory(directory)) {
        return false;
    }
    if (model_put(directory, "net.json", model_base, strlen(model_base)) &&
        vxd_model_init_weights(directory, "net", 5, false, NULL) == VXD_OK) {
        (void)snprintf(path, sizeof path, "%s/net.safetensors", directory);
        base->weights = model_get(path, &base->n_weights);
    }
    model_directory_remove(directory);
    return base->weights != NULL;
}

static enum vxd_status parse(const struct base *base, const char *text,
                             struct vxd_model **out, struct vxd_err *err)
{
    return vxd_model_parse("net", text, strlen(text), base->weights, base->n_weights, out,
                           err);
}

static void check_input(const struct vxd_model_input *input)
{
    CHECK_INT(input->n_features, 3);
    CHECK_INT(input->features[0].kind, VXD_CHANNEL_POSITION);
    CHECK_INT(input->features[0].component, 0);
    CHECK_INT(input->features[1].kind, VXD_CHANNEL_FIELD);
    CHECK_STR(input->features[1].name, "intensity");
    CHECK(input->features[1].scale == 0.5 && input->features[1].bias == 1);
    CHECK_INT(input->features[2].kind, VXD_CHANNEL_CONSTANT);
    CHECK(input->features[2].constant == 1.0F);
    CHECK_INT(input->voxelize.rule, VXD_RULE_SPCONV);
    CHECK_INT(input->voxelize.order, VXD_ORDER_MORTON);
    CHECK_INT(input->voxelize.max_points, 5);
    CHECK_INT(input->voxelize.max_voxels, 100);
    CHECK(input->voxelize.has_range && input->voxelize.range_hi_m[2] == 4.0F);
    CHECK_INT(input->overflow, VXD_MODEL_ERROR);
    CHECK_INT(input->shape[0], 8);
    CHECK_INT(input->shape[2], 9); /* axes are z, y, x */
}

static void test_model_of_a_small_config_says_what_the_config_says(void)
{
    struct base base;
    struct vxd_model *model = NULL;
    struct vxd_err err = {0};
    const struct vxd_model_output *output;

    REQUIRE(base_begin(&base));
    CHECK_INT(parse(&base, model_base, &model, &err), VXD_OK);
    CHECK_STR(err.message, "");
    REQUIRE(model != NULL);
    CHECK_STR(vxd_model_name(model), "net");
    CHECK_INT(strlen(vxd_model_digest(model)), 64);
    CHECK_INT(vxd_model_choose_precision(model, VXD_MODEL_ITS_PRECISION, VXD_BACKEND_CPU),
              VXD_NET_FP16);
    CHECK_INT(vxd_model_choose_precision(model, VXD_NET_BF16, VXD_BACKEND_CPU),
              VXD_NET_BF16);
    CHECK_INT(
        vxd_model_choose_precision(model, VXD_MODEL_AUTO_PRECISION, VXD_BACKEND_CPU),
        VXD_NET_FP32);
    CHECK_INT(
        vxd_model_choose_precision(model, VXD_MODEL_AUTO_PRECISION, VXD_BACKEND_CUDA),
        VXD_NET_FP16);
    check_input(vxd_model_input(model));
    CHECK_INT(vxd_model_n_layers(model), 7);
    CHECK_STR(vxd_model_layer(model, 2)->op, "conv");
    CHECK_INT(vxd_model_layer(model, 2)->n_in, 4);
    CHECK_INT(vxd_model_layer(model, 2)->n_out, 8);
    CHECK_INT(vxd_model_layer(model, 2)->n_parameters, 3 * 2 * 4 * 8 + 2 * 8);
    CHECK_INT(vxd_model_n_parameters(model), (27 * 3 * 4 + 8) + (27 * 4 * 4 + 8) +
                                                 (6 * 4 * 8 + 16) + (6 * 8 * 4 + 8) +
                                                 (8 * 3 + 3) + 1);
    CHECK_INT(vxd_model_n_outputs(model), 4);
    output = vxd_model_output(model, 0);
    CHECK_INT(output->kind, VXD_MODEL_POINTS);
    CHECK(output->argmax && output->fill_label == 7 && output->n_labels == 3);
    CHECK_STR(output->label_names[2], "tree");
    output = vxd_model_output(model, 1);
    CHECK_INT(output->kind, VXD_MODEL_DENSE);
    CHECK_INT(output->stride[0], 2);
    CHECK_INT(output->stride[1], 1);
    CHECK_INT(output->stride[2], 2);
    CHECK_INT(vxd_model_output(model, 2)->kind, VXD_MODEL_VECTOR);
    CHECK_INT(vxd_model_output(model, 3)->engine_output, 3);
    CHECK(vxd_model_builder(model) != NULL);
    vxd_model_destroy(model);
    free(base.weights);
}

/* One change to the base config, and what is to come of it. */
struct change {
    const char *from;
    const char *to;
    const char *field;
    const char *message;
};

static void check_changes(const struct change *changes, size_t n)
{
    struct base base;

    REQUIRE(base_begin(&base));
    for (size_t i = 0; i < n; i++) {
        char *text = model_replace(model_base, changes[i].from, changes[i].to);
        struct vxd_model *model = NULL;
        struct vxd_err err = {0};

        REQUIRE(text != NULL);
        CHECK_INT(parse(&base, text, &model, &err), VXD_INVALID_ARGUMENT);
        CHECK_INT(err.code, VXD_INVALID_ARGUMENT);
        CHECK_STR(err.field, changes[i].field);
        if (strstr(err.message, changes[i].message) == NULL) {
            CHECK_STR(err.message, changes[i].message);
        }
        CHECK(model == NULL);
        vxd_model_destroy(model);
        free(text);
    }
    free(base.weights);
}

static void test_config_with_a_faulty_top_is_refused_by_key(void)
{
    static const struct change changes[] = {
        {"{\"format\"", "[\"format\"", "", "line 1"},
        {"voxeld-net/1", "voxeld-net/2", "format", "voxeld-net/1"},
        {"\"name\": \"net\"", "\"name\": \"other\"", "name", "\"net\""},
        {"\"name\": \"net\"", "\"nam\": \"net\"", "nam", "no key"},
        {"\"precision\": \"fp16\"", "\"precision\": \"fp8\"", "precision", "bf16"},
        {"[\"z\", \"y\", \"x\"]", "[\"z\", \"y\", \"y\"]", "axes", "once"},
        {"[\"z\", \"y\", \"x\"]", "[\"z\", \"y\"]", "axes", "three"},
        {"\"spconv\"", "\"tensorflow\"", "semantics", "minkowski"},
        {"\"layout\": \"krsc\"", "\"layout\": \"rsc\"", "weights.layout", "rsck"},
        {"\"layout\": \"krsc\"", "\"file\": \"../x.safetensors\"", "weights.file",
         "beside"},
        {"\"layout\": \"krsc\"", "\"file\": \"/x.safetensors\"", "weights.file",
         "beside"},
        {"\"layout\": \"krsc\"", "\"file\": \"x.pth\"", "weights.file", "beside"},
        {"\"prefix\": \"p.\"", "\"prefix\": \"p\\\"\"", "weights.prefix", "letters"},
        {"\"layers\": [", "\"layers\": [], \"l\": [", "l", "no key"},
        {"\"outputs\": [", "\"output\": [", "output", "no key"},
        {"\"kernel\": 3, \"bias\"", "\"stride\": 3, \"bias\"", "defaults.stride",
         "no key"},
    };

    check_changes(changes, sizeof changes / sizeof changes[0]);
}

static void test_config_with_a_faulty_input_is_refused_by_key(void)
{
    static const struct change changes[] = {
        {"\"mode\": \"voxelize\", ", "", "input.mode", "missing"},
        {"\"mode\": \"voxelize\"", "\"mode\": \"quantize\"", "input.bounded", "voxelize"},
        {"\"voxel_size\": 0.5", "\"voxel_size\": 0", "input.voxel_size", "1e-09"},
        {"\"voxel_size\": 0.5", "\"voxel_size\": [1, 1]", "input.voxel_size", "3"},
        {"[0, 0, 0, 4, 4, 4]", "[0, 0, 0, 4, 0, 4]", "input.range", "below"},
        {"[0, 0, 0, 4, 4, 4]", "[0, 0, 0, 4, 5, 4]", "input.bounded", "10 voxels"},
        {"\"range\": [0, 0, 0, 4, 4, 4], ", "", "input.range", "missing"},
        {"[9, 8, 8]", "[9, 8, 0]", "input.bounded", "1 to 131072"},
        {"\"max_points\": 5", "\"max_points\": -5", "input.max_points", "0 to 65536"},
        {"\"max_voxels\": 100", "\"max_voxels\": 1.5", "input.max_voxels", "whole"},
        {"\"reduce\": \"mean\"", "\"reduce\": \"median\"", "input.reduce", "first"},
        {"\"scale\": 0.5", "\"scal\": 0.5", "input.features[1].scal", "no key"},
        {"{\"field\": \"intensity\", ", "{", "input.features[1]", "missing"},
        {", 1],\n", ", null],\n", "input.features[2]", "null"},
        {"\"overflow\": \"error\"", "\"normalize\": {\"center\": 1}",
         "input.normalize.center", "true or false"},
    };

    check_changes(changes, sizeof changes / sizeof changes[0]);
}

static void test_config_with_a_faulty_layer_is_refused_by_its_name(void)
{
    static const struct change changes[] = {
        {"\"name\": \"a\", ", "", "layers[0]", "name"},
        {"\"name\": \"a2\"", "\"name\": \"a\"", "layers[1].name", "second"},
        {"\"name\": \"a2\"", "\"name\": \"@in\"", "layers[1].name", "letters"},
        {"\"op\": \"cat\"", "\"op\": \"cut\"", "layers[c].op", "cut"},
        {"\"in\": [\"u\", \"a2\"]", "\"in\": [\"u\", \"h\"]", "layers[c].in", "\"h\""},
        {"\"in\": [\"u\", \"a2\"]", "\"in\": [\"u\", \"d\"]", "layers[c].in", "voxels"},
        {"\"in\": [\"u\", \"a2\"]", "\"in\": \"u\"", "layers[c].in", "2 to 8"},
        {"\"ch\": 8", "\"ch\": 0", "layers[d].ch", "1 to 4096"},
        {"\"ch\": 8", "\"ch\": 9", "layers[d].w", "[8, 3, 1, 2, 4]"},
        {"\"ch\": 8, ", "", "layers[d].ch", "missing"},
        {"\"kernel\": [3, 1, 2]", "\"kernel\": [3, 1, 8]", "layers[d].kernel", "1 to 7"},
        {"\"kernel\": [3, 1, 2],\n   \"stride\": [2, 1, 2]",
         "\"kernel\": 7, \"dilation\": 2, \"stride\": [2, 1, 2]", "layers[d]",
         "layers[d]"},
        {"\"ch\": 4, \"map\": \"m\"}", "\"ch\": 4, \"kernel\": 2}", "layers[a].kernel",
         "odd"},
        {"\"ch\": 4, \"map\": \"m\"}", "\"ch\": 4, \"stride\": 2}", "layers[a].stride",
         "takes no"},
        {"\"map\": \"m\", \"add\"", "\"map\": \"m\", \"kernel\": 5, \"add\"",
         "layers[a2].map", "\"a\""},
        {"\"map\": \"m\", \"add\"", "\"map\": \"m\", \"dilation\": 2, \"add\"",
         "layers[a2].map", "\"a\""},
        {"\"map\": \"d\"", "\"map\": \"m\"", "layers[d].map", "\"a\""},
        {"\"of_map\": \"d\"", "\"of_map\": \"m\"", "layers[u].of_map", "\"a\""},
        {"\"of_map\": \"d\"", "\"of_map\": \"x\"", "layers[u].of_map", "\"x\""},
        {"\"of_map\": \"d\"", "\"of_map\": \"d\", \"kernel\": 3", "layers[u].kernel",
         "\"d\""},
        {"\"add\": \"a\"", "\"add\": \"@in\"", "layers[a2].add", "3 channels"},
        {"\"stats\": \"batch\"", "\"stats\": \"all\"", "layers[u].bn.stats", "running"},
        {"\"bias\": true, \"bn\"", "\"bias\": 1, \"bn\"", "layers[h].bias",
         "true or false"},
        {"\"leaky_relu\"", "\"selu\"", "layers[h].act.type", "sigmoid"},
        {"\"kind\": \"gem\", ", "", "layers[g].kind", "missing"},
        {"\"p_w\": \"g.p\"", "\"p_w\": \"g.q\"", "layers[g].p_w", "p.g.q"},
        {"\"ch\": 4, \"map\": \"m\"}", "\"ch\": 4, \"w\": \"b\"}", "layers[a].w",
         "p.b.weight"},
        {"\"ch\": 4, \"map\": \"m\"}", "\"ch\": 4, \"bn_w\": \"b\"}", "layers[a].bn_w",
         "p.b.weight"},
        {"\"ch\": 4, \"map\": \"m\"}",
         "\"ch\": 4, \"semantics\": \"minkowski\", "
         "\"padding\": 1}",
         "layers[a].padding", "takes no"},
    };

    check_changes(changes, sizeof changes / sizeof changes[0]);
}

static void test_config_with_a_faulty_output_is_refused_by_its_name(void)
{
    static const struct change changes[] = {
        {"\"from\": \"h\", \"as\": \"points\"", "\"from\": \"d\", \"as\": \"points\"",
         "outputs[labels].from", "points"},
        {"\"from\": \"g\"", "\"from\": \"h\"", "outputs[place].from", "global"},
        {"\"from\": \"d\"", "\"from\": \"g\"", "outputs[bev].from", "bounded"},
        {"\"as\": \"dense\", ", "", "outputs[bev].as", "missing"},
        {"\"as\": \"dense\"", "\"as\": \"voxels\"", "outputs[bev].fold", "dense"},
        {"\"fill\": 7", "\"fill\": 7.5", "outputs[labels].fill", "whole"},
        {"\"argmax\": true,\n   ", "", "outputs[labels].labels", "argmax"},
        {", \"tree\"]", "]", "outputs[labels].labels", "each channel"},
        {"\"name\": \"rows\"", "\"name\": \"bev\"", "outputs[bev].name", "another"},
        {"\"from\": \"h\", \"as\": \"voxels\"", "\"from\": \"g\", \"as\": \"voxels\"",
         "outputs[rows].from", "tokens"},
        {"\"from\": \"h\", \"as\": \"voxels\"", "\"from\": \"y\", \"as\": \"voxels\"",
         "outputs[3].from", "\"y\""},
        {"\"l2norm\": true", "\"l2norm\": \"yes\"", "outputs[2].l2norm", "string"},
    };

    check_changes(changes, sizeof changes / sizeof changes[0]);
}

/* A number that no float32 can be, in place of one of the weights. */
static void test_weights_that_are_not_finite_are_refused_by_the_layers_name(void)
{
    static const struct {
        const char *tensor;
        float value;
        const char *field;
    } faults[] = {
        {"\"p.d.weight\"", NAN, "layers[d].w"},
        {"\"p.a.bn.running_mean\"", INFINITY, "layers[a].bn_w"},
        {"\"p.a.bn.running_var\"", -1, "layers[a].bn"},
        {"\"p.h.bias\"", NAN, "layers[h].w"},
        {"\"p.g.p\"", 0, "layers[g].p_w"},
    };
    struct base base;

    REQUIRE(base_begin(&base));
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        char *header = (char *)base.weights + 8;
        const char *at = strstr(header, faults[i].tensor);
        const char *offsets = at != NULL ? strstr(at, "data_offsets\":[") : NULL;
        uint64_t n_header = 0;
        struct vxd_model *model = NULL;
        struct vxd_err err = {0};
        size_t begin;
        float before;

        REQUIRE(offsets != NULL);
        memcpy(&n_header, base.weights, sizeof n_header);
        begin = 8 + (size_t)n_header +
                strtoul(offsets + strlen("data_offsets\":["), NULL, 10);
        memcpy(&before, base.weights + begin, sizeof before);
        memcpy(base.weights + begin, &faults[i].value, sizeof before);
        CHECK_INT(parse(&base, model_base, &model, &err), VXD_INVALID_ARGUMENT);
        CHECK_STR(err.field, faults[i].field);
        memcpy(base.weights + begin, &before, sizeof before);
        vxd_model_destroy(model);
    }
    free(base.weights);
}

/* Every network that we ship, with random weights: the same from the same seed, whether they
 * went through a file or not. */
static void test_shipped_configs_read_with_random_weights(void)
{
    static const struct {
        const char *name;
        size_t n_layers;
        size_t n_parameters;
    } nets[] = {
        /* Parameters as the authors' modules have them: spvnas states 21.7 million,
         * MinkLoc3D's paper 1.1, the SVT-Net checkpoint holds 935,521 besides statistics. */
        {"centerpoint", 21, 2695312}, {"minkloc3d", 15, 1055713},
        {"minkunet42", 54, 21723315}, {"second", 12, 711872},
        {"spunet", 64, 39149747},     {"surfaces", 1, 378},
        {"svtnet", 30, 935521},       {"unet-recording", 7, 65160},
    };
    char **names = NULL;
    size_t n = 0;
    char directory[64];

    REQUIRE(vxd_model_names(CONFIGS, &names, &n, NULL) == VXD_OK);
    CHECK_INT(n, sizeof nets / sizeof nets[0]);
    REQUIRE(model_directory(directory));
    for (size_t i = 0; i < n && i < sizeof nets / sizeof nets[0]; i++) {
        char path[PATH_CAPACITY];
        struct vxd_model *drawn = NULL;
        struct vxd_model *read = NULL;
        struct vxd_err err = {0};
        size_t n_text;
        uint8_t *text;

        CHECK_STR(names[i], nets[i].name);
        (void)snprintf(path, sizeof path, CONFIGS "/%s.json", names[i]);
        text = model_get(path, &n_text);
        REQUIRE(text != NULL);
        (void)snprintf(path, sizeof path, "%s.json", names[i]);
        CHECK(model_put(directory, path, text, n_text));
        free(text);
        CHECK_INT(vxd_model_init_weights(directory, names[i], 1, false, &err), VXD_OK);
        CHECK_INT(vxd_model_init_weights(directory, names[i], 1, false, NULL),
                  VXD_ALREADY_EXISTS);
        CHECK_INT(vxd_model_read(directory, names[i], &read, &err), VXD_OK);
        CHECK_INT(vxd_model_read_random(directory, names[i], 1, &drawn, &err), VXD_OK);
        CHECK_STR(err.message, "");
        REQUIRE(read != NULL && drawn != NULL);
        CHECK_STR(vxd_model_digest(read), vxd_model_digest(drawn));
        vxd_model_destroy(drawn);
        CHECK_INT(vxd_model_read_random(directory, names[i], 2, &drawn, &err), VXD_OK);
        REQUIRE(drawn != NULL);
        CHECK(strcmp(vxd_model_digest(read), vxd_model_digest(drawn)) != 0);
        CHECK_INT(vxd_model_n_layers(read), nets[i].n_layers);
        CHECK_INT(vxd_model_n_parameters(read), nets[i].n_parameters);
        vxd_model_destroy(drawn);
        vxd_model_destroy(read);
    }
    vxd_model_names_free(names, n);
    model_directory_remove(directory);
}

/* A config with the ops that no shipped one has, down to a network of the engine. */
static void test_config_of_the_other_ops_is_taken_by_the_engine(void)
{
    const struct vxd_context_options options = {.backend = VXD_BACKEND_CPU,
                                                .n_threads = 1,
                                                .device_bytes = 64 << 20,
                                                .host_bytes = 64 << 20};
    const struct vxd_net_options net_options = {.max_rows = 100, .max_samples = 2};
    char directory[64];
    struct vxd_context *context = NULL;
    struct vxd_queue *queue = NULL;
    struct vxd_model *model = NULL;
    struct vxd_net *net = NULL;
    struct vxd_err err = {0};
    size_t n_text;
    uint8_t *text =
        model_get(VOXELD_SOURCE_DIR "/tests/fuzz/corpus/net_config/ops.json", &n_text);

    REQUIRE(text != NULL && model_directory(directory));
    CHECK(model_put(directory, "net.json", text, n_text));
    CHECK_INT(vxd_model_read_random(directory, "net", 3, &model, &err), VXD_OK);
    CHECK_STR(err.message, "");
    REQUIRE(model != NULL);
    CHECK_INT(vxd_model_output(model, 1)->stride[0], 1);
    REQUIRE(vxd_context_create(&options, &context, NULL) == VXD_OK);
    REQUIRE(vxd_queue_create(context, &queue, NULL) == VXD_OK);
    CHECK_INT(vxd_net_create(queue, vxd_model_builder(model), &net_options, &net, &err),
              VXD_OK);
    CHECK_STR(err.field, "");
    CHECK_STR(err.message, "");
    vxd_net_destroy(queue, net);
    vxd_queue_destroy(queue);
    vxd_context_destroy(context);
    vxd_model_destroy(model);
    free(text);
    model_directory_remove(directory);
}

static void test_files_that_are_none_are_refused(void)
{
    char directory[64];
    char path[PATH_CAPACITY];
    struct vxd_model *model = NULL;
    struct vxd_err err = {0};
    char **names = NULL;
    size_t n = 0;

    REQUIRE(model_directory(directory));
    CHECK_INT(vxd_model_read(directory, "net", &model, &err), VXD_NOT_FOUND);
    CHECK_INT(vxd_model_read("/nowhere", "net", &model, &err), VXD_NOT_FOUND);
    CHECK_INT(vxd_model_read(directory, "../net", &model, &err), VXD_INVALID_ARGUMENT);
    CHECK_INT(vxd_model_read(directory, ".net", &model, &err), VXD_INVALID_ARGUMENT);
    CHECK_INT(vxd_model_read(directory, "", &model, &err), VXD_INVALID_ARGUMENT);
    (void)snprintf(path, sizeof path, "%s/pipe.json", directory);
    CHECK_INT(mkfifo(path, 0600), 0);
    CHECK_INT(vxd_model_read(directory, "pipe", &model, &err), VXD_NOT_FOUND);
    (void)snprintf(path, sizeof path, "%s/folder.json", directory);
    CHECK_INT(mkdir(path, 0700), 0);
    CHECK_INT(vxd_model_read(directory, "folder", &model, &err), VXD_NOT_FOUND);
    CHECK(model_put(directory, "big.json", "", 0));
    (void)snprintf(path, sizeof path, "%s/big.json", directory);
    CHECK_INT(truncate(path, VXD_MODEL_MAX_CONFIG_BYTES + 1), 0);
    CHECK_INT(vxd_model_read(directory, "big", &model, &err), VXD_RESOURCE_EXHAUSTED);
    CHECK(model_put(directory, "net.json", model_base, strlen(model_base)));
    CHECK_INT(vxd_model_read(directory, "net", &model, &err), VXD_NOT_FOUND);
    CHECK(model_put(directory, "net.safetensors", "", 0));
    (void)snprintf(path, sizeof path, "%s/net.safetensors", directory);
    CHECK_INT(vxd_model_read(directory, "net", &model, &err), VXD_INVALID_ARGUMENT);
    CHECK_INT(truncate(path, (off_t)VXD_MODEL_MAX_WEIGHT_BYTES + 1), 0);
    CHECK_INT(vxd_model_read(directory, "net", &model, &err), VXD_RESOURCE_EXHAUSTED);
    CHECK_INT(vxd_model_init_weights(directory, "net", 1, true, &err), VXD_OK);
    CHECK_INT(vxd_model_read(directory, "net", &model, &err), VXD_OK);
    vxd_model_destroy(model);
    CHECK(model_put(directory, "UPPER.json", "{}", 2));
    CHECK(model_put(directory, ".hidden.json", "{}", 2));
    CHECK_INT(vxd_model_names(directory, &names, &n, &err), VXD_OK);
    CHECK_INT(n, 4);
    CHECK(n == 4 && strcmp(names[0], "big") == 0 && strcmp(names[3], "pipe") == 0);
    vxd_model_names_free(names, n);
    model_directory_remove(directory);
}

static void test_normalize_keeps_evenly_spread_points_in_the_unit_box(void)
{
    const struct vxd_model_normalize how = {.used = true,
                                            .n_points = 4,
                                            .has_range = true,
                                            .range_lo_m = {-100, -100, -100},
                                            .range_hi_m = {100, 100, 100},
                                            .center = true,
                                            .scale_to_one = true};
    struct vxd_model_normalize all = how;
    float positions[13][3];
    float normal[13][3];
    uint32_t picked[13];
    size_t n = 0;

    for (int i = 0; i < 13; i++) {
        positions[i][0] = (float)i;
        positions[i][1] = (float)(2 * i);
        positions[i][2] = 5;
    }
    positions[1][2] = NAN;
    positions[2][0] = 100; /* outside: the range is half open */
    positions[3][0] = -INFINITY;
    CHECK_INT(vxd_model_normalized_max(&how, 13), 4);
    vxd_model_normalize(&how, positions[0], 13, normal[0], picked, &n);
    CHECK_INT(n, 4);
    /* Of 0, 4, 5, ..., 12 (ten) the 0th, 2nd, 5th, 7th. */
    CHECK(picked[0] == 0 && picked[1] == 5 && picked[2] == 8 && picked[3] == 10);
    /* Mean (5.75, 11.5, 5); the largest distance is 11.5. */
    CHECK(normal[0][0] == -0.5F && normal[0][1] == -1.0F && normal[0][2] == 0.0F);
    CHECK(normal[3][0] == (float)(4.25 / 11.5));
    all.n_points = 0;
    vxd_model_normalize(&all, positions[0], 13, normal[0], picked, &n);
    CHECK_INT(n, 10);
    vxd_model_normalize(&all, positions[0], 0, normal[0], picked, &n);
    CHECK_INT(n, 0);
    vxd_model_normalize(&all, positions[0], 1, normal[0], picked, &n);
    CHECK(n == 1 && normal[0][0] == 0 && normal[0][2] == 0);
}

static void test_reading_with_failing_allocations_leaks_nothing(void)
{
    char directory[64];
    bool failed = true;

    json_set_alloc_funcs(json_malloc_that_fails, free);
    REQUIRE(model_directory(directory));
    CHECK(model_put(directory, "net.json", model_base, strlen(model_base)));
    for (long k = 0; failed && k < ENOUGH; k++) {
        struct vxd_model *model = NULL;
        struct vxd_err err = {0};
        char **names = NULL;
        size_t n = 0;
        enum vxd_status status;

        failed_in_json = false;
        fail_allocation(k);
        status = vxd_model_init_weights(directory, "net", 1, true, &err);
        if (status == VXD_OK) {
            status = vxd_model_read(directory, "net", &model, &err);
        }
        if (status == VXD_OK) {
            status = vxd_model_names(directory, &names, &n, &err);
        }
        failed = stop_failing();
        CHECK(status == (failed ? VXD_RESOURCE_EXHAUSTED : VXD_OK) ||
              (failed_in_json && status == VXD_INVALID_ARGUMENT));
        CHECK(!failed || err.message[0] != '\0');
        vxd_model_names_free(names, n);
        vxd_model_destroy(model);
    }
    CHECK(!failed);
    json_set_alloc_funcs(malloc, free);
    model_directory_remove(directory);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_model_of_a_small_config_says_what_the_config_says),
    VXD_TEST(test_config_with_a_faulty_top_is_refused_by_key),
    VXD_TEST(test_config_with_a_faulty_input_is_refused_by_key),
    VXD_TEST(test_config_with_a_faulty_layer_is_refused_by_its_name),
    VXD_TEST(test_config_with_a_faulty_output_is_refused_by_its_name),
    VXD_TEST(test_weights_that_are_not_finite_are_refused_by_the_layers_name),
    VXD_TEST(test_shipped_configs_read_with_random_weights),
    VXD_TEST(test_config_of_the_other_ops_is_taken_by_the_engine),
    VXD_TEST(test_files_that_are_none_are_refused),
    VXD_TEST(test_normalize_keeps_evenly_spread_points_in_the_unit_box),
    VXD_TEST(test_reading_with_failing_allocations_leaks_nothing),
};

VXD_TEST_MAIN(tests)
