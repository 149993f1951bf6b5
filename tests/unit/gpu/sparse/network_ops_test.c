// SPDX-License-Identifier: Apache-2.0
/* Layers other than convolutions, one by one: row by row, and over channels. Results
 * with one order of operations are compared bit for bit on every backend. */
#include <math.h>

#include "gpu/sparse/conv/conv_math.h"
#include "gpu/sparse/layers/layers_math.h"
#include "gpu/sparse/coords/coords_math.h"
#include "tests/support/sparse/layer_rows.h"
#include "tests/support/test.h"

static bool is_narrow(enum vxd_net_precision precision)
{
    return vxd_net_element_bytes(precision) == 2;
}

/* The rounding error of a stored value. */
static double storing_error(enum vxd_net_precision precision, double value)
{
    if (!is_narrow(precision)) {
        return fabs(value) * 0x1p-24;
    }
    return precision == VXD_NET_FP16 ? fabs(value) * 0x1p-11 + 0x1p-25
                                     : fabs(value) * 0x1p-8;
}

static bool same_floats(const float *a, const float *b, size_t n)
{
    return n == 0 || memcmp(a, b, n * sizeof *a) == 0;
}

static void load_and_save(struct gpu_env *env)
{
    for (int number = 0; number < GPU_ROWS_CASES; number++) {
        struct gpu_rows_case v = gpu_rows_case(number);
        size_t n = v.n_rows * (size_t)v.n_channels;
        struct gpu_samples samples = gpu_samples_of_one(env, v.n_rows);
        float *features = gpu_random_floats(&v.state, n, false);
        int32_t *rows = gpu_alloc((v.n_rows + 1) * sizeof *rows);
        struct gpu_rows tensor =
            gpu_rows_make(env, v.precision, NULL, v.n_rows, v.n_channels, v.layout);
        struct vxd_buffer d_features;
        struct vxd_buffer d_rows;
        struct vxd_buffer saved = gpu_to_device(env, NULL, n * sizeof(float));
        float *actual;

        if (n > 2) {
            features[1] = NAN;
            features[2] = 7e4f; /* above the range of float16 */
        }
        for (size_t i = 0; i < v.n_rows; i++) {
            rows[i] = (int32_t)i;
        }
        d_features = gpu_to_device(env, features, n * sizeof *features);
        d_rows = gpu_to_device(env, rows, v.n_rows * sizeof *rows);
        GPU_BACKEND_CALL(
            env, load,
            (&(struct vxd_net_load_call){v.precision, d_features.ptr, d_rows.ptr,
                                         v.n_rows, tensor.rows}));
        actual = gpu_rows_fetch(env, &tensor);
        for (size_t i = 0; i < n; i++) {
            features[i] = vxd_canonical_nanf(gpu_rounded(v.precision, features[i]));
        }
        CHECK(same_floats(actual, features, n));
        free(actual);
        GPU_BACKEND_CALL(env, save,
                         (&(struct vxd_net_save_call){v.precision, samples.extent,
                                                      tensor.rows, saved.ptr}));
        actual = gpu_to_host(env, &saved);
        CHECK(same_floats(actual, features, n));
        free(actual);
        free(rows);
        free(features);
        vxd_device_free(env->queue, &saved);
        vxd_device_free(env->queue, &d_rows);
        vxd_device_free(env->queue, &d_features);
        gpu_rows_free(env, &tensor);
        gpu_samples_free(env, &samples);
    }
}

static void test_load_and_save_round_once(void)
{
    gpu_each_backend(load_and_save);
}

static void load_out_of_order(struct gpu_env *env)
{
    static const float features[6] = {1, 2, 3, 4, 5, 6};
    static const int32_t rows[3][3] = {{0, 2, 1}, {0, 1, 1}, {0, -1, 1}};

    for (int i = 0; i < 3; i++) {
        struct vxd_buffer d_features = gpu_to_device(env, features, sizeof features);
        struct vxd_buffer d_rows = gpu_to_device(env, rows[i], sizeof rows[i]);
        struct gpu_rows tensor = gpu_rows_make(env, VXD_NET_FP32, NULL, 3, 2, 0);
        struct vxd_net_load_call call = {VXD_NET_FP32, d_features.ptr, d_rows.ptr, 3,
                                         tensor.rows};
        struct vxd_err err = {0};

        CHECK_INT(VXD_BACKEND_FN(env->queue, vxd_net_load)(env->queue, &call, &err),
                  VXD_OK);
        CHECK_INT(vxd_queue_wait(env->queue, &err), VXD_INVALID_ARGUMENT);
        vxd_device_free(env->queue, &d_features);
        vxd_device_free(env->queue, &d_rows);
        gpu_rows_free(env, &tensor);
    }
}

