// SPDX-License-Identifier: Apache-2.0
/* Networks against the oracle in double, and each sample alone against the same sample
 * in a batch. */
#include "tests/support/sparse/net_helpers.h"
#include "tests/support/test.h"

static const int32_t bounded[3] = {14, 13, 11};
static const int32_t unbounded[3] = {0, 0, 0};
static const int32_t origin[3] = {0, 0, 0};
static const int32_t around[3] = {-5, -6, -4};

/* Every precision; each rounds what it stores. */
static void check_net(struct gpu_env *env, const struct gpu_net *net,
                      const struct gpu_net_cloud *cloud)
{
    bool is_cuda = vxd_context_backend(env->context) == VXD_BACKEND_CUDA;

    CHECK_INT(gpu_net_compare(env, net, cloud, VXD_NET_FP32, 1e-4), 0);
    CHECK_INT(gpu_net_compare(env, net, cloud, VXD_NET_TF32, is_cuda ? 1e-2 : 1e-4), 0);
    CHECK_INT(gpu_net_compare(env, net, cloud, VXD_NET_FP16, 2e-2), 0);
    CHECK_INT(gpu_net_compare(env, net, cloud, VXD_NET_BF16, 2e-1), 0);
}

static bool same_values(const struct gpu_net_result *alone,
                        const struct gpu_net_result *batch, size_t first, size_t n_values)
{
    return alone->n_values == n_values &&
           memcmp(alone->values, batch->values + first, n_values * sizeof(float)) == 0;
}

/* The rows of a sample in the batch are those of the sample alone, bit for bit. */
static void check_sample(const struct gpu_net_result *alone,
                         const struct gpu_net_result *batch, int sample)
{
    if (batch->dense_shape[0] > 0) {
        size_t n = batch->n_values / (size_t)batch->dense_shape[0];

        CHECK(same_values(alone, batch, (size_t)sample * n, n));
        return;
    }
    size_t n_channels = batch->labels != NULL ? 1 : (size_t)batch->n_channels;
    size_t first = batch->starts[sample];
    size_t n = batch->starts[sample + 1] - first;

    CHECK_INT(alone->n_rows, n);
    CHECK(same_values(alone, batch, first * n_channels, n * n_channels));
    for (size_t i = 0; i < n && alone->coords != NULL; i++) {
        CHECK(memcmp(alone->coords + 4 * i + 1, batch->coords + 4 * (first + i) + 1,
                     12) == 0);
    }
    if (alone->labels != NULL) {
        CHECK(memcmp(alone->labels, batch->labels + first, n * 4) == 0);
    }
}

static void check_batch(struct gpu_env *env, const struct gpu_net *net,
                        const struct gpu_net_cloud *cloud,
                        enum vxd_net_precision precision)
{
    struct vxd_net_options options = {precision, cloud->n_rows + 1, cloud->n_samples, 0};
    struct gpu_net_result batch[VXD_NET_MAX_OUTPUTS];
    struct gpu_net_result alone[VXD_NET_MAX_OUTPUTS];
    struct vxd_net *built;
    struct vxd_err err = {0};

    REQUIRE(gpu_net_create(env, net, &options, &built, &err) == VXD_OK);
    REQUIRE(gpu_net_run(env, built, cloud, batch, &err) == VXD_OK);
    for (int sample = 0; sample < cloud->n_samples; sample++) {
        struct gpu_net_cloud one;

        gpu_net_cloud_sample(cloud, sample, &one);
        REQUIRE(gpu_net_run(env, built, &one, alone, &err) == VXD_OK);
        for (int i = 0; i < net->n_outputs; i++) {
            check_sample(&alone[i], &batch[i], sample);
            gpu_net_result_free(&alone[i]);
        }
        gpu_net_cloud_free(&one);
    }
    for (int i = 0; i < net->n_outputs; i++) {
        gpu_net_result_free(&batch[i]);
    }
    vxd_net_destroy(env->queue, built);
    gpu_wait(env);
}

/* A whole network: all precisions; samples of which some are empty, none at all, and
 * each alone. */
