// SPDX-License-Identifier: Apache-2.0
/* Contexts, queues and memory. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/gpu/gpu_helpers.h"
#include "tests/support/test.h"

static void check_context(struct vxd_context_options options, enum vxd_status expected,
                          const char *field)
{
    struct vxd_context *context;
    struct vxd_err err = {0};

    CHECK_INT(vxd_context_create(&options, &context, &err), expected);
    CHECK(context == NULL);
    CHECK_STR(err.field, field);
    vxd_context_destroy(context);
}

static void test_context_with_bad_options_names_the_field(void)
{
    struct vxd_context_options cpu = {.backend = VXD_BACKEND_CPU};
    struct vxd_context_options options = cpu;
    char why[160] = "";

    options.backend = (enum vxd_backend)2;
    check_context(options, VXD_INVALID_ARGUMENT, "backend");
    options = cpu;
    options.device = 1;
    check_context(options, VXD_INVALID_ARGUMENT, "device");
    options.device = -1;
    check_context(options, VXD_INVALID_ARGUMENT, "device");
    options = cpu;
    options.n_threads = 257;
    check_context(options, VXD_INVALID_ARGUMENT, "n_threads");
    options.n_threads = -1;
    check_context(options, VXD_INVALID_ARGUMENT, "n_threads");
    options = (struct vxd_context_options){.backend = VXD_BACKEND_CUDA};
    if (vxd_cuda_device_count(why, sizeof why) == 0) {
        CHECK(why[0] != '\0');
        check_context(options, VXD_UNAVAILABLE, "backend");
    } else {
        options.device = 4096;
        check_context(options, VXD_INVALID_ARGUMENT, "device");
    }
}

static void describe(struct gpu_env *env)
{
    struct vxd_context_info info;
    struct vxd_memory_usage usage;

    vxd_context_get_info(env->context, &info);
    vxd_context_get_memory(env->context, &usage);
    CHECK_INT(info.backend, vxd_context_backend(env->context));
    CHECK(info.name[0] != '\0');
    CHECK(info.n_threads >= 1);
    CHECK(info.device_total_bytes > 0);
    CHECK(usage.device_budget_bytes > 0);
    CHECK(usage.host_budget_bytes > 0);
    CHECK(usage.device_budget_bytes <= info.device_total_bytes);
    CHECK(vxd_context_pool(env->context) != NULL);
    CHECK(vxd_queue_context(env->queue) == env->context);
    CHECK(!vxd_context_is_lost(env->context));
    CHECK_INT(info.backend == VXD_BACKEND_CUDA, info.n_multiprocessors > 0);
    CHECK_INT(info.backend == VXD_BACKEND_CUDA, info.compute_capability > 0);
}

static void test_context_describes_itself(void)
{
    gpu_each_backend(describe);
}

static void lose(struct gpu_env *env)
{
    struct vxd_queue *queue;
    struct vxd_buffer buffer = gpu_to_device(env, NULL, 100);
    struct vxd_err err = {0};

    CHECK_INT(vxd_queue_wait(env->queue, &err), VXD_OK);
    vxd_context_mark_lost(env->context);
    CHECK(vxd_context_is_lost(env->context));
    CHECK_INT(vxd_queue_create(env->context, &queue, &err), VXD_UNAVAILABLE);
    CHECK(queue == NULL);
    vxd_device_free(env->queue, &buffer);
    CHECK(vxd_queue_wait(env->queue, &err) != VXD_OK);
}

static void test_lost_context_refuses_work_and_can_be_destroyed(void)
{
    gpu_each_backend(lose);
}

static void copies(struct gpu_env *env)
{
    static const size_t sizes[] = {0, 1, 255, 262144, 262145, 3000000};

    for (int i = 0; i < 6; i++) {
        size_t n = sizes[i];
        unsigned char *host = gpu_alloc(n);
        unsigned char *back;
        struct vxd_buffer a;
        struct vxd_buffer b;
        size_t n_wrong = 0;

        for (size_t k = 0; k < n; k++) {
            host[k] = (unsigned char)(k * 7 + k / 256);
        }
        a = gpu_to_device(env, host, n);
        b = gpu_to_device(env, NULL, n);
        CHECK(n == 0 ? a.ptr == NULL : (uintptr_t)a.ptr % 256 == 0);
        CHECK_INT(vxd_queue_copy(env->queue, b.ptr, a.ptr, n, NULL), VXD_OK);
        CHECK_INT(vxd_queue_fill(env->queue, b.ptr, 9, n / 2, NULL), VXD_OK);
        back = gpu_to_host(env, &b);
        for (size_t k = 0; k < n; k++) {
            n_wrong += back[k] != (k < n / 2 ? 9 : host[k]) ? 1 : 0;
        }
        CHECK_INT(n_wrong, 0);
        vxd_device_free(env->queue, &a);
        vxd_device_free(env->queue, &b);
        CHECK(a.ptr == NULL && a.n_bytes == 0);
        free(back);
        free(host);
    }
    gpu_wait(env);
}

static void test_queue_copies_and_fills_run_in_order(void)
{
    gpu_each_backend(copies);
}

static void transfers(struct gpu_env *env)
{
    uint32_t numbers[1000];
    struct vxd_buffer device;
    struct vxd_buffer host;
    const void *up;
    const void *down;

    for (uint32_t i = 0; i < 1000; i++) {
        numbers[i] = i * i;
    }
    CHECK_INT(vxd_upload(env->queue, numbers, sizeof numbers, &device, &up, NULL),
              VXD_OK);
    CHECK_INT(vxd_download(env->queue, up, sizeof numbers, &host, &down, NULL), VXD_OK);
    gpu_wait(env);
    CHECK_INT(memcmp(down, numbers, sizeof numbers), 0);
    if (vxd_context_backend(env->context) == VXD_BACKEND_CPU) {
        CHECK(down == numbers); /* nothing is copied */
    }
    vxd_host_free(env->context, &host);
    vxd_device_free(env->queue, &device);
    gpu_wait(env);
}

