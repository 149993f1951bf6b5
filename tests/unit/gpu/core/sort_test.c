// SPDX-License-Identifier: Apache-2.0
/* Sort against qsort, scan against a running sum. */
#include "gpu/core/core.h"
#include "tests/support/gpu/gpu_helpers.h"
#include "tests/support/test.h"

static const size_t sizes[] = {0,    1,    2,    255,  256,   257,   1023,
                               1024, 1025, 5000, 8191, 16385, 100000};

enum {
    N_SIZES = sizeof sizes / sizeof sizes[0]
};

struct pair {
    uint64_t key;
    uint64_t part; /* the bits that are sorted */
    uint32_t value;
};

static int compare_pairs(const void *a, const void *b)
{
    const struct pair *x = a;
    const struct pair *y = b;

    if (x->part != y->part) {
        return x->part < y->part ? -1 : 1;
    }
    return x->value < y->value ? -1 : 1; /* values are places, which checks stability */
}

static uint64_t part_of(uint64_t key, int begin_bit, int end_bit)
{
    uint64_t part = key >> begin_bit;

    return end_bit - begin_bit == 64
               ? part
               : part & (((uint64_t)1 << (end_bit - begin_bit)) - 1);
}

static void check_sort(struct gpu_env *env, size_t n, uint64_t key_mask, int begin_bit,
                       int end_bit)
{
    struct pair *pairs = gpu_alloc(n * sizeof *pairs);
    uint64_t *keys = gpu_alloc(n * sizeof *keys);
    uint32_t *values = gpu_alloc(n * sizeof *values);
    size_t scratch_bytes = vxd_sort_pairs_scratch_bytes(env->queue, n);
    struct vxd_buffer b[5];
    struct vxd_err err = {0};
    uint64_t seed = n + key_mask;
    size_t n_wrong = 0;

    for (size_t i = 0; i < n; i++) {
        keys[i] = gpu_random(&seed) & key_mask;
        values[i] = (uint32_t)i;
        pairs[i] =
            (struct pair){keys[i], part_of(keys[i], begin_bit, end_bit), values[i]};
    }
    b[0] = gpu_to_device(env, keys, n * sizeof *keys);
    b[1] = gpu_to_device(env, values, n * sizeof *values);
    b[2] = gpu_to_device(env, NULL, n * sizeof *keys);
    b[3] = gpu_to_device(env, NULL, n * sizeof *values);
    b[4] = gpu_to_device(env, NULL, scratch_bytes);
    CHECK(scratch_bytes >= 256);
    CHECK_INT(vxd_sort_pairs(env->queue, b[0].ptr, b[1].ptr, b[2].ptr, b[3].ptr, n,
                             begin_bit, end_bit, b[4].ptr, scratch_bytes, &err),
              VXD_OK);
    gpu_wait(env);
    free(keys);
    free(values);
    keys = gpu_to_host(env, &b[0]);
    values = gpu_to_host(env, &b[1]);
    qsort(pairs, n, sizeof *pairs, compare_pairs);
    for (size_t i = 0; i < n; i++) {
        n_wrong += keys[i] != pairs[i].key || values[i] != pairs[i].value ? 1 : 0;
    }
    if (n_wrong > 0) {
        (void)fprintf(stderr, "%s: %zu of %zu wrong, mask %llx, bits [%d, %d)\n",
                      env->name, n_wrong, n, (unsigned long long)key_mask, begin_bit,
                      end_bit);
    }
    CHECK_INT(n_wrong, 0);
    for (int i = 0; i < 5; i++) {
        vxd_device_free(env->queue, &b[i]);
    }
    free(keys);
    free(values);
    free(pairs);
}

static void all_sorts(struct gpu_env *env)
{
    for (int i = 0; i < N_SIZES; i++) {
        check_sort(env, sizes[i], UINT64_MAX, 0, 64);
        check_sort(env, sizes[i], UINT64_MAX, 13, 37);
        check_sort(env, sizes[i], UINT64_MAX, 63, 64);
        check_sort(env, sizes[i], 0, 0, 64);                     /* all equal */
        check_sort(env, sizes[i], 7, 0, 33);                     /* many equal */
        check_sort(env, sizes[i], 0xf0000000000000f0ULL, 0, 64); /* gaps */
        check_sort(env, sizes[i], 0xfff, 0, 12);
    }
    /* more pieces than the number of threads asks for */
    check_sort(env, 2200000, 0xfffff, 0, 20);
}