static void check_whole(struct gpu_env *env, const struct gpu_net *net,
                        const int32_t lo[3])
{
    struct gpu_net_cloud cloud;

    gpu_net_cloud_make(&cloud, 5, 4, 1U << 1, net->n_channels, lo, bounded, 0.12);
    check_net(env, net, &cloud);
    check_batch(env, net, &cloud, VXD_NET_FP32);
    check_batch(env, net, &cloud, VXD_NET_FP16);
    gpu_net_cloud_free(&cloud);
    gpu_net_cloud_make(&cloud, 5, 2, 3, net->n_channels, lo, bounded, 0.12);
    CHECK_INT(cloud.n_rows, 0);
    CHECK_INT(gpu_net_compare(env, net, &cloud, VXD_NET_FP32, 1e-4), 0);
    gpu_net_cloud_free(&cloud);
}

/* --- whole networks ---------------------------------------------------------------------- */

/* Submanifold, strided, inverse, concatenation, residual, folded norms, dense and labels. */
static void make_unet(struct gpu_net *net)
{
    struct vxd_net_layer layer;
    int skips[2];
    int at;

    gpu_net_init(net, 5, bounded, VXD_NET_SPCONV);
    skips[0] = gpu_net_conv(net, VXD_NET_SUBM, VXD_NET_INPUT, 12, 3, 1, 1);
    at = gpu_net_conv(net, VXD_NET_CONV, skips[0], 16, 3, 2, 1);
    layer = gpu_net_layer(net, VXD_NET_SUBM, at);
    layer.n_channels = 16;
    layer.kernel[0] = layer.kernel[1] = layer.kernel[2] = 3;
    layer.add = at;
    layer.act = VXD_ACT_RELU;
    skips[1] = gpu_net_weighted(net, &layer);
    at = gpu_net_conv(net, VXD_NET_CONV, skips[1], 20, 2, 2, 0);
    at = gpu_net_conv(net, VXD_NET_SUBM, at, 20, 3, 1, 0);
    for (int level = 1; level >= 0; level--) {
        int size = level == 1 ? 2 : 3;

        layer = gpu_net_layer(net, VXD_NET_INVERSE, at);
        layer.of_map = level == 1 ? 3 : 1;
        layer.n_channels = level == 1 ? 16 : 12;
        layer.kernel[0] = layer.kernel[1] = layer.kernel[2] = size;
        at = gpu_net_weighted(net, &layer);
        at = gpu_net_two(net, VXD_NET_CAT, at, skips[level]);
        at = gpu_net_conv(net, VXD_NET_SUBM, at, 16, 3, 1, 1);
        if (level == 1) {
            gpu_net_output(net, at, VXD_NET_OUT_DENSE_BEV);
        }
    }
    at = gpu_net_conv(net, VXD_NET_LINEAR, at, 7, 1, 1, 0);
    gpu_net_output(net, at, VXD_NET_OUT_ROWS);
    gpu_net_output(net, at, VXD_NET_OUT_ARGMAX);
}

static void spconv_unet(struct gpu_env *env)
{
    struct gpu_net net;

    make_unet(&net);
    check_whole(env, &net, origin);
    gpu_net_free(&net);
}

static void test_network_unet_of_spconv_is_the_oracles(void)
{
    gpu_each_backend(spconv_unet);
}

/* Like MinkLoc3D and SVT-Net: transposed convolutions onto earlier sets and generative
 * ones, unions, GeM, attention, tokens. */
