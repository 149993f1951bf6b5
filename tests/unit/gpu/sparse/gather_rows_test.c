// SPDX-License-Identifier: Apache-2.0
/* Rows selected by an index, against plain loops and the compiler's conversions. */
#include <math.h>

#include "gpu/sparse/executor/executor.h"
#include "tests/support/gpu/gpu_helpers.h"
#include "tests/support/test.h"

enum {
    N_IN = 777
};

static int32_t *make_rows(size_t n, uint64_t *seed)
{
    int32_t *rows = gpu_alloc(n * sizeof *rows);

    for (size_t i = 0; i < n; i++) {
        rows[i] = (int32_t)(gpu_random(seed) % (N_IN + 20)) - 10;
    }
    return rows;
}

static bool is_row(int32_t row)
{
    return row >= 0 && row < N_IN;
}

static void check_floats(struct gpu_env *env, size_t n, size_t n_elements, uint64_t seed)
{
    float *in = gpu_alloc(N_IN * n_elements * sizeof *in);
    int32_t *rows = make_rows(n, &seed);
    struct vxd_gather_args args = {.n_in = N_IN,
                                   .dtype = VXD_FLOAT32,
                                   .n_elements = n_elements,
                                   .n = n,
                                   .fill = -7.5f,
                                   .out_dtype = VXD_FLOAT32};
    struct vxd_buffer d_in;
    struct vxd_buffer d_rows = gpu_to_device(env, rows, n * sizeof *rows);
    struct vxd_buffer d_out = gpu_to_device(env, NULL, n * n_elements * sizeof(float));
    float *out;
    size_t n_wrong = 0;

    for (size_t i = 0; i < N_IN * n_elements; i++) {
        in[i] = gpu_random_float(&seed, -100, 100);
    }
    d_in = gpu_to_device(env, in, N_IN * n_elements * sizeof *in);
    args.in = d_in.ptr;
    args.rows = d_rows.ptr;
    args.out = d_out.ptr;
    CHECK_INT(vxd_rows_gather(env->queue, &args, NULL), VXD_OK);
    out = gpu_to_host(env, &d_out);
    for (size_t i = 0; i < n; i++) {
        for (size_t c = 0; c < n_elements; c++) {
            float expected =
                is_row(rows[i]) ? in[(size_t)rows[i] * n_elements + c] : -7.5f;

            n_wrong += out[i * n_elements + c] != expected;
        }
    }
    CHECK_INT(n_wrong, 0);
    free(in);
    free(rows);
    free(out);
    vxd_device_free(env->queue, &d_in);
    vxd_device_free(env->queue, &d_rows);
    vxd_device_free(env->queue, &d_out);
}

static void rows_of_floats(struct gpu_env *env)
{
    static const size_t counts[] = {0, 1, 255, 256, 257, 40000};

    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        check_floats(env, counts[i], 1, i + 1);
        check_floats(env, counts[i], 19, i + 100);
    }
}

static void test_gather_random_rows_match_a_loop(void)
{
    gpu_each_backend(rows_of_floats);
}

static void integers_from_the_middle(struct gpu_env *env)
{
    static const int32_t in[] = {1, -2, 3, INT32_MIN, INT32_MAX, 6, 7, 8};
    static const int32_t rows[] = {3, -1, 4, 0};
    static const int32_t expected[] = {7, 8, 99, 99, 99, 99, 1, -2};
    struct vxd_buffer d_in = gpu_to_device(env, in, sizeof in);
    struct vxd_buffer d_rows = gpu_to_device(env, rows, sizeof rows);
    struct vxd_buffer d_out = gpu_to_device(env, NULL, sizeof expected);
    struct vxd_gather_args args = {.in = d_in.ptr,
                                   .n_in = 4,
                                   .dtype = VXD_INT32,
                                   .n_elements = 2,
                                   .rows = d_rows.ptr,
                                   .n = 4,
                                   .fill_integer = 99,
                                   .out_dtype = VXD_INT32,
                                   .out = d_out.ptr};
    int32_t *out;

    CHECK_INT(vxd_rows_gather(env->queue, &args, NULL), VXD_OK);
    out = gpu_to_host(env, &d_out);
    CHECK(memcmp(out, expected, sizeof expected) == 0);
    free(out);
    args.rows = NULL;
    args.first = 1;
    args.n = 3;
    CHECK_INT(vxd_rows_gather(env->queue, &args, NULL), VXD_OK);
    out = gpu_to_host(env, &d_out);
    CHECK(memcmp(out, in + 2, 3 * 2 * sizeof *in) == 0);
    free(out);
    vxd_device_free(env->queue, &d_in);
    vxd_device_free(env->queue, &d_rows);
    vxd_device_free(env->queue, &d_out);
}