static void test_upload_and_download_bring_the_same_bytes(void)
{
    gpu_each_backend(transfers);
}

/* A wait for a mark leaves what came later to the next wait, which must still run. */
static void marks(struct gpu_env *env)
{
    struct vxd_buffer device = gpu_to_device(env, NULL, 1000);
    struct vxd_buffer host;

    CHECK_INT(vxd_host_alloc(env->context, 2000, &host, NULL), VXD_OK);
    CHECK_INT(vxd_queue_fill(env->queue, device.ptr, 7, 1000, NULL), VXD_OK);
    CHECK_INT(vxd_queue_copy(env->queue, host.ptr, device.ptr, 1000, NULL), VXD_OK);
    CHECK_INT(vxd_queue_mark(env->queue, NULL), VXD_OK);
    CHECK_INT(vxd_queue_fill(env->queue, device.ptr, 9, 1000, NULL), VXD_OK);
    CHECK_INT(vxd_queue_copy(env->queue, (char *)host.ptr + 1000, device.ptr, 1000, NULL),
              VXD_OK);
    CHECK_INT(vxd_queue_wait_mark(env->queue, NULL), VXD_OK);
    CHECK_INT(((const char *)host.ptr)[0], 7);
    CHECK_INT(((const char *)host.ptr)[999], 7);
    gpu_wait(env);
    CHECK_INT(((const char *)host.ptr)[999], 7);
    CHECK_INT(((const char *)host.ptr)[1000], 9);
    CHECK_INT(((const char *)host.ptr)[1999], 9);
    CHECK_INT(vxd_queue_wait_mark(env->queue, NULL), VXD_OK); /* as of that wait */
    vxd_host_free(env->context, &host);
    vxd_device_free(env->queue, &device);
    gpu_wait(env);
}