static void make_minkowski(struct gpu_net *net)
{
    struct vxd_net_layer layer;
    int stem;
    int down;
    int lateral;
    int up;
    int at;

    gpu_net_init(net, 1, unbounded, VXD_NET_MINKOWSKI);
    stem = gpu_net_conv(net, VXD_NET_CONV, VXD_NET_INPUT, 8, 5, 1, 0);
    at = gpu_net_conv(net, VXD_NET_CONV, stem, 8, 2, 2, 0);
    down = gpu_net_conv(net, VXD_NET_CONV, at, 8, 3, 2, 0);
    lateral = gpu_net_conv(net, VXD_NET_LINEAR, at, 8, 1, 1, 0);
    layer = gpu_net_layer(net, VXD_NET_TRANSPOSE, down);
    layer.n_channels = 8;
    for (int axis = 0; axis < 3; axis++) {
        layer.kernel[axis] = 3;
        layer.stride[axis] = 2;
    }
    layer.onto = at;
    up = gpu_net_weighted(net, &layer);
    at = gpu_net_two(net, VXD_NET_ADD, up, lateral);
    layer.onto = VXD_NET_NONE;
    layer.kernel[0] = layer.kernel[1] = layer.kernel[2] = 2;
    up = gpu_net_weighted(net, &layer);
    lateral = gpu_net_two(net, VXD_NET_ADD_UNION, up, lateral);
    gpu_net_output(net, lateral, VXD_NET_OUT_ROWS);
    gpu_net_output(net, gpu_net_two(net, VXD_NET_ADD_UNION, lateral, at),
                   VXD_NET_OUT_ROWS);
    layer = gpu_net_layer(net, VXD_NET_ATTENTION, at);
    layer.n_inputs = 3;
    layer.inputs[1] = down;
    layer.inputs[2] = down;
    layer.alpha = 0.35f;
    at = gpu_net_add(net, &layer);
    down = gpu_net_conv(net, VXD_NET_LINEAR, at, 4, 1, 1, 0);
    down = gpu_net_two(net, VXD_NET_TOKENS, down, at);
    gpu_net_output(net, down, VXD_NET_OUT_ROWS);
    layer.inputs[0] = at;
    layer.inputs[1] = down;
    layer.inputs[2] = down;
    at = gpu_net_two(net, VXD_NET_ADD, gpu_net_add(net, &layer), at);
    layer = gpu_net_layer(net, VXD_NET_GLOBAL_GEM, at);
    layer.alpha = 3.0f;
    layer.eps = 1e-6f;
    at = gpu_net_add(net, &layer);
    layer = gpu_net_layer(net, VXD_NET_L2_NORM, at);
    layer.eps = 1e-12f;
    gpu_net_output(net, gpu_net_add(net, &layer), VXD_NET_OUT_ROWS);
}

static void minkowski(struct gpu_env *env)
{
    struct gpu_net net;

    make_minkowski(&net);
    check_whole(env, &net, around);
    gpu_net_free(&net);
}

static void test_network_of_minkowski_is_the_oracles(void)
{
    gpu_each_backend(minkowski);
}

/* --- layer by layer ---------------------------------------------------------------------- */

static void check_small(struct gpu_env *env, struct gpu_net *net, const int32_t lo[3],
                        bool all_precisions)
{
    struct gpu_net_cloud cloud;

    gpu_net_cloud_make(&cloud, 9, 3, 1U << 1, net->n_channels, lo, bounded, 0.2);
    if (all_precisions) {
        check_net(env, net, &cloud);
    } else {
        CHECK_INT(gpu_net_compare(env, net, &cloud, VXD_NET_FP32, 1e-4), 0);
    }
    check_batch(env, net, &cloud, VXD_NET_BF16);
    gpu_net_cloud_free(&cloud);
    gpu_net_free(net);
}

static void pools(struct gpu_env *env)
{
    static const int sizes[4][3] = {{2, 2, 0}, {3, 2, 1}, {1, 2, 0}, {1, 1, 0}};

    for (int semantics = 0; semantics < 2; semantics++) {
        struct gpu_net net;

        gpu_net_init(&net, 3, semantics == 0 ? bounded : unbounded,
                     (enum vxd_net_semantics)semantics);
        for (int i = 0; i < 12; i++) {
            static const enum vxd_net_op ops[3] = {VXD_NET_POOL_MAX, VXD_NET_POOL_AVG,
                                                   VXD_NET_POOL_SUM};
            struct vxd_net_layer layer = gpu_net_layer(&net, ops[i % 3], VXD_NET_INPUT);
            int pool;

            for (int axis = 0; axis < 3; axis++) {
                layer.kernel[axis] = sizes[i / 3][0];
                layer.stride[axis] = sizes[i / 3][1];
                layer.padding[axis] = sizes[i / 3][2];
            }
            pool = gpu_net_add(&net, &layer);
            gpu_net_output(&net, pool, VXD_NET_OUT_ROWS);
            layer = gpu_net_layer(&net, VXD_NET_UNPOOL, pool);
            layer.of_map = pool;
            gpu_net_output(&net, gpu_net_add(&net, &layer), VXD_NET_OUT_ROWS);
        }
        check_small(env, &net, semantics == 0 ? origin : around, true);
    }
}

