// SPDX-License-Identifier: Apache-2.0
/* Graphs of layers; only in builds with CUDA. */
#include "tests/support/sparse/layer_rows.h"
#include "tests/support/test.h"

static enum vxd_status enqueue_load(struct vxd_queue *queue, void *args,
                                    struct vxd_err *err)
{
    return vxd_net_load_cuda(queue, args, err);
}

static enum vxd_status enqueue_fault(struct vxd_queue *queue, void *args,
                                     struct vxd_err *err)
{
    enum vxd_status status = vxd_net_load_cuda(queue, args, err);

    return status != VXD_OK ? status
                            : vxd_fail(err, VXD_INTERNAL, "here", "as the test wants");
}

/* Launched on another queue than the one it was recorded on, with the data in memory
 * at that time. */
static void graph(struct gpu_env *env)
{
    static const float features[6] = {1, 2, 3, 4, 5, 6};
    static const int32_t good[3] = {0, 1, 2};
    static const int32_t bad[3] = {0, 2, 1};
    struct vxd_net_load_call call = {VXD_NET_FP16, NULL, NULL, 3, {NULL, 2, 2}};
    struct vxd_net_graph *recorded;
    struct vxd_queue *other;
    struct vxd_err err = {0};
    struct vxd_buffer d_features;
    struct vxd_buffer d_rows;
    struct gpu_rows out;

    if (vxd_context_backend(env->context) != VXD_BACKEND_CUDA) {
        return;
    }
    REQUIRE(vxd_queue_create(env->context, &other, &err) == VXD_OK);
    d_features = gpu_to_device(env, features, sizeof features);
    d_rows = gpu_to_device(env, good, sizeof good);
    out = gpu_rows_make(env, VXD_NET_FP16, NULL, 3, 2, 0);
    call.features = d_features.ptr;
    call.rows = d_rows.ptr;
    call.out = out.rows;
    CHECK_INT(vxd_net_graph_record_cuda(env->queue, enqueue_fault, &call, false,
                                        &recorded, &err),
              VXD_INTERNAL);
    CHECK_STR(err.field, "here");
    CHECK(recorded == NULL);
    REQUIRE(vxd_net_graph_record_cuda(env->queue, enqueue_load, &call, false, &recorded,
                                      &err) == VXD_OK);
    for (int i = 0; i < 4; i++) {
        const int32_t *rows = i == 1 ? bad : good;
        float *actual;

        (void)vxd_queue_copy(other, d_rows.ptr, rows, sizeof good, &err);
        CHECK_INT(vxd_net_graph_launch_cuda(other, recorded, &err), VXD_OK);
        CHECK_INT(vxd_net_graph_launch_cuda(other, recorded, &err), VXD_OK);
        CHECK_INT(vxd_queue_wait(other, &err), i == 1 ? VXD_INVALID_ARGUMENT : VXD_OK);
        gpu_wait(env);
        actual = gpu_rows_fetch(env, &out);
        CHECK(memcmp(actual, features, sizeof features) == 0);
        free(actual);
    }
    vxd_net_graph_destroy_cuda(env->context, recorded);
    vxd_net_graph_destroy_cuda(env->context, NULL);
    vxd_device_free(env->queue, &d_features);
    vxd_device_free(env->queue, &d_rows);
    gpu_rows_free(env, &out);
    vxd_queue_destroy(other);
}

static void test_graph_launched_on_another_queue_reports_there(void)
{
    gpu_each_backend(graph);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_graph_launched_on_another_queue_reports_there),
};

VXD_TEST_MAIN(tests)