static void test_load_of_rows_out_of_order_is_invalid(void)
{
    gpu_each_backend(load_out_of_order);
}

/* The inputs of a combination, on the host and the device. */
struct combined {
    struct vxd_net_combine_call call;
    float *values[VXD_NET_MAX_INPUTS];
    int32_t *rows[VXD_NET_MAX_INPUTS];
    struct gpu_rows tensors[VXD_NET_MAX_INPUTS];
    struct vxd_buffer d_rows[VXD_NET_MAX_INPUTS];
    float *terms; /* scale, then bias */
    struct vxd_buffer d_terms;
};

static void combined_open(struct gpu_env *env, struct combined *c,
                          struct gpu_rows_case *v, int number)
{
    size_t n = v->n_rows * (size_t)v->n_channels;
    size_t n_channels = (size_t)v->n_channels;

    c->call.precision = v->precision;
    c->call.n_inputs = 1 + number % 3;
    c->call.act = (enum vxd_net_act)(number % 5);
    c->call.alpha = 0.125f;
    for (int i = 0; i < c->call.n_inputs; i++) {
        c->values[i] = gpu_rounded_floats(&v->state, v->precision, n);
        c->tensors[i] = gpu_rows_make(env, v->precision, c->values[i], v->n_rows,
                                      v->n_channels, (v->layout + i) % GPU_N_LAYOUTS);
        c->call.in[i] = c->tensors[i].rows;
        c->rows[i] = NULL;
        if ((number + i) % 2 == 1) {
            c->rows[i] = gpu_alloc((v->n_rows + 1) * sizeof *c->rows[i]);
            for (size_t row = 0; row < v->n_rows; row++) {
                c->rows[i][row] = (int32_t)(gpu_random(&v->state) % (v->n_rows + 1)) - 1;
            }
            c->d_rows[i] = gpu_to_device(env, c->rows[i], v->n_rows * sizeof *c->rows[i]);
            c->call.rows[i] = c->d_rows[i].ptr;
        }
    }
    c->terms = gpu_random_floats(&v->state, 2 * n_channels, false);
    c->d_terms = gpu_to_device(env, c->terms, 2 * n_channels * sizeof(float));
    c->call.scale = number % 2 == 0 ? c->d_terms.ptr : NULL;
    c->call.bias = number % 3 == 0 ? (float *)c->d_terms.ptr + n_channels : NULL;
}

static void combined_close(struct gpu_env *env, struct combined *c)
{
    for (int i = 0; i < c->call.n_inputs; i++) {
        free(c->values[i]);
        free(c->rows[i]);
        vxd_device_free(env->queue, &c->d_rows[i]);
        gpu_rows_free(env, &c->tensors[i]);
    }
    free(c->terms);
    vxd_device_free(env->queue, &c->d_terms);
}

/* The value before the activation. */
static float combined_at(const struct combined *c, size_t row, size_t j,
                         size_t n_channels)
{
    float sum = 0.0f;

    for (int i = 0; i < c->call.n_inputs; i++) {
        int64_t from = c->rows[i] != NULL ? c->rows[i][row] : (int64_t)row;

        if (from >= 0) {
            float x = c->values[i][(size_t)from * n_channels + j];

            sum = i == 0 ? x : sum + x;
        }
    }
    sum = c->call.scale != NULL ? sum * c->terms[j] : sum;
    return c->call.bias != NULL ? sum + c->terms[n_channels + j] : sum;
}

static void combine(struct gpu_env *env)
{
    for (int number = 0; number < GPU_ROWS_CASES; number++) {
        struct gpu_rows_case v = gpu_rows_case(number);
        size_t n_channels = (size_t)v.n_channels;
        struct gpu_samples samples = gpu_samples_of_one(env, v.n_rows);
        struct combined c = {.terms = NULL};
        struct gpu_rows out =
            gpu_rows_make(env, v.precision, NULL, v.n_rows, v.n_channels, v.layout);
        size_t n_wrong = 0;
        bool is_exact;
        float *actual;

        combined_open(env, &c, &v, number);
        is_exact = c.call.act != VXD_ACT_GELU && c.call.act != VXD_ACT_SIGMOID;
        c.call.extent = samples.extent;
        c.call.out = c.rows[0] == NULL && number % 4 == 2 ? c.call.in[0] : out.rows;
        GPU_BACKEND_CALL(env, combine, &c.call);
        actual =
            gpu_rows_fetch(env, c.call.out.data == out.rows.data ? &out : &c.tensors[0]);
        for (size_t i = 0; i < v.n_rows * n_channels; i++) {
            float x = combined_at(&c, i / n_channels, i % n_channels, n_channels);
            float y = vxd_activate(c.call.act, c.call.alpha, x);

            n_wrong += is_exact ? actual[i] != gpu_rounded(v.precision, y)
                                : !(fabs((double)actual[i] - (double)y) <=
                                    1e-6 * fabs((double)x) + 1e-6 +
                                        storing_error(v.precision, (double)y));
        }
        CHECK_INT(n_wrong, 0);
        free(actual);
        combined_close(env, &c);
        gpu_rows_free(env, &out);
        gpu_samples_free(env, &samples);
    }
}

