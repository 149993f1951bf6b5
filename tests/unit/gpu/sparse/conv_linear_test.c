// SPDX-License-Identifier: Apache-2.0
/* Layers without a map: the operations after the sum, any number of rows, and values
 * that are infinite or NaN. */
#include <math.h>

#include "tests/support/sparse/sparse_helpers.h"
#include "tests/support/test.h"

static double act_of(enum vxd_net_act act, double alpha, double x)
{
    switch (act) {
    case VXD_ACT_RELU:
        return x > 0 ? x : 0;
    case VXD_ACT_LEAKY_RELU:
        return x > 0 ? x : alpha * x;
    case VXD_ACT_GELU:
        return x * 0.5 * (1 + erf(x / sqrt(2.0)));
    case VXD_ACT_SIGMOID:
        return 1 / (1 + exp(-x));
    default:
        return x;
    }
}

/* A linear layer (no map) of n rows with all operations after the sum. */
static void linear_case(struct gpu_env *env, uint32_t n, int n_in, int n_out,
                        enum vxd_net_act act)
{
    uint64_t state = n + (uint64_t)n_in;
    float *x = gpu_random_floats(&state, (size_t)n * (size_t)n_in, false);
    float *w = gpu_random_floats(&state, (size_t)n_in * (size_t)n_out, false);
    float *bias = gpu_random_floats(&state, (size_t)n_out, false);
    float *add = gpu_random_floats(&state, (size_t)n * (size_t)n_out, false);
    struct gpu_conv conv = {.n_in_rows = n,
                            .n_out_rows = n,
                            .n_taps = 1,
                            .n_in = n_in,
                            .n_out = n_out,
                            .in = x,
                            .weights = w,
                            .bias = n_in % 2 == 0 ? bias : NULL,
                            .add = n_out % 2 == 0 ? add : NULL,
                            .act = act,
                            .alpha = 0.25f};
    float *actual = gpu_conv_run(env, &conv);
    size_t n_wrong = 0;

    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < (size_t)n_out; j++) {
            double sum = (conv.bias != NULL ? bias[j] : 0.0) +
                         (conv.add != NULL ? add[i * (size_t)n_out + j] : 0.0);
            double bound = 2;

            for (size_t k = 0; k < (size_t)n_in; k++) {
                double p = (double)x[i * (size_t)n_in + k] * w[k * (size_t)n_out + j];

                sum += p;
                bound += fabs(p);
            }
            /* Slopes are at most 1.2; erff and expf add some units in the last place. */
            n_wrong += !(fabs(actual[i * (size_t)n_out + j] - act_of(act, 0.25, sum)) <=
                         (n_in + 10) * 0x1.4p-24 * bound);
        }
    }
    CHECK_INT(n_wrong, 0);
    free(actual);
    free(x);
    free(w);
    free(bias);
    free(add);
}

static void linear(struct gpu_env *env)
{
    static const uint32_t rows[5] = {0, 1, 127, 129, 300};
    static const int channels[6][2] = {{1, 1},    {4, 16},   {300, 18},
                                       {63, 129}, {16, 272}, {700, 40}};

    for (int i = 0; i < 30; i++) {
        linear_case(env, rows[i % 5], channels[i / 5][0], channels[i / 5][1],
                    (enum vxd_net_act)(i % 5));
    }
}

static void test_linear_with_bias_residual_and_activation_equals_double(void)
{
    gpu_each_backend(linear);
}

/* The number of rows decides how a GPU divides them, but must not change the result. */
static void many_rows(struct gpu_env *env)
{
    static const int channels[4][2] = {{40, 96}, {4, 19}, {64, 256}, {33, 32}};
    const uint32_t n_many = gpu_is_cuda(env) ? 34000 : 3400;

    for (int i = 0; i < 16; i++) {
        uint64_t state = (uint64_t)i;
        size_t n_out = (size_t)channels[i / 4][1];
        struct gpu_conv conv = {.n_in_rows = n_many,
                                .n_out_rows = n_many,
                                .n_taps = 1,
                                .n_in = channels[i / 4][0],
                                .n_out = channels[i / 4][1],
                                .precision = (enum vxd_net_precision)(i % 4),
                                .act = VXD_ACT_RELU};
        float *x = gpu_random_floats(&state, n_many * (size_t)conv.n_in, false);
        float *w = gpu_random_floats(&state, (size_t)conv.n_in * n_out, false);
        float *add = gpu_random_floats(&state, n_many * n_out, false);
        float *many;
        float *few;

        conv.in = x;
        conv.weights = w;
        conv.add = add;
        many = gpu_conv_run(env, &conv);
        conv.n_in_rows = conv.n_out_rows = 300;
        few = gpu_conv_run(env, &conv);
        CHECK_INT(memcmp(few, many, 300 * n_out * sizeof *few), 0);
        free(few);
        free(many);
        free(x);
        free(w);
        free(add);
    }
}