static void test_wait_for_a_mark_has_what_came_before(void)
{
    gpu_each_backend(marks);
}

static void count_usage(struct gpu_env *env)
{
    struct vxd_memory_usage usage;
    struct vxd_buffer device = gpu_to_device(env, NULL, 100000);
    struct vxd_buffer host;

    CHECK_INT(vxd_host_alloc(env->context, 50000, &host, NULL), VXD_OK);
    CHECK((uintptr_t)host.ptr % 256 == 0);
    memset(host.ptr, 1, 50000);
    vxd_context_get_memory(env->context, &usage);
    CHECK(usage.device_bytes >= 100000 && usage.device_bytes < 125000);
    CHECK(usage.host_bytes >= 50000 && usage.host_bytes < 62500);
    gpu_wait(env);
    vxd_device_free(env->queue, &device);
    vxd_host_free(env->context, &host);
    gpu_wait(env);
    vxd_context_get_memory(env->context, &usage);
    CHECK_INT(usage.device_bytes, 0);
    CHECK_INT(usage.host_bytes, 0);
    CHECK(usage.device_peak_bytes >= 100000);
    CHECK(usage.host_peak_bytes >= 50000);
}

static void test_memory_usage_counts_what_is_handed_out(void)
{
    gpu_each_backend(count_usage);
}

static void test_allocation_over_the_budget_is_refused_and_the_rest_goes_on(void)
{
    struct gpu_env env;
    struct vxd_buffer a;
    struct vxd_buffer b;
    struct vxd_err err = {0};

    gpu_env_create(&env, VXD_BACKEND_CPU, 1, 1000000, 1000000);
    CHECK_INT(vxd_device_alloc(env.queue, 1000001, &a, &err), VXD_RESOURCE_EXHAUSTED);
    CHECK(a.ptr == NULL && a.n_bytes == 0);
    CHECK(strstr(err.message, "1000001") != NULL);
    CHECK(strstr(err.message, "1000000") != NULL);
    CHECK_INT(vxd_device_alloc(env.queue, SIZE_MAX, &a, &err), VXD_RESOURCE_EXHAUSTED);
    CHECK_INT(vxd_host_alloc(env.context, SIZE_MAX, &a, &err), VXD_RESOURCE_EXHAUSTED);
    /* exactly at the limit */
    CHECK_INT(vxd_device_alloc(env.queue, 1000000, &a, &err), VXD_OK);
    CHECK_INT(vxd_device_alloc(env.queue, 1, &b, &err), VXD_RESOURCE_EXHAUSTED);
    CHECK_INT(vxd_host_alloc(env.context, 999999, &b, &err), VXD_OK);
    vxd_host_free(env.context, &b);
    vxd_device_free(env.queue, &a);
    /* Freed in queue order: not before the queue has reached it. */
    CHECK_INT(vxd_device_alloc(env.queue, 1000000, &b, &err), VXD_RESOURCE_EXHAUSTED);
    gpu_wait(&env);
    CHECK_INT(vxd_device_alloc(env.queue, 1000000, &b, &err), VXD_OK);
    vxd_device_free(env.queue, &b);
    gpu_wait(&env);
    gpu_env_destroy(&env);
}

/* Kept blocks of all sizes must be evicted for new ones, and never exceed the budget. */
static void test_kept_blocks_make_room_for_others(void)
{
    struct gpu_env env;
    uint64_t seed = 3;

    gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, 1 << 20);
    for (int i = 0; i < 2000; i++) {
        struct vxd_buffer buffers[4];
        struct vxd_memory_usage usage;

        for (int k = 0; k < 4; k++) {
            size_t n = gpu_random(&seed) % (200000 - 1) + 1;

            REQUIRE(vxd_host_alloc(env.context, n, &buffers[k], NULL) == VXD_OK);
            memset(buffers[k].ptr, k, n);
        }
        vxd_context_get_memory(env.context, &usage);
        CHECK(usage.host_bytes <= 1 << 20);
        for (int k = 0; k < 4; k++) {
            vxd_host_free(env.context, &buffers[k]);
        }
    }
    gpu_env_destroy(&env);
}