static void test_network_pools_are_the_oracles(void)
{
    gpu_each_backend(pools);
}

static void globals_and_norms(struct gpu_env *env)
{
    static const enum vxd_net_op ops[6] = {VXD_NET_GLOBAL_MAX, VXD_NET_GLOBAL_AVG,
                                           VXD_NET_GLOBAL_GEM, VXD_NET_BATCH_NORM,
                                           VXD_NET_BATCH_NORM, VXD_NET_SOFTMAX};
    static const float scale[6] = {1, 0.5f, 2, -1, 0.25f, 3};
    static const float bias[6] = {0, 0.5f, -0.25f, 1, 0, 0.125f};
    struct gpu_net net;

    gpu_net_init(&net, 6, bounded, VXD_NET_SPCONV);
    for (int i = 0; i < 6; i++) {
        struct vxd_net_layer layer = gpu_net_layer(&net, ops[i], VXD_NET_INPUT);

        layer.alpha = 2.5f;
        layer.eps = 1e-3f;
        if (ops[i] == VXD_NET_BATCH_NORM) {
            layer.n_channels = 6;
            layer.scale = i == 3 ? scale : NULL;
            layer.bias = i == 3 ? bias : NULL;
            layer.act = i == 3 ? VXD_ACT_LEAKY_RELU : VXD_ACT_NONE;
        }
        gpu_net_output(&net, gpu_net_add(&net, &layer), VXD_NET_OUT_ROWS);
    }
    check_small(env, &net, origin, true);
}

static void test_network_global_pools_and_norms_are_the_oracles(void)
{
    gpu_each_backend(globals_and_norms);
}

/* Statistics over all samples: samples of a batch are then not independent, so only
 * the oracle is compared. */
static void whole_batch_norm(struct gpu_env *env)
{
    struct gpu_net net;
    struct gpu_net_cloud cloud;
    struct vxd_net_layer layer;

    gpu_net_init(&net, 4, unbounded, VXD_NET_SPCONV);
    layer = gpu_net_layer(&net, VXD_NET_BATCH_NORM, VXD_NET_INPUT);
    layer.n_channels = 4;
    layer.eps = 1e-5f;
    layer.whole_batch = true;
    layer.act = VXD_ACT_RELU;
    gpu_net_output(&net, gpu_net_add(&net, &layer), VXD_NET_OUT_ROWS);
    gpu_net_cloud_make(&cloud, 4, 3, 1, 4, around, bounded, 0.3);
    check_net(env, &net, &cloud);
    gpu_net_cloud_free(&cloud);
    gpu_net_free(&net);
}

static void test_network_norm_over_the_whole_batch_is_the_oracles(void)
{
    gpu_each_backend(whole_batch_norm);
}

