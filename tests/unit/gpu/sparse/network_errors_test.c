// SPDX-License-Identifier: Apache-2.0
/* Networks that must be refused, each with the layer's name. The layer under test is layer4, after
 * those of gpu_net_make_base. */
#include <math.h>

#include "tests/support/sparse/net_helpers.h"
#include "tests/support/test.h"

static const float ones[64] = {1, 1, 1, 1, 1, 1, 1, 1};

static struct vxd_net_layer plain_conv(const struct gpu_net *net)
{
    struct vxd_net_layer layer = gpu_net_layer(net, VXD_NET_CONV, VXD_NET_INPUT);

    layer.n_channels = 2;
    layer.kernel[0] = layer.kernel[1] = layer.kernel[2] = 1;
    layer.weights = ones;
    layer.n_weights = 4;
    return layer;
}

/* Checks that the base with one more layer is refused, with the field
 * layers[layer4].field. */
static void refuse(struct gpu_env *env, const struct vxd_net_layer *layer,
                   const char *field)
{
    struct vxd_net_options options = {VXD_NET_FP32, 100, 2, 0};
    struct gpu_net net;
    struct vxd_net *built = NULL;
    struct vxd_err err = {0};
    char expected[96];

    gpu_net_make_base(&net);
    net.layers[net.n_layers] = *layer;
    (void)snprintf(net.layers[net.n_layers].name, VXD_NET_NAME_BYTES, "layer4");
    net.n_layers++;
    (void)snprintf(expected, sizeof expected, "layers[layer4].%s", field);
    CHECK_INT(gpu_net_create(env, &net, &options, &built, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, expected);
    CHECK(built == NULL);
    net.n_layers--;
    gpu_net_free(&net);
}

static void wrong_alone(struct gpu_env *env)
{
    struct gpu_net net;
    struct vxd_net_layer good;
    struct vxd_net_layer bad;

    gpu_net_make_base(&net);
    good = plain_conv(&net);
#define REFUSE(field, change)                                                            \
    bad = good;                                                                          \
    change;                                                                              \
    refuse(env, &bad, field)
    REFUSE("op", bad.op = (enum vxd_net_op)99);
    REFUSE("semantics", bad.semantics = (enum vxd_net_semantics)2);
    REFUSE("inputs", bad.n_inputs = 0);
    REFUSE("inputs", bad.n_inputs = 2);
    REFUSE("inputs", bad.inputs[0] = 4);
    REFUSE("inputs", bad.inputs[0] = -2);
    REFUSE("kernel", bad.kernel[1] = 0);
    REFUSE("kernel", bad.kernel[1] = 8);
    REFUSE("kernel", (bad.op = VXD_NET_SUBM, bad.kernel[0] = 2));
    REFUSE("stride", bad.stride[2] = 0);
    REFUSE("stride", bad.stride[2] = 65);
    REFUSE("stride", (bad.op = VXD_NET_SUBM, bad.stride[0] = 2));
    REFUSE("padding", bad.padding[0] = -1);
    REFUSE("dilation", bad.dilation[0] = 17);
    REFUSE("output_padding", bad.output_padding[0] = 65);
    REFUSE("of_map", bad.of_map = 0);
    REFUSE("of_map", (bad.op = VXD_NET_INVERSE, bad.of_map = -1));
    REFUSE("onto", bad.onto = 0);
    REFUSE("onto", (bad.op = VXD_NET_TRANSPOSE, bad.onto = 4));
    REFUSE("add", bad.add = 4);
    REFUSE("act", bad.act = (enum vxd_net_act)5);
    REFUSE("alpha", bad.alpha = NAN);
    REFUSE("eps", bad.eps = -1.0f);
    REFUSE("whole_batch", bad.whole_batch = true);
    REFUSE("n_channels", bad.n_channels = 0);
    REFUSE("n_channels", bad.n_channels = VXD_NET_MAX_CHANNELS + 1);
    REFUSE("weights", bad.weights = NULL);
    REFUSE("weights", bad.n_weights = 0);
    REFUSE("weights", bad.n_weights = 3);
    good = gpu_net_layer(&net, VXD_NET_GLOBAL_GEM, 0);
    good.alpha = 3.0f;
    good.eps = 1e-6f;
    REFUSE("alpha", bad.alpha = 0.0f);
    REFUSE("act", bad.act = VXD_ACT_RELU);
    REFUSE("add", bad.add = 0);
    REFUSE("n_channels", bad.n_channels = 2);
    REFUSE("weights", (bad.weights = ones, bad.n_weights = 4));
    REFUSE("scale", bad.scale = ones);
    REFUSE("bias", bad.bias = ones);
    REFUSE("act", bad.op = VXD_NET_ACT);
    REFUSE("eps", (bad.op = VXD_NET_L2_NORM, bad.eps = 0.0f));
    good = gpu_net_layer(&net, VXD_NET_EMBEDDING, 0);
    good.n_channels = 4;
    good.weights = ones;
    REFUSE("weights", bad.n_weights = 6);
    gpu_net_free(&net);
}

static void test_network_of_a_wrong_layer_is_refused_with_its_name(void)
{
    gpu_each_backend(wrong_alone);
}

/* Layers that do not fit earlier ones. */
static void wrong_together(struct gpu_env *env)
{
    struct gpu_net net;
    struct vxd_net_layer good;
    struct vxd_net_layer bad;

    gpu_net_make_base(&net);
    good = plain_conv(&net);
    REFUSE("inputs", bad.inputs[0] = 2);                     /* rows are not voxels */
    REFUSE("add", bad.add = 1);                              /* other rows */
    REFUSE("add", (bad.inputs[0] = 1, bad.add = 3));         /* other channels */
    REFUSE("shape", (bad.kernel[0] = 7, bad.dilation[0] = 4, /* no cells left */
                     bad.n_weights = 28));
    bad = good;
    bad.op = VXD_NET_INVERSE;
    bad.of_map = 2;
    refuse(env, &bad, "of_map"); /* has no map */
    bad.of_map = 1;
    refuse(env, &bad, "of_map"); /* the input has other voxels */
    bad.inputs[0] = 1;
    refuse(env, &bad, "kernel"); /* the map's is 2 */
    bad.op = VXD_NET_TRANSPOSE;
    bad.of_map = VXD_NET_NONE;
    bad.onto = 2;
    refuse(env, &bad, "onto"); /* rows are not voxels */
    bad.semantics = VXD_NET_MINKOWSKI;
    bad.onto = VXD_NET_NONE;
    bad.stride[0] = 2;
    refuse(env, &bad, "stride"); /* finer than the input */
    bad.stride[0] = 1;
    bad.stride[1] = 3;
    bad.onto = 0;
    refuse(env, &bad, "onto"); /* not three times as coarse */
    good = gpu_net_layer(&net, VXD_NET_ADD, 0);
    good.n_inputs = 2;
    REFUSE("inputs", bad.inputs[1] = 1);
    REFUSE("inputs", (bad.inputs[0] = 1, bad.inputs[1] = 3)); /* channels */
    REFUSE("inputs", (bad.op = VXD_NET_ADD_UNION, bad.inputs[1] = 2));
    REFUSE("inputs", (bad.op = VXD_NET_ADD_UNION, bad.inputs[1] = 1)); /* shapes */
    REFUSE("inputs", (bad.op = VXD_NET_CAT, bad.inputs[1] = 1));
    REFUSE("inputs", (bad.op = VXD_NET_PRUNE, bad.inputs[1] = 1));
    REFUSE("inputs", (bad.op = VXD_NET_TOKENS, bad.inputs[1] = 1));
    good.op = VXD_NET_ATTENTION;
    good.n_inputs = 3;
    REFUSE("inputs", (bad.inputs[1] = 3, bad.inputs[2] = 3));
    REFUSE("inputs", (bad.inputs[1] = 1, bad.inputs[2] = 0));
    good = gpu_net_layer(&net, VXD_NET_AFFINE, 0);
    REFUSE("n_channels", bad.n_channels = 3);
    gpu_net_free(&net);
}

static void test_network_of_layers_that_do_not_fit_is_refused_with_the_name(void)
{
    gpu_each_backend(wrong_together);
}

static void wrong_outputs(struct gpu_env *env)
{
    struct vxd_net_options options = {VXD_NET_FP32, 100, 2, 0};
    struct gpu_net net;
    struct vxd_net *built = NULL;
    struct vxd_err err = {0};

    gpu_net_make_base(&net);
    net.n_outputs = 0;
    CHECK_INT(gpu_net_create(env, &net, &options, &built, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "outputs");
    gpu_net_output(&net, 4, VXD_NET_OUT_ROWS);
    CHECK_INT(gpu_net_create(env, &net, &options, &built, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "outputs[out0]");
    net.outputs[0].layer = 2;
    net.outputs[0].kind = VXD_NET_OUT_DENSE_BEV; /* rows are not voxels */
    CHECK_INT(gpu_net_create(env, &net, &options, &built, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "outputs[out0]");
    net.outputs[0].kind = (enum vxd_net_output_kind)3;
    CHECK_INT(gpu_net_create(env, &net, &options, &built, &err), VXD_INVALID_ARGUMENT);
    net.outputs[0].kind = VXD_NET_OUT_ROWS;
    net.outputs[net.n_outputs++] = net.outputs[0];
    CHECK_INT(gpu_net_create(env, &net, &options, &built, &err), VXD_INVALID_ARGUMENT);
    net.n_outputs = 1;
    net.shape[2] = 0;
    net.outputs[0].layer = 0;
    net.outputs[0].kind = VXD_NET_OUT_DENSE_BEV; /* unbounded */
    CHECK_INT(gpu_net_create(env, &net, &options, &built, &err), VXD_INVALID_ARGUMENT);
    net.outputs[0].kind = VXD_NET_OUT_ROWS;
    options.max_rows = 0;
    CHECK_INT(gpu_net_create(env, &net, &options, &built, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "max_rows");
    options.max_rows = 100;
    options.max_samples = VXD_SPARSE_MAX_SAMPLES + 1;
    CHECK_INT(gpu_net_create(env, &net, &options, &built, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "max_samples");
    options.max_samples = 2;
    options.precision = (enum vxd_net_precision)4;
    CHECK_INT(gpu_net_create(env, &net, &options, &built, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "precision");
    (void)snprintf(net.layers[1].name, VXD_NET_NAME_BYTES, "layer0");
    options.precision = VXD_NET_FP32;
    CHECK_INT(gpu_net_create(env, &net, &options, &built, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "layers[layer0].name");
    net.layers[1].name[0] = 0;
    CHECK_INT(gpu_net_create(env, &net, &options, &built, &err), VXD_INVALID_ARGUMENT);
    net.shape[2] = -1;
    CHECK_INT(gpu_net_create(env, &net, &options, &built, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "shape");
    net.shape[2] = 0;
    net.n_channels = 0;
    CHECK_INT(gpu_net_create(env, &net, &options, &built, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "n_channels");
    gpu_net_free(&net);
}

static void test_network_of_wrong_outputs_or_options_is_refused(void)
{
    gpu_each_backend(wrong_outputs);
}

static const struct vxd_test tests[] = {
    {"network_of_a_wrong_layer_is_refused_with_its_name",
     test_network_of_a_wrong_layer_is_refused_with_its_name},
    {"network_of_layers_that_do_not_fit_is_refused_with_the_name",
     test_network_of_layers_that_do_not_fit_is_refused_with_the_name},
    {"network_of_wrong_outputs_or_options_is_refused",
     test_network_of_wrong_outputs_or_options_is_refused},
};

VXD_TEST_MAIN(tests)