static int64_t resident_bytes(void)
{
    char line[128] = "";
    char *rest = line;
    FILE *statm = fopen("/proc/self/statm", "r");

    if (statm != NULL) {
        CHECK(fgets(line, sizeof line, statm) != NULL);
        (void)fclose(statm);
    }
    (void)strtoll(line, &rest, 10);
    return strtoll(rest, NULL, 10) * sysconf(_SC_PAGESIZE);
}

/* Allocates, writes to all of it, and frees. */
static void use(struct vxd_context *context, size_t n_bytes)
{
    struct vxd_buffer buffer;

    REQUIRE(vxd_host_alloc(context, n_bytes, &buffer, NULL) == VXD_OK);
    memset(buffer.ptr, 1, n_bytes);
    vxd_host_free(context, &buffer);
}

static void test_trim_frees_what_nobody_took_since_the_last_one(void)
{
    const size_t often = (size_t)24 << 20;
    const size_t once = (size_t)100 << 20;
    struct gpu_env env;
    int64_t full;
    int64_t trimmed;

    gpu_env_create(&env, VXD_BACKEND_CPU, 1, 0, (size_t)256 << 20);
    use(env.context, often);
    use(env.context, once);
    vxd_context_trim(env.context); /* both have been in use since the start */
    full = resident_bytes();
    use(env.context, often);
    CHECK(resident_bytes() > full - (4 << 20));
    vxd_context_trim(env.context);
    trimmed = resident_bytes();
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    /* A sanitizer keeps freed memory, or frees its own of it, too. */
    CHECK(trimmed > full - (110 << 20));
    CHECK(trimmed < full - (90 << 20));
#else
    (void)trimmed;
#endif
    vxd_context_trim(env.context);
    vxd_context_trim(env.context); /* nothing is left */
    use(env.context, often);
    gpu_env_destroy(&env);
}

struct log_args {
    int *log;
    int value;
    enum vxd_status status;
};

static enum vxd_status log_job(struct vxd_pool *pool, const void *args,
                               struct vxd_err *err)
{
    const struct log_args *job = args;

    (void)pool;
    *job->log = *job->log * 10 + job->value;
    return job->status == VXD_OK ? VXD_OK
                                 : vxd_fail(err, job->status, "field", "as asked");
}

static void push_log(struct gpu_env *env, int *log, int value, enum vxd_status status)
{
    struct log_args args = {log, value, status};

    CHECK_INT(vxd_queue_push(env->queue, log_job, &args, sizeof args, NULL), VXD_OK);
}

static void test_faulting_job_stops_the_queue_until_the_wait_and_frees_still_run(void)
{
    struct gpu_env env;
    struct vxd_buffer buffer;
    struct vxd_memory_usage usage;
    struct vxd_err err = {0};
    char big[VXD_JOB_BYTES + 1] = {0};
    int log = 0;

    gpu_env_create(&env, VXD_BACKEND_CPU, 2, 0, 0);
    buffer = gpu_to_device(&env, NULL, 1000);
    push_log(&env, &log, 1, VXD_OK);
    push_log(&env, &log, 2, VXD_DATA_LOSS);
    push_log(&env, &log, 3, VXD_ABORTED);
    vxd_device_free(env.queue, &buffer);
    CHECK_INT(log, 0); /* nothing runs before the wait */
    CHECK_INT(vxd_queue_wait(env.queue, &err), VXD_DATA_LOSS);
    CHECK_INT(err.code, VXD_DATA_LOSS);
    CHECK_STR(err.field, "field");
    CHECK_INT(log, 12);
    vxd_context_get_memory(env.context, &usage);
    CHECK_INT(usage.device_bytes, 0);
    push_log(&env, &log, 4, VXD_OK);
    /* the wait has cleared the error */
    CHECK_INT(vxd_queue_wait(env.queue, &err), VXD_OK);
    CHECK_INT(log, 124);
    CHECK_INT(vxd_queue_push(env.queue, log_job, big, sizeof big, &err), VXD_INTERNAL);
    push_log(&env, &log, 5, VXD_OK);
    gpu_env_destroy(&env); /* destroying runs the queued work */
    CHECK_INT(log, 1245);
}