static void row_by_row(struct gpu_env *env)
{
    static const float scale[5] = {2, -1, 0.5f, 1, 1.5f};
    static const float bias[5] = {0.5f, 0, -1, 0.25f, 0};
    struct gpu_net net;

    gpu_net_init(&net, 5, unbounded, VXD_NET_SPCONV);
    for (int act = 0; act < 5; act++) {
        struct vxd_net_layer layer = gpu_net_layer(&net, VXD_NET_AFFINE, VXD_NET_INPUT);

        layer.n_channels = 5;
        layer.act = (enum vxd_net_act)act;
        layer.alpha = 0.1f;
        layer.scale = act != 1 ? scale : NULL;
        layer.bias = act != 2 ? bias : NULL;
        gpu_net_output(&net, gpu_net_add(&net, &layer), VXD_NET_OUT_ROWS);
        layer = gpu_net_layer(&net, VXD_NET_ACT, act);
        layer.act = VXD_ACT_SIGMOID;
        if (act == 4) {
            gpu_net_output(&net, gpu_net_add(&net, &layer), VXD_NET_OUT_ROWS);
        }
    }
    struct vxd_net_layer layer = gpu_net_layer(&net, VXD_NET_ADD, 0);

    /* Three terms, one of them twice; a concatenation of tensors that are in other
     * buffers already. */
    layer.n_inputs = 4;
    layer.inputs[1] = 1;
    layer.inputs[2] = VXD_NET_INPUT;
    layer.inputs[3] = 1;
    layer.act = VXD_ACT_GELU;
    gpu_net_output(&net, gpu_net_add(&net, &layer), VXD_NET_OUT_ROWS);
    layer.op = VXD_NET_CAT;
    layer.act = VXD_ACT_NONE;
    gpu_net_output(&net, gpu_net_add(&net, &layer), VXD_NET_OUT_ROWS);
    gpu_net_output(&net, gpu_net_two(&net, VXD_NET_CAT, 7, 0), VXD_NET_OUT_ROWS);
    check_small(env, &net, around, true);
}

static void test_network_of_rows_is_the_oracles(void)
{
    gpu_each_backend(row_by_row);
}

static void embedding(struct gpu_env *env)
{
    static const float scale[2] = {4, 1};
    static float table[12];
    struct gpu_net net;
    struct vxd_net_layer layer;

    for (int i = 0; i < 12; i++) {
        table[i] = 0.125f * (float)i;
    }
    gpu_net_init(&net, 2, unbounded, VXD_NET_SPCONV);
    layer = gpu_net_layer(&net, VXD_NET_AFFINE, VXD_NET_INPUT);
    layer.n_channels = 2;
    layer.scale = scale;
    (void)gpu_net_add(&net, &layer);
    layer = gpu_net_layer(&net, VXD_NET_EMBEDDING, 0);
    layer.n_channels = 4;
    layer.weights = table;
    layer.n_weights = 12;
    gpu_net_output(&net, gpu_net_add(&net, &layer), VXD_NET_OUT_ROWS);
    check_small(env, &net, around, false);
}

static void test_network_embedding_is_the_oracles(void)
{
    gpu_each_backend(embedding);
}

/* The host reads counts that features decide twice: a prune, layers on the remaining
 * rows, a prune of those, and layers back to finer rows. */
static void prunes(struct gpu_env *env)
{
    struct gpu_net net;
    struct vxd_net_layer layer;
    int kept;
    int at;

    gpu_net_init(&net, 3, bounded, VXD_NET_SPCONV);
    at = gpu_net_conv(&net, VXD_NET_SUBM, VXD_NET_INPUT, 8, 3, 1, 1);
    layer = gpu_net_layer(&net, VXD_NET_PRUNE, at);
    layer.n_inputs = 2;
    layer.inputs[1] = VXD_NET_INPUT;
    layer.alpha = -0.25f;
    kept = gpu_net_add(&net, &layer);
    at = gpu_net_conv(&net, VXD_NET_CONV, kept, 6, 3, 2, 1);
    layer = gpu_net_layer(&net, VXD_NET_PRUNE, at);
    layer.n_inputs = 2;
    layer.inputs[1] = at;
    layer.alpha = 0.0f;
    gpu_net_output(&net, gpu_net_add(&net, &layer), VXD_NET_OUT_ROWS);
    layer = gpu_net_layer(&net, VXD_NET_INVERSE, at);
    layer.of_map = at;
    layer.n_channels = 8;
    layer.kernel[0] = layer.kernel[1] = layer.kernel[2] = 3;
    at = gpu_net_weighted(&net, &layer);
    gpu_net_output(&net, gpu_net_two(&net, VXD_NET_CAT, at, kept), VXD_NET_OUT_ROWS);
    gpu_net_output(&net, gpu_net_two(&net, VXD_NET_ADD_UNION, kept, 0),
                   VXD_NET_OUT_DENSE_BEV);
    check_small(env, &net, origin, false);
}