static void test_combine_sums_in_order_and_activates(void)
{
    gpu_each_backend(combine);
}

static void embedding(struct gpu_env *env)
{
    enum {
        N_ENTRIES = 11
    };
    static const float entries[] = {0,     10,    3.4f,  3.5f, 4.5f,
                                    10.5f, -0.5f, -0.6f, 11,   NAN};

    for (int number = 0; number < GPU_ROWS_CASES; number++) {
        struct gpu_rows_case v = gpu_rows_case(number);
        size_t n_channels = (size_t)v.n_channels;
        struct gpu_samples samples = gpu_samples_of_one(env, v.n_rows);
        float *in = gpu_rounded_floats(&v.state, v.precision, v.n_rows * 2);
        float *table = gpu_random_floats(&v.state, N_ENTRIES * n_channels, false);
        struct vxd_buffer d_table =
            gpu_to_device(env, table, N_ENTRIES * n_channels * sizeof *table);
        struct gpu_rows out =
            gpu_rows_make(env, v.precision, NULL, v.n_rows, v.n_channels, v.layout);
        struct gpu_rows x;
        size_t n_wrong = 0;
        float *actual;

        for (size_t i = 0; i < v.n_rows; i++) {
            in[2 * i] = entries[i % (sizeof entries / sizeof entries[0])];
        }
        x = gpu_rows_make(env, v.precision, in, v.n_rows, 2, v.layout);
        GPU_BACKEND_CALL(
            env, embedding,
            (&(struct vxd_net_embedding_call){v.precision, samples.extent, d_table.ptr,
                                              N_ENTRIES, x.rows, out.rows}));
        actual = gpu_rows_fetch(env, &out);
        for (size_t i = 0; i < v.n_rows * n_channels; i++) {
            float index = rintf(gpu_rounded(v.precision, in[2 * (i / n_channels)]));
            float expected = index >= 0 && index < N_ENTRIES
                                 ? table[(size_t)index * n_channels + i % n_channels]
                                 : 0.0f;

            n_wrong += actual[i] != gpu_rounded(v.precision, expected);
        }
        CHECK_INT(n_wrong, 0);
        free(actual);
        free(table);
        free(in);
        vxd_device_free(env->queue, &d_table);
        gpu_rows_free(env, &x);
        gpu_rows_free(env, &out);
        gpu_samples_free(env, &samples);
    }
}

static void test_embedding_outside_its_table_is_zero(void)
{
    gpu_each_backend(embedding);
}

/* Rows with equal channels and NaNs. */
static float *hard_rows(struct gpu_rows_case *v)
{
    size_t n_channels = (size_t)v->n_channels;
    float *values = gpu_rounded_floats(&v->state, v->precision, v->n_rows * n_channels);

    for (size_t i = 0; i < v->n_rows; i++) {
        float *row = values + i * n_channels;

        if (i % 5 == 1) {
            row[n_channels - 1] = row[n_channels / 2] = 1.0f;
        } else if (i % 5 == 2) {
            row[i % n_channels] = NAN;
        } else if (i % 5 == 3) {
            row[0] = -INFINITY;
        }
    }
    return values;
}

