// SPDX-License-Identifier: Apache-2.0
/* Runs of networks that must fail, several runs at a time, and what layers share. */
#include "tests/support/sparse/net_helpers.h"
#include "tests/support/test.h"

static const int32_t bounded[3] = {16, 16, 16};
static const int32_t unbounded[3] = {0, 0, 0};
static const int32_t lo[3] = {0, 0, 0};

/* --- runs -------------------------------------------------------------------------------- */

/* A cloud that breaks a rule in row 5: the queue reports it and still works. */
static void wrong_clouds(struct gpu_env *env)
{
    struct vxd_net_options options = {VXD_NET_FP16, 4096, 2, 0};
    struct gpu_net net;
    struct gpu_net_cloud cloud;
    struct gpu_net_result results[2];
    struct vxd_net *built = NULL;
    struct vxd_err err = {0};

    gpu_net_make_base(&net);
    REQUIRE(gpu_net_create(env, &net, &options, &built, &err) == VXD_OK);
    for (int wrong = 0; wrong < 6; wrong++) {
        int32_t *c;

        gpu_net_cloud_make(&cloud, 3, 2, 0, 2, lo, bounded, 0.1);
        c = cloud.coords + 20;
        if (wrong == 0) {
            memmove(c, c + 4, 16); /* twice */
        } else if (wrong == 1) {
            memmove(c, c + 8, 16); /* order */
            memmove(c + 8, cloud.coords, 16);
        } else if (wrong == 2) {
            c[0] = 2; /* no such sample */
        } else if (wrong == 3) {
            c[3] = 16; /* outside the shape */
        } else if (wrong == 4) {
            cloud.n_samples = 3; /* more than the network takes */
        } else {
            cloud.n_samples = 0;
        }
        CHECK_INT(gpu_net_run(env, built, &cloud, results, &err), VXD_INVALID_ARGUMENT);
        gpu_net_cloud_free(&cloud);
    }
    gpu_net_cloud_make(&cloud, 3, 2, 0, 2, lo, bounded, 0.9);
    CHECK(cloud.n_rows > options.max_rows);
    CHECK_INT(gpu_net_run(env, built, &cloud, results, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "n_rows");
    gpu_net_cloud_free(&cloud);
    gpu_net_cloud_make(&cloud, 3, 2, 0, 2, lo, bounded, 0.1);
    CHECK_INT(gpu_net_run(env, built, &cloud, results, &err), VXD_OK);
    gpu_net_result_free(&results[0]);
    gpu_net_cloud_free(&cloud);
    vxd_net_destroy(env->queue, built);
    gpu_wait(env);
    gpu_net_free(&net);
}

static void test_network_run_of_a_wrong_cloud_is_refused(void)
{
    gpu_each_backend(wrong_clouds);
}

/* With less and less memory a run ends in RESOURCE_EXHAUSTED, and frees all its
 * memory. */
static void budgets(struct gpu_env *env)
{
    struct vxd_net_options options = {VXD_NET_FP32, 4096, 2, 0};
    struct vxd_memory_usage before;
    struct vxd_memory_usage after;
    struct gpu_net net;
    struct gpu_net_cloud cloud;
    struct gpu_net_result results[2];
    struct vxd_net *built = NULL;
    struct vxd_err err = {0};
    int n_exhausted = 0;
    int n_fine = 0;

    gpu_net_make_base(&net);
    gpu_net_output(&net, 1, VXD_NET_OUT_DENSE_BEV);
    gpu_net_cloud_make(&cloud, 3, 2, 0, 2, lo, bounded, 0.2);
    vxd_context_get_memory(env->context, &before);
    for (size_t kib = 1; kib <= 1 << 15; kib *= 2) {
        enum vxd_status status;

        options.max_bytes = kib << 10;
        status = gpu_net_create(env, &net, &options, &built, &err);
        if (status == VXD_OK) {
            status = gpu_net_run(env, built, &cloud, results, &err);
        }
        CHECK(status == VXD_OK || status == VXD_RESOURCE_EXHAUSTED);
        n_exhausted += status == VXD_RESOURCE_EXHAUSTED;
        if (status == VXD_OK) {
            n_fine++;
            gpu_net_result_free(&results[0]);
            gpu_net_result_free(&results[1]);
        }
        vxd_net_destroy(env->queue, built);
        gpu_wait(env);
    }
    vxd_context_get_memory(env->context, &after);
    CHECK(n_exhausted > 4);
    CHECK(n_fine > 2);
    CHECK_INT(after.device_bytes, before.device_bytes);
    CHECK_INT(after.host_bytes, before.host_bytes);
    gpu_net_cloud_free(&cloud);
    gpu_net_free(&net);
}

static void test_network_above_its_budget_is_refused(void)
{
    gpu_each_backend(budgets);
}

struct turn {
    struct gpu_net_cloud cloud;
    struct vxd_buffer coords;
    struct vxd_buffer features;
    struct vxd_queue *queue;
    struct vxd_net_run *run;
    bool more;
};

static void begin_turn(struct gpu_env *env, const struct vxd_net *net, int number,
                       struct turn *turn)
{
    struct vxd_net_input input = {.n_samples = 1};
    struct vxd_err err = {0};

    gpu_net_cloud_make(&turn->cloud, (uint64_t)number, 1, 0, 2, lo, bounded,
                       0.05 + 0.1 * number);
    turn->coords = gpu_to_device(env, turn->cloud.coords, turn->cloud.n_rows * 16);
    turn->features = gpu_to_device(env, turn->cloud.features, turn->cloud.n_rows * 8);
    input.coords = turn->coords.ptr;
    input.features = turn->features.ptr;
    input.n_rows = turn->cloud.n_rows;
    turn->more = true;
    CHECK_INT(vxd_queue_create(env->context, &turn->queue, &err), VXD_OK);
    CHECK_INT(vxd_net_run_create(turn->queue, net, &input, &turn->run, &err), VXD_OK);
}

/* Runs of one network take steps alternately, each on its own queue; each gives the
 * result that it gives alone. */
static void turns(struct gpu_env *env)
{
    struct vxd_net_options options = {VXD_NET_FP32, 4096, 2, 0};
    struct turn all[3];
    struct gpu_net net;
    struct vxd_net *built = NULL;
    struct vxd_err err = {0};
    int n_more = 3;

    gpu_net_make_base(&net);
    REQUIRE(gpu_net_create(env, &net, &options, &built, &err) == VXD_OK);
    for (int i = 0; i < 3; i++) {
        begin_turn(env, built, i, &all[i]);
    }
    while (n_more > 0) {
        n_more = 0;
        for (int i = 0; i < 3; i++) {
            if (all[i].more) {
                REQUIRE(vxd_net_run_step(all[i].queue, all[i].run, &all[i].more, &err) ==
                        VXD_OK);
            }
        }
        for (int i = 0; i < 3; i++) {
            CHECK_INT(vxd_queue_wait(all[i].queue, &err), VXD_OK);
            n_more += all[i].more;
        }
    }
    for (int i = 0; i < 3; i++) {
        struct gpu_net_result together;
        struct gpu_net_result alone;

        gpu_net_fetch(env, built, all[i].run, 1, 0, &together);
        REQUIRE(gpu_net_run(env, built, &all[i].cloud, &alone, &err) == VXD_OK);
        CHECK_INT(together.n_values, alone.n_values);
        CHECK(memcmp(together.values, alone.values, alone.n_values * 4) == 0);
        gpu_net_result_free(&together);
        gpu_net_result_free(&alone);
        vxd_net_run_destroy(all[i].queue, all[i].run);
        vxd_queue_destroy(all[i].queue);
        vxd_device_free(env->queue, &all[i].coords);
        vxd_device_free(env->queue, &all[i].features);
        gpu_net_cloud_free(&all[i].cloud);
    }
    vxd_net_destroy(env->queue, built);
    gpu_wait(env);
    gpu_net_free(&net);
}

static void test_network_runs_in_turns_are_the_ones_alone(void)
{
    gpu_each_backend(turns);
}

/* A run may be destroyed after any step; results that it has not computed are refused. */
static void given_up(struct gpu_env *env)
{
    struct vxd_net_options options = {VXD_NET_FP32, 4096, 2, 0};
    struct gpu_net net;
    struct vxd_net *built = NULL;
    struct vxd_err err = {0};

    gpu_net_make_base(&net);
    REQUIRE(gpu_net_create(env, &net, &options, &built, &err) == VXD_OK);
    for (int n_steps = 0; n_steps < 6; n_steps++) {
        struct vxd_net_result result;
        struct vxd_net_cost cost;
        struct turn turn;
        bool is_over = false;

        begin_turn(env, built, 1, &turn);
        for (int i = 0; i < n_steps && turn.more; i++) {
            CHECK_INT(vxd_queue_wait(turn.queue, &err), VXD_OK);
            CHECK_INT(vxd_net_run_step(turn.queue, turn.run, &turn.more, &err), VXD_OK);
            is_over = !turn.more;
        }
        CHECK_INT(vxd_net_run_result(turn.run, 0, &result, &err),
                  is_over ? VXD_OK : VXD_FAILED_PRECONDITION);
        CHECK_INT(vxd_net_run_result(turn.run, 1, &result, &err), VXD_INVALID_ARGUMENT);
        CHECK_INT(vxd_net_run_get_cost(turn.queue, turn.run, &cost, &err),
                  is_over ? VXD_OK : VXD_FAILED_PRECONDITION);
        if (is_over) {
            CHECK_INT(vxd_net_run_step(turn.queue, turn.run, &turn.more, &err),
                      VXD_FAILED_PRECONDITION);
        }
        vxd_net_run_destroy(turn.queue, turn.run);
        vxd_queue_destroy(turn.queue);
        vxd_device_free(env->queue, &turn.coords);
        vxd_device_free(env->queue, &turn.features);
        gpu_net_cloud_free(&turn.cloud);
    }
    vxd_net_destroy(env->queue, built);
    gpu_wait(env);
    gpu_net_free(&net);
}

static void test_network_run_given_up_leaves_nothing(void)
{
    gpu_each_backend(given_up);
}

/* --- sharing and memory ------------------------------------------------------------------ */

/* Layers with the same rows and taps share one map, whatever their names are. */
static void shares(struct gpu_env *env)
{
    struct vxd_net_options options = {VXD_NET_FP32, 4096, 2, 0};
    struct gpu_net net;
    struct vxd_net *built = NULL;
    struct vxd_net_info info;
    struct vxd_err err = {0};
    int at;

    gpu_net_init(&net, 2, bounded, VXD_NET_SPCONV);
    at = gpu_net_conv(&net, VXD_NET_SUBM, VXD_NET_INPUT, 2, 3, 1, 1);
    /* its padding differs from all others */
    at = gpu_net_conv(&net, VXD_NET_SUBM, at, 2, 3, 1, 0);
    at = gpu_net_conv(&net, VXD_NET_SUBM, at, 2, 1, 1, 0); /* needs no map */
    at = gpu_net_conv(&net, VXD_NET_CONV, at, 2, 3, 2, 1);
    (void)gpu_net_conv(&net, VXD_NET_CONV, at, 4, 3, 2, 1); /* no output uses it */
    at = gpu_net_two(&net, VXD_NET_ADD, at,
                     gpu_net_conv(&net, VXD_NET_CONV, 0, 2, 3, 2, 1));
    gpu_net_output(&net, at, VXD_NET_OUT_ROWS);
    REQUIRE(gpu_net_create(env, &net, &options, &built, &err) == VXD_OK);
    vxd_net_get_info(built, &info);
    CHECK_INT(info.n_layers, 7);
    CHECK_INT(info.n_coord_sets, 2);
    CHECK_INT(info.n_maps, 2);
    CHECK_INT(info.n_outputs, 1);
    CHECK(vxd_net_get_output(built, 1) == NULL);
    CHECK_STR(vxd_net_get_output(built, 0)->name, "out0");
    vxd_net_destroy(env->queue, built);
    gpu_wait(env);
    gpu_net_free(&net);
}

static void test_network_shares_sets_and_maps_by_content(void)
{
    gpu_each_backend(shares);
}

/* The cost of a run on a box in which a fraction of the cells is occupied. */
static struct vxd_net_cost cost_of(struct gpu_env *env, const struct gpu_net *net,
                                   const int32_t n[3], double share, size_t *n_rows)
{
    struct vxd_net_options options = {VXD_NET_FP32, 1 << 16, 1, 0};
    struct vxd_memory_usage before;
    struct vxd_memory_usage after;
    struct vxd_net *built = NULL;
    struct turn turn = {.more = true};
    struct vxd_net_input input = {.n_samples = 1};
    struct vxd_net_cost cost = {0};
    struct vxd_err err = {0};

    CHECK_INT(gpu_net_create(env, net, &options, &built, &err), VXD_OK);
    gpu_net_cloud_make(&turn.cloud, 1, 1, 0, 2, lo, n, share);
    vxd_context_get_memory(env->context, &before);
    turn.coords = gpu_to_device(env, turn.cloud.coords, turn.cloud.n_rows * 16);
    turn.features = gpu_to_device(env, turn.cloud.features, turn.cloud.n_rows * 8);
    input.coords = turn.coords.ptr;
    input.features = turn.features.ptr;
    input.n_rows = turn.cloud.n_rows;
    *n_rows = turn.cloud.n_rows;
    CHECK_INT(vxd_net_run_create(env->queue, built, &input, &turn.run, &err), VXD_OK);
    while (turn.more &&
           vxd_net_run_step(env->queue, turn.run, &turn.more, &err) == VXD_OK) {
        gpu_wait(env);
    }
    CHECK_INT(vxd_net_run_get_cost(env->queue, turn.run, &cost, &err), VXD_OK);
    vxd_net_run_destroy(env->queue, turn.run);
    vxd_device_free(env->queue, &turn.coords);
    vxd_device_free(env->queue, &turn.features);
    gpu_wait(env);
    vxd_context_get_memory(env->context, &after);
    CHECK_INT(after.device_bytes, before.device_bytes);
    vxd_net_destroy(env->queue, built);
    gpu_wait(env);
    gpu_net_cloud_free(&turn.cloud);
    return cost;
}

/* Twenty layers one after another need two buffers, not twenty; all memory is freed. */
static void reuses(struct gpu_env *env)
{
    static const int32_t n[3] = {32, 32, 16};
    struct gpu_net net;
    struct vxd_net_cost cost;
    size_t n_rows;
    int at = VXD_NET_INPUT;

    gpu_net_init(&net, 2, unbounded, VXD_NET_SPCONV);
    for (int i = 0; i < 20; i++) {
        at = gpu_net_conv(&net, VXD_NET_LINEAR, at, 64, 1, 1, 0);
    }
    gpu_net_output(&net, at, VXD_NET_OUT_ARGMAX);
    cost = cost_of(env, &net, n, 0.9, &n_rows);
    CHECK(cost.live_bytes >= 2 * n_rows * 64 * 4);
    CHECK(cost.peak_bytes <= cost.live_bytes * 5 / 2);
    CHECK(cost.peak_bytes < 4 * n_rows * 64 * 4);
    CHECK(cost.useful_flops > 0 && cost.compulsory_bytes > 0);
    gpu_net_free(&net);
}

/* Sets of strided layers, whose bounds grow eightfold a level; about as many voxels a
 * level as in a scan. */
static void bounds_its_coord_sets(struct gpu_env *env)
{
    static const int32_t shape[3] = {256, 256, 64};
    static const int32_t n[3] = {64, 64, 48};
    struct gpu_net net;
    struct vxd_net_cost cost;
    size_t n_rows;
    int at = VXD_NET_INPUT;

    gpu_net_init(&net, 2, shape, VXD_NET_SPCONV);
    for (int level = 0; level < 4; level++) {
        at = gpu_net_conv(&net, VXD_NET_SUBM, at, 16, 3, 1, 1);
        at = gpu_net_conv(&net, VXD_NET_CONV, at, 16, 3, 2, 1);
    }
    gpu_net_output(&net, at, VXD_NET_OUT_ROWS);
    cost = cost_of(env, &net, n, 0.12, &n_rows);
    CHECK(n_rows > 20000);
    CHECK(cost.peak_bytes <= cost.live_bytes * 5 / 2);
    gpu_net_free(&net);
}

static void test_network_of_strided_layers_takes_little_more_than_it_needs(void)
{
    gpu_each_backend(bounds_its_coord_sets);
}

static void test_network_reuses_memory_of_what_is_over(void)
{
    gpu_each_backend(reuses);
}

/* --- values that are not finite ----------------------------------------------------------- */

/* Runs with counts; *layer NULL where all values are finite. */
static void find_overflow(struct gpu_env *env, const struct vxd_net *net,
                          const struct gpu_net_cloud *cloud, const char **layer,
                          uint32_t *n_values)
{
    struct vxd_buffer coords = gpu_to_device(env, cloud->coords, cloud->n_rows * 16);
    struct vxd_buffer features = gpu_to_device(
        env, cloud->features, cloud->n_rows * (size_t)cloud->n_channels * sizeof(float));
    const struct vxd_net_input input = {.coords = coords.ptr,
                                        .features = features.ptr,
                                        .n_rows = cloud->n_rows,
                                        .n_samples = cloud->n_samples,
                                        .counts_overflow = true};
    struct vxd_net_run *run = NULL;
    struct vxd_err err = {0};
    bool more = true;

    REQUIRE(vxd_net_run_create(env->queue, net, &input, &run, &err) == VXD_OK);
    CHECK_INT(vxd_net_run_find_overflow(env->queue, run, layer, n_values, &err),
              VXD_FAILED_PRECONDITION);
    while (more) {
        REQUIRE(vxd_net_run_step(env->queue, run, &more, &err) == VXD_OK);
        REQUIRE(vxd_queue_wait(env->queue, &err) == VXD_OK);
    }
    CHECK_INT(vxd_net_run_find_overflow(env->queue, run, layer, n_values, &err), VXD_OK);
    vxd_net_run_destroy(env->queue, run);
    vxd_device_free(env->queue, &coords);
    vxd_device_free(env->queue, &features);
    gpu_wait(env);
}

/* Two layers multiply by 600 each, times a scale of at least 0.5: 1 becomes more than fp16 holds. */
static void overflows(struct gpu_env *env)
{
    static const enum vxd_net_precision precisions[] = {VXD_NET_FP16, VXD_NET_FP32,
                                                        VXD_NET_BF16};

    for (int i = 0; i < 3; i++) {
        struct vxd_net_options options = {precisions[i], 4096, 2, 0};
        struct gpu_net net;
        struct gpu_net_cloud cloud;
        struct vxd_net *built = NULL;
        struct vxd_err err = {0};
        const char *layer = NULL;
        uint32_t n_values = 0;

        gpu_net_init(&net, 2, bounded, VXD_NET_SPCONV);
        for (int k = 0; k < 3; k++) {
            float *weights;

            (void)gpu_net_conv(&net, VXD_NET_LINEAR, k == 0 ? VXD_NET_INPUT : k - 1, 2, 1,
                               1, 0);
            weights = (float *)(uintptr_t)net.layers[k].weights;
            for (int w = 0; w < 4; w++) {
                weights[w] = k < 2 ? (w % 3 == 0 ? 600.0f : 0.0f) : 1.0f;
            }
        }
        gpu_net_output(&net, 2, VXD_NET_OUT_ROWS);
        REQUIRE(gpu_net_create(env, &net, &options, &built, &err) == VXD_OK);
        gpu_net_cloud_make(&cloud, 3, 2, 0, 2, lo, bounded, 0.1);
        for (size_t k = 0; k < cloud.n_rows * 2; k++) {
            cloud.features[k] = 0.001f;
        }
        find_overflow(env, built, &cloud, &layer, &n_values);
        CHECK(layer == NULL && n_values == 0);
        cloud.features[2 * 5] = 1;
        cloud.features[2 * 7 + 1] = 1;
        find_overflow(env, built, &cloud, &layer, &n_values);
        if (precisions[i] == VXD_NET_FP16) {
            REQUIRE(layer != NULL);
            CHECK_STR(layer, "layer1");
            CHECK_INT(n_values, 2);
        } else {
            CHECK(layer == NULL);
        }
        gpu_net_cloud_free(&cloud);
        vxd_net_destroy(env->queue, built);
        gpu_wait(env);
        gpu_net_free(&net);
    }
}

static void test_network_run_names_the_layer_that_overflows(void)
{
    gpu_each_backend(overflows);
}

static const struct vxd_test tests[] = {
    {"network_run_of_a_wrong_cloud_is_refused",
     test_network_run_of_a_wrong_cloud_is_refused},
    {"network_above_its_budget_is_refused", test_network_above_its_budget_is_refused},
    {"network_runs_in_turns_are_the_ones_alone",
     test_network_runs_in_turns_are_the_ones_alone},
    {"network_run_given_up_leaves_nothing", test_network_run_given_up_leaves_nothing},
    {"network_shares_sets_and_maps_by_content",
     test_network_shares_sets_and_maps_by_content},
    {"network_of_strided_layers_takes_little_more_than_it_needs",
     test_network_of_strided_layers_takes_little_more_than_it_needs},
    {"network_reuses_memory_of_what_is_over", test_network_reuses_memory_of_what_is_over},
    {"network_run_names_the_layer_that_overflows",
     test_network_run_names_the_layer_that_overflows},
};

VXD_TEST_MAIN(tests)