static void test_network_prunes_are_the_oracles(void)
{
    gpu_each_backend(prunes);
}

/* Kernels of all kinds in both semantics, on bounded and unbounded tensors. */
static void geometries(struct gpu_env *env)
{
    static const int kernels[6][3] = {{3, 1, 1}, {1, 2, 4}, {5, 3, 1},
                                      {2, 2, 2}, {4, 3, 2}, {3, 3, 3}};
    static const int strides[6][3] = {{2, 1, 1}, {1, 2, 2}, {1, 1, 1},
                                      {2, 2, 2}, {3, 1, 2}, {2, 2, 2}};

    for (int semantics = 0; semantics < 2; semantics++) {
        struct gpu_net net;

        gpu_net_init(&net, 4, semantics == 0 ? bounded : unbounded,
                     (enum vxd_net_semantics)semantics);
        for (int i = 0; i < 6; i++) {
            struct vxd_net_layer layer = gpu_net_layer(&net, VXD_NET_CONV, VXD_NET_INPUT);
            int down;

            layer.n_channels = 6;
            for (int axis = 0; axis < 3; axis++) {
                layer.kernel[axis] = kernels[i][axis];
                layer.stride[axis] = strides[i][axis];
                layer.padding[axis] = i % 3;
                layer.dilation[axis] = i == 2 || i == 5 ? 2 : 1;
            }
            down = gpu_net_weighted(&net, &layer);
            gpu_net_output(&net, down, VXD_NET_OUT_ROWS);
            layer.op = VXD_NET_TRANSPOSE;
            layer.inputs[0] = down;
            layer.output_padding[0] = i == 0 ? 1 : 0;
            gpu_net_output(&net, gpu_net_weighted(&net, &layer), VXD_NET_OUT_ROWS);
            layer.onto = VXD_NET_INPUT;
            gpu_net_output(&net, gpu_net_weighted(&net, &layer), VXD_NET_OUT_ROWS);
        }
        check_small(env, &net, semantics == 0 ? origin : around, false);
    }
}

static void test_network_geometries_are_the_oracles(void)
{
    gpu_each_backend(geometries);
}

/* One network, frame after frame of about the same size with others between, in memory
 * that earlier runs have used: each gives the bits of a network that has run nothing
 * else. */
static void again_and_again(struct gpu_env *env)
{
    struct gpu_net net;
    struct vxd_net_options options = {VXD_NET_FP16, 4096, 2, 0};
    struct vxd_net *used;
    struct vxd_err err = {0};

    make_unet(&net);
    REQUIRE(gpu_net_create(env, &net, &options, &used, &err) == VXD_OK);
    for (int frame = 0; frame < 16; frame++) {
        struct gpu_net_result results[2][VXD_NET_MAX_OUTPUTS];
        struct gpu_net_cloud cloud;
        struct vxd_net *fresh;

        gpu_net_cloud_make(&cloud, (uint64_t)frame, 2, frame % 7 == 6 ? 2U : 0U,
                           net.n_channels, origin, bounded, frame % 5 == 4 ? 0.35 : 0.15);
        REQUIRE(gpu_net_create(env, &net, &options, &fresh, &err) == VXD_OK);
        REQUIRE(gpu_net_run(env, used, &cloud, results[0], &err) == VXD_OK);
        REQUIRE(gpu_net_run(env, fresh, &cloud, results[1], &err) == VXD_OK);
        for (int i = 0; i < net.n_outputs; i++) {
            CHECK_INT(results[0][i].n_rows, results[1][i].n_rows);
            CHECK(same_values(&results[0][i], &results[1][i], 0, results[1][i].n_values));
            gpu_net_result_free(&results[0][i]);
            gpu_net_result_free(&results[1][i]);
        }
        vxd_net_destroy(env->queue, fresh);
        gpu_wait(env);
        gpu_net_cloud_free(&cloud);
    }
    vxd_net_destroy(env->queue, used);
    gpu_wait(env);
    gpu_net_free(&net);
}