static void test_linear_of_many_rows_equals_few_bit_for_bit(void)
{
    gpu_each_backend(many_rows);
}

/* Sums of whole numbers are exact in every precision, however the CPU divides the
 * channels of 16-bit rows into chunks and rows into groups; then they are rounded
 * once. */
static void whole_numbers(struct gpu_env *env)
{
    static const int channels[6] = {1, 255, 256, 257, 512, 700};
    static const uint32_t rows[2] = {6, 17};
    enum {
        N_OUT = 5
    };

    for (int i = 0; i < 48; i++) {
        struct gpu_conv conv = {.n_in_rows = rows[i % 2],
                                .n_out_rows = rows[i % 2],
                                .n_taps = 1,
                                .n_in = channels[i / 2 % 6],
                                .n_out = N_OUT,
                                .precision = (enum vxd_net_precision)(i / 12)};
        size_t n_in = (size_t)conv.n_in;
        float *x = gpu_alloc(conv.n_in_rows * n_in * sizeof *x);
        float *w = gpu_alloc(n_in * N_OUT * sizeof *w);
        uint64_t state = (uint64_t)i;
        size_t n_wrong = 0;
        float *actual;

        for (size_t k = 0; k < conv.n_in_rows * n_in; k++) {
            x[k] = (float)(gpu_random(&state) % 15) - 7;
        }
        for (size_t k = 0; k < n_in * N_OUT; k++) {
            w[k] = (float)(gpu_random(&state) % 9) - 4;
        }
        conv.in = x;
        conv.weights = w;
        actual = gpu_conv_run(env, &conv);
        for (size_t at = 0; at < (size_t)conv.n_out_rows * N_OUT; at++) {
            float sum = 0;

            for (size_t k = 0; k < n_in; k++) {
                sum += x[at / N_OUT * n_in + k] * w[k * N_OUT + at % N_OUT];
            }
            n_wrong += actual[at] != gpu_rounded(conv.precision, sum);
        }
        CHECK_INT(n_wrong, 0);
        free(actual);
        free(w);
        free(x);
    }
}

static void test_linear_of_whole_numbers_is_exact_in_every_precision(void)
{
    gpu_each_backend(whole_numbers);
}

/* Infinite and NaN values propagate, and every NaN becomes the same one. */
static void special_values(struct gpu_env *env)
{
    const float in[4] = {NAN, INFINITY, 1e30f, -INFINITY};
    const float one[1] = {-1e10f};
    struct gpu_conv conv = {.n_in_rows = 4,
                            .n_out_rows = 4,
                            .n_taps = 1,
                            .n_in = 1,
                            .n_out = 1,
                            .in = in,
                            .weights = one};

    for (int precision = 0; precision < 2; precision++) {
        for (int act = 0; act < 3; act++) {
            float *actual;
            uint32_t bits;

            conv.precision = precision == 0 ? VXD_NET_FP32 : VXD_NET_BF16;
            conv.act = (enum vxd_net_act)act;
            conv.alpha = 1;
            actual = gpu_conv_run(env, &conv);
            memcpy(&bits, actual, sizeof bits);
            CHECK_INT(bits, 0x7fc00000);
            CHECK(actual[1] == (act == VXD_ACT_RELU ? 0 : -INFINITY));
            CHECK(actual[2] == (act == VXD_ACT_RELU ? 0 : -INFINITY));
            CHECK(actual[3] == INFINITY);
            free(actual);
        }
    }
}

static void test_conv_of_nan_and_infinity_keeps_them(void)
{
    gpu_each_backend(special_values);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_linear_with_bias_residual_and_activation_equals_double),
    VXD_TEST(test_linear_of_many_rows_equals_few_bit_for_bit),
    VXD_TEST(test_linear_of_whole_numbers_is_exact_in_every_precision),
    VXD_TEST(test_conv_of_nan_and_infinity_keeps_them),
};

VXD_TEST_MAIN(tests)
