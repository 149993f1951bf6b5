// SPDX-License-Identifier: Apache-2.0
/* Fails every allocation of building and running a network in turn; linked with
 * --wrap. AddressSanitizer reports leaks. */
#include "gpu/sparse/executor/executor.h"
#include "tests/support/failing_alloc.h"
#include "tests/support/test.h"

static const float weights[54] = {1, 2, 3, 4, 5, 6, 7, 8};

static struct vxd_net_layer make_layer(enum vxd_net_op op, int in, const char *name)
{
    struct vxd_net_layer layer = {.op = op,
                                  .inputs = {in},
                                  .n_inputs = 1,
                                  .stride = {1, 1, 1},
                                  .dilation = {1, 1, 1},
                                  .of_map = VXD_NET_NONE,
                                  .onto = VXD_NET_NONE,
                                  .add = VXD_NET_NONE};

    (void)snprintf(layer.name, sizeof layer.name, "%s", name);
    return layer;
}

/* A submanifold convolution with a norm, a strided pool, a prune of it, a union, tokens. */
static enum vxd_status add_layers(struct vxd_net_builder *builder, struct vxd_err *err)
{
    struct vxd_net_layer subm = make_layer(VXD_NET_SUBM, VXD_NET_INPUT, "subm");
    struct vxd_net_layer pool = make_layer(VXD_NET_POOL_AVG, 0, "pool");
    struct vxd_net_layer prune = make_layer(VXD_NET_PRUNE, 1, "prune");
    struct vxd_net_layer join = make_layer(VXD_NET_ADD_UNION, 1, "join");
    struct vxd_net_layer tokens = make_layer(VXD_NET_TOKENS, 3, "tokens");
    static const struct vxd_net_output outputs[2] = {{"rows", VXD_NET_OUT_ROWS, 3},
                                                     {"tokens", VXD_NET_OUT_ARGMAX, 4}};
    int id;
    enum vxd_status status;

    for (int axis = 0; axis < 3; axis++) {
        subm.kernel[axis] = 3;
        pool.kernel[axis] = 2;
        pool.stride[axis] = 2;
    }
    subm.n_channels = 2;
    subm.weights = weights;
    subm.n_weights = 54;
    subm.scale = weights;
    subm.bias = weights;
    prune.n_inputs = join.n_inputs = tokens.n_inputs = 2;
    prune.inputs[1] = 1;
    join.inputs[1] = 2;
    tokens.inputs[1] = 3;
    VXD_TRY(vxd_net_builder_add(builder, &subm, &id, err));
    VXD_TRY(vxd_net_builder_add(builder, &pool, &id, err));
    VXD_TRY(vxd_net_builder_add(builder, &prune, &id, err));
    VXD_TRY(vxd_net_builder_add(builder, &join, &id, err));
    VXD_TRY(vxd_net_builder_add(builder, &tokens, &id, err));
    VXD_TRY(vxd_net_builder_output(builder, &outputs[0], err));
    VXD_TRY(vxd_net_builder_output(builder, &outputs[1], err));
out:
    return status;
}

static enum vxd_status run_net(struct vxd_queue *queue, const struct vxd_net *net,
                               struct vxd_err *err)
{
    static const int32_t coords[12] = {0, 0, 0, 0, 0, 0, 0, 1, 0, 4, 4, 4};
    static const float features[3] = {1, 2, 3};
    struct vxd_net_input input = {
        .coords = coords, .features = features, .n_rows = 3, .n_samples = 2};
    struct vxd_net_run *run = NULL;
    struct vxd_net_result result;
    struct vxd_net_cost cost;
    bool more = true;
    enum vxd_status status;

    VXD_TRY(vxd_net_run_create(queue, net, &input, &run, err));
    while (more) {
        VXD_TRY(vxd_net_run_step(queue, run, &more, err));
        VXD_TRY(vxd_queue_wait(queue, err));
    }
    VXD_TRY(vxd_net_run_result(run, 0, &result, err));
    VXD_TRY(vxd_net_run_get_cost(queue, run, &cost, err));
    CHECK_INT(result.n_rows, 2);
    CHECK_INT(result.sample_starts[1], 2);
out:
    vxd_net_run_destroy(queue, run);
    return status;
}

/* A network in a context of its own, run twice. */
static enum vxd_status use_network(struct vxd_err *err)
{
    static const int32_t shape[3] = {8, 8, 8};
    struct vxd_context_options options = {.backend = VXD_BACKEND_CPU, .n_threads = 1};
    struct vxd_net_options net_options = {VXD_NET_FP32, 10, 2, 0};
    struct vxd_context *context = NULL;
    struct vxd_queue *queue = NULL;
    struct vxd_net_builder *builder = NULL;
    struct vxd_net *net = NULL;
    enum vxd_status status;

    VXD_TRY(vxd_context_create(&options, &context, err));
    VXD_TRY(vxd_queue_create(context, &queue, err));
    VXD_TRY(vxd_net_builder_create(1, shape, &builder, err));
    VXD_TRY(add_layers(builder, err));
    VXD_TRY(vxd_net_create(queue, builder, &net_options, &net, err));
    VXD_TRY(run_net(queue, net, err));
    VXD_TRY(run_net(queue, net, err));
out:
    if (queue != NULL) {
        vxd_net_destroy(queue, net);
    }
    vxd_net_builder_destroy(builder);
    vxd_queue_destroy(queue);
    vxd_context_destroy(context);
    return status;
}

static void test_network_with_every_allocation_failing_in_turn_leaves_nothing(void)
{
    int n_failed = 0;

    for (int k = 0; k < 2000; k++) {
        struct vxd_err err = {0};
        enum vxd_status status;
        bool has_failed;

        fail_allocation(k);
        status = use_network(&err);
        has_failed = stop_failing();
        if (!has_failed) {
            CHECK_INT(status, VXD_OK);
            break;
        }
        /* A cache that frees kept blocks may succeed all the same. */
        CHECK(status == VXD_RESOURCE_EXHAUSTED || status == VXD_OK);
        n_failed += status != VXD_OK;
    }
    CHECK(n_failed > 60);
}

static const struct vxd_test tests[] = {
    {"network_with_every_allocation_failing_in_turn_leaves_nothing",
     test_network_with_every_allocation_failing_in_turn_leaves_nothing},
};

VXD_TEST_MAIN(tests)