static void test_network_run_again_and_again_is_the_one_run_once(void)
{
    gpu_each_backend(again_and_again);
}

/* Clouds with the same number of voxels, dense or scattered, so that sets derived from
 * them differ widely: sizes that one run predicts from another may not fit, and no
 * result may show it. */
static void predictions(struct gpu_env *env)
{
    static const int32_t lo[3] = {0, 0, 0};
    static const int32_t shape[3] = {40, 40, 40};
    static const int32_t sides[3][3] = {{8, 8, 8}, {10, 10, 10}, {40, 40, 40}};
    static const double shares[3] = {1.0, 0.51, 0.008};
    static const int order[] = {0, 0, 1, 2, 2, 0, 2, 1, 1, 0};
    struct vxd_net_options options = {VXD_NET_FP32, 4096, 1, 0};
    struct gpu_net net;
    struct vxd_net *built = NULL;
    struct vxd_err err = {0};
    int at;

    gpu_net_init(&net, 2, shape, VXD_NET_SPCONV);
    at = gpu_net_conv(&net, VXD_NET_SUBM, VXD_NET_INPUT, 4, 3, 1, 1);
    at = gpu_net_conv(&net, VXD_NET_CONV, at, 4, 3, 2, 1);
    at = gpu_net_conv(&net, VXD_NET_CONV, at, 4, 3, 2, 1);
    gpu_net_output(&net, at, VXD_NET_OUT_ROWS);
    REQUIRE(gpu_net_create(env, &net, &options, &built, &err) == VXD_OK);
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        struct gpu_net_cloud cloud;
        struct gpu_net_result together;
        struct gpu_net_result alone;
        struct vxd_net *fresh = NULL;
        int kind = order[i];

        gpu_net_cloud_make(&cloud, i, 1, 0, 2, lo, sides[kind], shares[kind]);
        REQUIRE(gpu_net_create(env, &net, &options, &fresh, &err) == VXD_OK);
        REQUIRE(gpu_net_run(env, built, &cloud, &together, &err) == VXD_OK);
        REQUIRE(gpu_net_run(env, fresh, &cloud, &alone, &err) == VXD_OK);
        CHECK(alone.n_rows > 0);
        CHECK_INT(together.n_rows, alone.n_rows);
        CHECK_INT(together.n_values, alone.n_values);
        CHECK(memcmp(together.coords, alone.coords, alone.n_rows * 16) == 0);
        CHECK(memcmp(together.values, alone.values, alone.n_values * 4) == 0);
        gpu_net_result_free(&together);
        gpu_net_result_free(&alone);
        gpu_net_cloud_free(&cloud);
        vxd_net_destroy(env->queue, fresh);
    }
    vxd_net_destroy(env->queue, built);
    gpu_wait(env);
    gpu_net_free(&net);
}

static void test_network_guesses_sizes_and_is_right_in_the_end(void)
{
    gpu_each_backend(predictions);
}

static const struct vxd_test tests[] = {
    {"network_unet_of_spconv_is_the_oracles", test_network_unet_of_spconv_is_the_oracles},
    {"network_of_minkowski_is_the_oracles", test_network_of_minkowski_is_the_oracles},
    {"network_pools_are_the_oracles", test_network_pools_are_the_oracles},
    {"network_global_pools_and_norms_are_the_oracles",
     test_network_global_pools_and_norms_are_the_oracles},
    {"network_norm_over_the_whole_batch_is_the_oracles",
     test_network_norm_over_the_whole_batch_is_the_oracles},
    {"network_of_rows_is_the_oracles", test_network_of_rows_is_the_oracles},
    {"network_embedding_is_the_oracles", test_network_embedding_is_the_oracles},
    {"network_prunes_are_the_oracles", test_network_prunes_are_the_oracles},
    {"network_geometries_are_the_oracles", test_network_geometries_are_the_oracles},
    {"network_run_again_and_again_is_the_one_run_once",
     test_network_run_again_and_again_is_the_one_run_once},
    VXD_TEST(test_network_guesses_sizes_and_is_right_in_the_end),
};

VXD_TEST_MAIN(tests)
