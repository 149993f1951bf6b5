// SPDX-License-Identifier: Apache-2.0
/* Fails every allocation of the engine in turn: linked with --wrap, so that malloc, calloc
 * and posix_memalign of the engine come here. Leaks show under AddressSanitizer. */
#include <errno.h>

#include "tests/unit/gpu_helpers.h"
#include "tests/unit/test.h"

static int n_until_failure = -1; /* allocations that still succeed; -1: none fails */

void *__real_malloc(size_t n_bytes);
void *__real_calloc(size_t n, size_t n_bytes);
int __real_posix_memalign(void **out, size_t alignment, size_t n_bytes);
void *__wrap_malloc(size_t n_bytes);
void *__wrap_calloc(size_t n, size_t n_bytes);
int __wrap_posix_memalign(void **out, size_t alignment, size_t n_bytes);

static bool must_fail(void)
{
    if (n_until_failure < 0) {
        return false;
    }
    n_until_failure--;
    return n_until_failure < 0;
}

void *__wrap_malloc(size_t n_bytes)
{
    return must_fail() ? NULL : __real_malloc(n_bytes);
}

void *__wrap_calloc(size_t n, size_t n_bytes)
{
    return must_fail() ? NULL : __real_calloc(n, n_bytes);
}

int __wrap_posix_memalign(void **out, size_t alignment, size_t n_bytes)
{
    return must_fail() ? ENOMEM : __real_posix_memalign(out, alignment, n_bytes);
}

/* Decodes and voxelizes a small cloud in a context of its own. */
static enum vxd_status use_engine(struct vxd_err *err)
{
    static const float records[8] = {0, 0, 0, 1, 1, 1, 1, 1};
    static const uint32_t starts[2] = {0, 2};
    struct vxd_context_options options = {.backend = VXD_BACKEND_CPU, .n_threads = 1};
    struct vxd_context *context = NULL;
    struct vxd_queue *queue = NULL;
    struct vxd_buffer data = {0};
    struct vxd_buffer positions = {0};
    struct vxd_buffer host = {0};
    struct vxd_cloud cloud = {.n_points = 2, .point_step = 16};
    struct vxd_voxelize_args args = {.n_points = 2,
                                     .batch_starts = starts,
                                     .n_batch = 1,
                                     .rule = VXD_RULE_MINKOWSKI,
                                     .size_m = {1, 1, 1}};
    struct vxd_voxels out = {.capacity = 2};
    enum vxd_status status;

    VXD_TRY(vxd_context_create(&options, &context, err));
    VXD_TRY(vxd_queue_create(context, &queue, err));
    VXD_TRY(vxd_host_alloc(context, 4096, &host, err));
    VXD_TRY(vxd_device_alloc(queue, sizeof records, &data, err));
    VXD_TRY(vxd_device_alloc(queue, 24, &positions, err));
    VXD_TRY(vxd_queue_copy(queue, data.ptr, records, sizeof records, err));
    VXD_TRY(vxd_queue_fill(queue, positions.ptr, 0, 24, err));
    cloud.data = data.ptr;
    for (uint32_t i = 0; i < 3; i++) {
        cloud.position[i] = (struct vxd_field){4 * i, VXD_FLOAT32, 1, 0};
        cloud.rotation[4 * i] = 1;
    }
    VXD_TRY(vxd_cloud_decode(queue, &cloud, positions.ptr, NULL, err));
    args.positions = positions.ptr;
    out.totals = host.ptr;
    out.starts = (uint32_t *)host.ptr + 512;
    VXD_TRY(vxd_voxelize(queue, &args, &out, err));
    VXD_TRY(vxd_queue_wait(queue, err));
    CHECK_INT(out.starts[1], 2);
out:
    if (queue != NULL) {
        vxd_device_free(queue, &data);
        vxd_device_free(queue, &positions);
    }
    if (context != NULL) {
        vxd_host_free(context, &host);
    }
    vxd_queue_destroy(queue);
    vxd_context_destroy(context);
    return status;
}

static void test_every_allocation_failing_in_turn_is_answered(void)
{
    int k = 0;
    enum vxd_status status;

    do {
        struct vxd_err err = {0};

        n_until_failure = k++;
        status = use_engine(&err);
        n_until_failure = -1;
        CHECK(status == VXD_OK || status == VXD_RESOURCE_EXHAUSTED);
        CHECK_INT(err.code, status);
    } while (status != VXD_OK && k < 1000);
    CHECK(k > 15); /* the engine does allocate through the wrappers */
    CHECK_INT(status, VXD_OK);
}

/* Budgets may be more than the machine has: what the cache keeps is given back first. */
static void test_machine_without_memory_gets_kept_blocks_back(void)
{
    struct vxd_context_options options = {.backend = VXD_BACKEND_CPU, .n_threads = 1};
    struct vxd_context *context = NULL;
    struct vxd_buffer small = {0};
    struct vxd_buffer large = {0};
    struct vxd_err err = {0};

    REQUIRE(vxd_context_create(&options, &context, &err) == VXD_OK);
    CHECK_INT(vxd_host_alloc(context, 100000, &small, &err), VXD_OK);
    vxd_host_free(context, &small); /* kept */
    n_until_failure = 1;            /* the record is given, the memory is not */
    CHECK_INT(vxd_host_alloc(context, 200000, &large, &err), VXD_OK);
    CHECK_INT(n_until_failure, -1);
    vxd_host_free(context, &large);
    CHECK_INT(vxd_host_alloc(context, 200000, &large, &err), VXD_OK); /* kept again */
    n_until_failure = 1; /* now nothing is kept: refused */
    CHECK_INT(vxd_host_alloc(context, 100000, &small, &err), VXD_RESOURCE_EXHAUSTED);
    n_until_failure = -1;
    CHECK(small.ptr == NULL && small.n_bytes == 0);
    vxd_host_free(context, &large);
    vxd_context_destroy(context);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_every_allocation_failing_in_turn_is_answered),
    VXD_TEST(test_machine_without_memory_gets_kept_blocks_back),
};

VXD_TEST_MAIN(tests)