static void test_sort_of_any_bits_equals_stable_qsort(void)
{
    gpu_each_backend(all_sorts);
}

static void bad_sorts(struct gpu_env *env)
{
    struct vxd_buffer b = gpu_to_device(env, NULL, 4096);
    size_t scratch_bytes = vxd_sort_pairs_scratch_bytes(env->queue, 1);
    struct vxd_err err = {0};
    static const int bits[][2] = {{-1, 8}, {8, 8}, {9, 8}, {0, 65}};

    for (int i = 0; i < 4; i++) {
        CHECK_INT(vxd_sort_pairs(env->queue, b.ptr, b.ptr, b.ptr, b.ptr, 1, bits[i][0],
                                 bits[i][1], b.ptr, scratch_bytes, &err),
                  VXD_INVALID_ARGUMENT);
        CHECK_STR(err.field, "begin_bit");
    }
    CHECK_INT(vxd_sort_pairs_scratch_bytes(env->queue, (size_t)INT32_MAX + 1), 0);
    CHECK_INT(vxd_sort_pairs(env->queue, b.ptr, b.ptr, b.ptr, b.ptr,
                             (size_t)INT32_MAX + 1, 0, 8, b.ptr, SIZE_MAX, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "n");
    CHECK_INT(vxd_sort_pairs(env->queue, b.ptr, b.ptr, b.ptr, b.ptr, 1, 0, 8, b.ptr,
                             scratch_bytes - 1, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "scratch_bytes");
    CHECK_INT(vxd_scan_scratch_bytes(env->queue, (size_t)INT32_MAX + 1), 0);
    CHECK_INT(vxd_scan_exclusive(env->queue, b.ptr, b.ptr, (size_t)INT32_MAX + 1, b.ptr,
                                 SIZE_MAX, &err),
              VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, "n");
    vxd_device_free(env->queue, &b);
}

static void test_sort_with_bad_arguments_names_the_field(void)
{
    gpu_each_backend(bad_sorts);
}

static void check_scan(struct gpu_env *env, size_t n, bool in_place)
{
    uint32_t *counts = gpu_alloc((n + 1) * sizeof *counts);
    size_t scratch_bytes = vxd_scan_scratch_bytes(env->queue, n);
    struct vxd_buffer in;
    struct vxd_buffer out;
    struct vxd_buffer scratch = gpu_to_device(env, NULL, scratch_bytes);
    uint64_t seed = n;
    uint32_t sum = 0;
    uint32_t *result;
    size_t n_wrong = 0;

    for (size_t i = 0; i < n + 1; i++) {
        counts[i] = (uint32_t)gpu_random(&seed); /* sums wrap around */
    }
    in = gpu_to_device(env, counts, (n + 1) * sizeof *counts);
    out = gpu_to_device(env, NULL, (n + 1) * sizeof *counts);
    CHECK_INT(vxd_scan_exclusive(env->queue, in.ptr, in_place ? in.ptr : out.ptr, n,
                                 scratch.ptr, scratch_bytes, NULL),
              VXD_OK);
    gpu_wait(env);
    result = gpu_to_host(env, in_place ? &in : &out);
    for (size_t i = 0; i <= n; i++) {
        n_wrong += result[i] != sum ? 1 : 0;
        sum += counts[i];
    }
    CHECK_INT(n_wrong, 0);
    vxd_device_free(env->queue, &in);
    vxd_device_free(env->queue, &out);
    vxd_device_free(env->queue, &scratch);
    free(result);
    free(counts);
}

static void all_scans(struct gpu_env *env)
{
    for (int i = 0; i < N_SIZES; i++) {
        check_scan(env, sizes[i], false);
        check_scan(env, sizes[i], true);
    }
}

static void test_scan_of_any_size_equals_running_sum(void)
{
    gpu_each_backend(all_scans);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_sort_of_any_bits_equals_stable_qsort),
    VXD_TEST(test_sort_with_bad_arguments_names_the_field),
    VXD_TEST(test_scan_of_any_size_equals_running_sum),
};

VXD_TEST_MAIN(tests)