static void *use_own_queue(void *args)
{
    struct gpu_env env = *(struct gpu_env *)args;
    uint64_t seed = (uint64_t)(uintptr_t)&env;

    if (vxd_queue_create(env.context, &env.queue, NULL) != VXD_OK) {
        return args;
    }
    for (int i = 0; i < 50; i++) {
        size_t n = gpu_random(&seed) % 600000 + 1;
        struct vxd_buffer host;
        struct vxd_buffer buffer = gpu_to_device(&env, NULL, n);
        unsigned char *bytes = gpu_to_host(&env, &buffer);
        bool is_right = bytes[0] == 0xa5 && bytes[n - 1] == 0xa5;

        free(bytes);
        vxd_device_free(env.queue, &buffer);
        if (!is_right || vxd_host_alloc(env.context, n, &host, NULL) != VXD_OK) {
            return args;
        }
        vxd_host_free(env.context, &host);
    }
    vxd_queue_destroy(env.queue);
    return NULL;
}

static void many_queues(struct gpu_env *env)
{
    enum {
        N_QUEUES = 4
    };
    pthread_t threads[N_QUEUES];
    void *failed;

    for (int i = 0; i < N_QUEUES; i++) {
        REQUIRE(pthread_create(&threads[i], NULL, use_own_queue, env) == 0);
    }
    for (int i = 0; i < N_QUEUES; i++) {
        (void)pthread_join(threads[i], &failed);
        CHECK(failed == NULL);
    }
}

static void test_queues_of_several_threads_share_a_context(void)
{
    gpu_each_backend(many_queues);
}

static void test_layout_is_aligned_and_refuses_overflow(void)
{
    size_t total = 0;
    size_t offset = 99;

    CHECK(vxd_layout_add(&total, 3, 4, &offset));
    CHECK_INT(offset, 0);
    CHECK_INT(total, 256);
    CHECK(vxd_layout_add(&total, 0, 4, &offset));
    CHECK_INT(total, 256);
    CHECK(vxd_layout_add(&total, 257, 1, &offset));
    CHECK_INT(offset, 256);
    CHECK_INT(total, 768);
    CHECK(!vxd_layout_add(&total, SIZE_MAX / 2, 3, &offset));
    CHECK(!vxd_layout_add(&total, SIZE_MAX - 100, 1, &offset));
    CHECK(!vxd_layout_add(&total, SIZE_MAX - 600, 1, &offset));
    CHECK_INT(total, 768);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_context_with_bad_options_names_the_field),
    VXD_TEST(test_context_describes_itself),
    VXD_TEST(test_lost_context_refuses_work_and_can_be_destroyed),
    VXD_TEST(test_queue_copies_and_fills_run_in_order),
    VXD_TEST(test_upload_and_download_bring_the_same_bytes),
    VXD_TEST(test_wait_for_a_mark_has_what_came_before),
    VXD_TEST(test_memory_usage_counts_what_is_handed_out),
    VXD_TEST(test_allocation_over_the_budget_is_refused_and_the_rest_goes_on),
    VXD_TEST(test_kept_blocks_make_room_for_others),
    VXD_TEST(test_trim_frees_what_nobody_took_since_the_last_one),
    VXD_TEST(test_faulting_job_stops_the_queue_until_the_wait_and_frees_still_run),
    VXD_TEST(test_queues_of_several_threads_share_a_context),
    VXD_TEST(test_layout_is_aligned_and_refuses_overflow),
};

VXD_TEST_MAIN(tests)