static void test_gather_integers_and_first_rows_match(void)
{
    gpu_each_backend(integers_from_the_middle);
}

static void halves(struct gpu_env *env)
{
    static const float in[] = {0.0f, -0.0f,   1.0f,     -2.0f,    65504.0f, 65519.0f,
                               1e9f, -1e9f,   6.1e-5f,  5.96e-8f, 2.9e-8f,  1.0009766f,
                               0.1f, 1.0004f, 1.00049f, 0.333f,   INFINITY, NAN};
    /* From Python's struct.pack('<e'). */
    static const uint16_t expected[] = {0x0000, 0x8000, 0x3c00, 0xc000, 0x7bff, 0x7bff,
                                        0x7c00, 0xfc00, 0x03ff, 0x0001, 0x0000, 0x3c01,
                                        0x2e66, 0x3c00, 0x3c01, 0x3554, 0x7c00, 0x7e00};
    enum {
        N = sizeof in / sizeof in[0]
    };
    struct vxd_buffer d_in = gpu_to_device(env, in, sizeof in);
    struct vxd_buffer d_out = gpu_to_device(env, NULL, sizeof expected);
    const struct vxd_gather_args args = {.in = d_in.ptr,
                                         .n_in = N,
                                         .dtype = VXD_FLOAT32,
                                         .n_elements = 1,
                                         .n = N,
                                         .out_dtype = VXD_FLOAT16,
                                         .out = d_out.ptr};
    uint16_t *out;

    CHECK_INT(vxd_rows_gather(env->queue, &args, NULL), VXD_OK);
    out = gpu_to_host(env, &d_out);
    for (size_t i = 0; i < N; i++) {
        CHECK_INT(out[i], expected[i]);
    }
    free(out);
    vxd_device_free(env->queue, &d_in);
    vxd_device_free(env->queue, &d_out);
}

static void test_gather_to_float16_rounds_once_to_nearest(void)
{
    gpu_each_backend(halves);
}

static void refusals(struct gpu_env *env)
{
    const struct vxd_gather_args good = {.n_in = 4,
                                         .dtype = VXD_FLOAT32,
                                         .n_elements = 2,
                                         .n = 4,
                                         .out_dtype = VXD_FLOAT32};
    struct vxd_gather_args args[6];

    for (size_t i = 0; i < 6; i++) {
        args[i] = good;
    }
    args[0].dtype = VXD_FLOAT64;
    args[1].out_dtype = VXD_INT32;
    args[2].n_elements = 0;
    args[3].n_elements = SIZE_MAX / 4;
    args[4].first = 1;
    args[5].n = 5;
    for (size_t i = 0; i < 6; i++) {
        struct vxd_err err = {0};

        CHECK_INT(vxd_rows_gather(env->queue, &args[i], &err), VXD_INVALID_ARGUMENT);
        CHECK(err.field[0] != '\0');
    }
}

static void test_gather_bad_arguments_are_named(void)
{
    gpu_each_backend(refusals);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_gather_random_rows_match_a_loop),
    VXD_TEST(test_gather_integers_and_first_rows_match),
    VXD_TEST(test_gather_to_float16_rounds_once_to_nearest),
    VXD_TEST(test_gather_bad_arguments_are_named),
};

VXD_TEST_MAIN(tests)