static void keep_and_argmax(struct gpu_env *env)
{
    for (int number = 0; number < GPU_ROWS_CASES; number++) {
        struct gpu_rows_case v = gpu_rows_case(number);
        size_t n_channels = (size_t)v.n_channels;
        struct gpu_samples samples = gpu_samples_of_one(env, v.n_rows);
        float *in = hard_rows(&v);
        struct gpu_rows x =
            gpu_rows_make(env, v.precision, in, v.n_rows, v.n_channels, v.layout);
        struct vxd_buffer d_keep = gpu_to_device(env, NULL, v.n_rows + 1);
        struct vxd_buffer d_labels = gpu_to_device(env, NULL, (v.n_rows + 1) * 4);
        struct vxd_buffer d_scores = gpu_to_device(env, NULL, (v.n_rows + 1) * 4);
        unsigned char *keep;
        size_t n_wrong = 0;
        int32_t *labels;
        float *scores;

        GPU_BACKEND_CALL(env, keep,
                         (&(struct vxd_net_keep_call){v.precision, 0.25f, samples.extent,
                                                      x.rows, d_keep.ptr}));
        GPU_BACKEND_CALL(
            env, argmax,
            (&(struct vxd_net_argmax_call){v.precision, samples.extent, x.rows,
                                           d_labels.ptr, d_scores.ptr}));
        keep = gpu_to_host(env, &d_keep);
        labels = gpu_to_host(env, &d_labels);
        scores = gpu_to_host(env, &d_scores);
        for (size_t i = 0; i < v.n_rows; i++) {
            const float *row = in + i * n_channels;
            size_t best = 0;

            for (size_t j = 1; j < n_channels; j++) {
                best = row[j] > row[best] ? j : best;
            }
            n_wrong += keep[i] != (row[0] > 0.25f) || labels[i] != (int32_t)best ||
                       vxd_float_bits(scores[i]) !=
                           vxd_float_bits(vxd_canonical_nanf(row[best]));
        }
        n_wrong += keep[v.n_rows] != 0xa5;
        CHECK_INT(n_wrong, 0);
        free(keep);
        free(labels);
        free(scores);
        free(in);
        vxd_device_free(env->queue, &d_keep);
        vxd_device_free(env->queue, &d_labels);
        vxd_device_free(env->queue, &d_scores);
        gpu_rows_free(env, &x);
        gpu_samples_free(env, &samples);
    }
}

static void test_argmax_of_equal_channels_takes_the_first(void)
{
    gpu_each_backend(keep_and_argmax);
}

/* Counts wrong values of one row. */
static size_t check_norm(const struct gpu_rows_case *v,
                         const struct vxd_net_norm_call *call, const float *in,
                         const float *actual)
{
    double relative = (double)(v->n_channels + 8) * 0x1p-23;
    double max = -INFINITY;
    double sum = 0;
    size_t n_wrong = 0;

    for (int j = 0; j < v->n_channels; j++) {
        max = fmax(max, (double)in[j]);
    }
    for (int j = 0; j < v->n_channels; j++) {
        double x = (double)in[j];

        sum += call->norm == VXD_NET_NORM_SOFTMAX ? exp(x - max) : x * x;
    }
    for (int j = 0; j < v->n_channels; j++) {
        double x = (double)in[j];
        double y = call->norm == VXD_NET_NORM_SOFTMAX
                       ? exp(x - max) / sum
                       : x / fmax(sqrt(sum), (double)call->eps);

        n_wrong += !(fabs((double)actual[j] - y) <=
                     relative * fabs(y) + storing_error(v->precision, y));
    }
    return n_wrong;
}

static void norm(struct gpu_env *env)
{
    for (int number = 0; number < 2 * GPU_ROWS_CASES; number++) {
        struct gpu_rows_case v = gpu_rows_case(number / 2);
        size_t n_channels = (size_t)v.n_channels;
        struct gpu_samples samples = gpu_samples_of_one(env, v.n_rows);
        float *in = gpu_rounded_floats(&v.state, v.precision, v.n_rows * n_channels);
        struct gpu_rows x =
            gpu_rows_make(env, v.precision, in, v.n_rows, v.n_channels, v.layout);
        struct gpu_rows out = gpu_rows_make(env, v.precision, NULL, v.n_rows,
                                            v.n_channels, number % GPU_N_LAYOUTS);
        struct vxd_net_norm_call call = {v.precision, (enum vxd_net_norm)(number % 2),
                                         1e-3f,       samples.extent,
                                         x.rows,      out.rows};
        size_t n_wrong = 0;
        float *actual;

        GPU_BACKEND_CALL(env, norm, &call);
        actual = gpu_rows_fetch(env, &out);
        for (size_t i = 0; i < v.n_rows; i++) {
            n_wrong +=
                check_norm(&v, &call, in + i * n_channels, actual + i * n_channels);
        }
        CHECK_INT(n_wrong, 0);
        free(actual);
        free(in);
        gpu_rows_free(env, &x);
        gpu_rows_free(env, &out);
        gpu_samples_free(env, &samples);
    }
}

static void test_softmax_and_l2_norm_agree_with_double(void)
{
    gpu_each_backend(norm);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_load_and_save_round_once),
    VXD_TEST(test_load_of_rows_out_of_order_is_invalid),
    VXD_TEST(test_combine_sums_in_order_and_activates),
    VXD_TEST(test_embedding_outside_its_table_is_zero),
    VXD_TEST(test_argmax_of_equal_channels_takes_the_first),
    VXD_TEST(test_softmax_and_l2_norm_agree_with_double),
};

VXD_TEST_MAIN(tests)
