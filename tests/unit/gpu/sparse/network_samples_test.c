// SPDX-License-Identifier: Apache-2.0
/* Layers over the rows of a sample: each against double, or bit for bit where the
 * contract defines the order of its sums, and with the same bits alone as in a batch. */
#include <math.h>

#include "gpu/sparse/layers/layers_math.h"
#include "tests/support/sparse/layer_rows.h"
#include "tests/support/test.h"

enum {
    N_CASES = 24,
    N_WIDE_CASES = 4,
    N_SAMPLES = 7
};

static const uint32_t sizes[3][N_SAMPLES] = {
    {256, 0, 1, 257, 700, 0, 31}, {0, 15, 1100, 17, 255, 512, 3}, {1, 0, 2, 0, 0, 1, 0}};

struct variant {
    enum vxd_net_precision precision;
    const uint32_t *sizes;
    int n_channels;
    int layout;
    uint64_t state;
};

static struct variant variant_of(int number)
{
    static const int channels[] = {1, 3, 8, 20, 33, 64, 130};

    return (struct variant){(enum vxd_net_precision)(number % 4), sizes[number % 2],
                            channels[number % 7], number / 4 % GPU_N_LAYOUTS,
                            (uint64_t)number + 5};
}

/* The largest number of channels, on few rows. */
static struct variant wide_variant_of(int number)
{
    struct variant v = variant_of(number);

    v.sizes = sizes[2];
    v.n_channels = VXD_NET_MAX_CHANNELS;
    return v;
}

static double storing_error(enum vxd_net_precision precision, double value)
{
    if (precision == VXD_NET_FP16) {
        return fabs(value) * 0x1p-11 + 0x1p-25;
    }
    return precision == VXD_NET_BF16 ? fabs(value) * 0x1p-8 : 0.0;
}

/* A tensor with its values on the host. */
struct tensor {
    float *values;
    struct gpu_rows rows;
};

static struct tensor tensor_of(struct gpu_env *env, struct variant *v, size_t n_rows,
                               int n_channels, int layout)
{
    struct tensor tensor;

    tensor.values =
        gpu_rounded_floats(&v->state, v->precision, n_rows * (size_t)n_channels);
    tensor.rows = gpu_rows_make(env, v->precision, tensor.values, n_rows, n_channels,
                                layout % GPU_N_LAYOUTS);
    return tensor;
}

static void tensor_free(struct gpu_env *env, struct tensor *tensor)
{
    free(tensor->values);
    gpu_rows_free(env, &tensor->rows);
}

/* Sum over a sample's rows in the contract's order of the terms of each row. */
static float sum_in_pieces(const float *x, size_t n_rows, size_t stride, float mean,
                           bool is_square)
{
    float total = 0.0f;

    for (size_t first = 0; first < n_rows; first += VXD_NET_PIECE) {
        float sum = 0.0f;

        for (size_t i = first; i < n_rows && i < first + VXD_NET_PIECE; i++) {
            float d = x[i * stride] - mean;

            sum += is_square ? d * d : d;
        }
        total = first == 0 ? sum : total + sum;
    }
    return total;
}

/* One channel of a sample; *allowed is 0 where the bits are known. */
static float global_of(const struct vxd_net_global_call *call, const float *x,
                       size_t n_rows, size_t stride, double *allowed)
{
    double mean = 0;
    float best = n_rows > 0 ? x[0] : 0.0f;

    *allowed = 0;
    if (n_rows == 0) {
        return 0.0f;
    }
    if (call->global == VXD_NET_GLOBAL_OF_AVG) {
        return gpu_rounded(call->precision,
                           sum_in_pieces(x, n_rows, stride, 0, false) / (float)n_rows);
    }
    for (size_t i = 0; i < n_rows; i++) {
        best = fmaxf(best, x[i * stride]);
        mean += pow(fmax((double)x[i * stride], (double)call->eps), (double)call->p);
    }
    if (call->global == VXD_NET_GLOBAL_OF_MAX) {
        return best;
    }
    mean = pow(mean / (double)n_rows, 1.0 / (double)call->p);
    *allowed = 1e-5 * fabs(mean) + storing_error(call->precision, mean);
    return (float)mean;
}

static void global(struct gpu_env *env)
{
    for (int number = 0; number < 3 * N_CASES + N_WIDE_CASES; number++) {
        struct variant v =
            number < 3 * N_CASES ? variant_of(number) : wide_variant_of(number);
        size_t n_channels = (size_t)v.n_channels;
        struct gpu_samples samples;
        struct gpu_rows out;
        struct tensor x;
        struct vxd_buffer scratch;
        struct vxd_net_global_call call;
        size_t n_wrong = 0;
        float *actual;

        gpu_samples_make(env, &samples, v.sizes, N_SAMPLES);
        if (number % 2 != 0) { /* scratch that ends right after its last written byte */
            samples.extent.max_rows = gpu_samples_n_rows(&samples);
        }
        x = tensor_of(env, &v, gpu_samples_n_rows(&samples), v.n_channels, v.layout);
        out = gpu_rows_make(env, v.precision, NULL, N_SAMPLES, v.n_channels,
                            number % GPU_N_LAYOUTS);
        scratch = gpu_to_device(env, NULL,
                                GPU_SCRATCH_BYTES(env, global, samples.extent.max_rows,
                                                  N_SAMPLES, v.n_channels));
        call = (struct vxd_net_global_call){v.precision,
                                            (enum vxd_net_global)(number % 3),
                                            number % 2 == 0 ? 3.0f : 2.5f,
                                            1e-3f,
                                            samples.extent,
                                            x.rows.rows,
                                            out.rows,
                                            scratch.ptr,
                                            scratch.n_bytes};
        GPU_BACKEND_CALL(env, global, &call);
        actual = gpu_rows_fetch(env, &out);
        for (size_t i = 0; i < N_SAMPLES * n_channels; i++) {
            size_t s = i / n_channels;
            double allowed;
            float y = global_of(
                &call, x.values + samples.starts[s] * n_channels + i % n_channels,
                samples.starts[s + 1] - samples.starts[s], n_channels, &allowed);

            n_wrong += !(fabs((double)actual[i] - (double)y) <= allowed);
        }
        CHECK_INT(n_wrong, 0);
        free(actual);
        vxd_device_free(env->queue, &scratch);
        gpu_rows_free(env, &out);
        tensor_free(env, &x);
        gpu_samples_free(env, &samples);
    }
}

static void test_global_pool_sums_in_pieces(void)
{
    gpu_each_backend(global);
}

/* Counts wrong values of one sample's channel. */
static size_t check_batch_norm(const struct vxd_net_batch_norm_call *call, float scale,
                               float bias, const float *x, const float *actual,
                               size_t n_rows, size_t stride)
{
    float mean = sum_in_pieces(x, n_rows, stride, 0, false) / (float)n_rows;
    float variance = sum_in_pieces(x, n_rows, stride, mean, true) / (float)n_rows;
    float factor = scale / sqrtf(variance + call->eps);
    size_t n_wrong = 0;

    for (size_t i = 0; i < n_rows; i++) {
        float y = (x[i * stride] - mean) * factor + bias;

        y = y < 0.0f ? 0.0f : y;
        n_wrong += actual[i * stride] != gpu_rounded(call->precision, y);
    }
    return n_wrong;
}

static void batch_norm(struct gpu_env *env)
{
    for (int number = 0; number < N_CASES + N_WIDE_CASES; number++) {
        struct variant v =
            number < N_CASES ? variant_of(number) : wide_variant_of(number);
        size_t n_channels = (size_t)v.n_channels;
        float *terms = gpu_random_floats(&v.state, 2 * n_channels, false);
        struct vxd_buffer d_terms =
            gpu_to_device(env, terms, 2 * n_channels * sizeof *terms);
        bool has_terms = number % 3 != 0;
        struct gpu_samples samples;
        struct gpu_rows out;
        struct tensor x;
        struct vxd_buffer scratch;
        struct vxd_net_batch_norm_call call;
        size_t n_wrong = 0;
        float *actual;

        gpu_samples_make(env, &samples, v.sizes, N_SAMPLES);
        if (number % 2 != 0) { /* scratch that ends right after its last written byte */
            samples.extent.max_rows = gpu_samples_n_rows(&samples);
        }
        x = tensor_of(env, &v, gpu_samples_n_rows(&samples), v.n_channels, v.layout);
        out = gpu_rows_make(env, v.precision, NULL, gpu_samples_n_rows(&samples),
                            v.n_channels, number % GPU_N_LAYOUTS);
        scratch =
            gpu_to_device(env, NULL,
                          GPU_SCRATCH_BYTES(env, batch_norm, samples.extent.max_rows,
                                            N_SAMPLES, v.n_channels));
        call = (struct vxd_net_batch_norm_call){
            .precision = v.precision,
            .eps = 1e-3f,
            .extent = samples.extent,
            .scale = has_terms ? d_terms.ptr : NULL,
            .bias = has_terms ? (float *)d_terms.ptr + n_channels : NULL,
            .act = VXD_ACT_RELU,
            .in = x.rows.rows,
            .out = out.rows,
            .scratch = scratch.ptr,
            .scratch_bytes = scratch.n_bytes};
        GPU_BACKEND_CALL(env, batch_norm, &call);
        actual = gpu_rows_fetch(env, &out);
        for (size_t i = 0; i < N_SAMPLES * n_channels; i++) {
            size_t s = i / n_channels;
            size_t j = i % n_channels;
            size_t first = samples.starts[s] * n_channels + j;

            n_wrong += check_batch_norm(
                &call, has_terms ? terms[j] : 1.0f,
                has_terms ? terms[n_channels + j] : 0.0f, x.values + first,
                actual + first, samples.starts[s + 1] - samples.starts[s], n_channels);
        }
        CHECK_INT(n_wrong, 0);
        free(actual);
        free(terms);
        vxd_device_free(env->queue, &d_terms);
        vxd_device_free(env->queue, &scratch);
        gpu_rows_free(env, &out);
        tensor_free(env, &x);
        gpu_samples_free(env, &samples);
    }
}

static void test_batch_norm_takes_each_samples_own_statistics(void)
{
    gpu_each_backend(batch_norm);
}

/* Attention and tokens: sums of weighted rows -------------------------------------------- */

/* Counts wrong values of one output row: softmax over n scores, times rows of values.
 * The bound allows an error of the score for each key, which the exponential turns
 * into a relative one. */
static size_t check_weighted(enum vxd_net_precision precision, const double *scores,
                             double score_error, const float *values, size_t n,
                             size_t n_channels, const float *actual)
{
    double max = -INFINITY;
    size_t n_wrong = 0;
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        max = fmax(max, scores[i]);
    }
    for (size_t i = 0; i < n; i++) {
        sum += exp(scores[i] - max);
    }
    for (size_t c = 0; c < n_channels; c++) {
        double y = 0;
        double size = 0;

        for (size_t i = 0; i < n; i++) {
            double term = exp(scores[i] - max) / sum * (double)values[i * n_channels + c];

            y += term;
            size += fabs(term);
        }
        n_wrong += !(fabs((double)actual[c] - y) <=
                     (2 * score_error + ((double)n + 16) * 0x1p-22) * size +
                         storing_error(precision, fabs(y)));
    }
    return n_wrong;
}

struct attention {
    struct gpu_samples of_q;
    struct gpu_samples of_k;
    struct tensor q;
    struct tensor k;
    struct tensor v;
    struct gpu_rows out;
    struct vxd_buffer scratch;
    struct vxd_net_attention_call call;
};

static void attention_open(struct gpu_env *env, struct attention *a, struct variant *v,
                           int number)
{
    static const uint32_t few[N_SAMPLES] = {8, 8, 8, 8, 8, 0, 8};
    int n_inner = variant_of(number / 2 + 3).n_channels;

    gpu_samples_make(env, &a->of_q, number % 3 == 2 ? few : v->sizes, N_SAMPLES);
    gpu_samples_make(env, &a->of_k, number % 3 == 1 ? few : v->sizes, N_SAMPLES);
    a->q = tensor_of(env, v, gpu_samples_n_rows(&a->of_q), n_inner, v->layout);
    a->k = tensor_of(env, v, gpu_samples_n_rows(&a->of_k), n_inner, v->layout);
    a->v = tensor_of(env, v, gpu_samples_n_rows(&a->of_k), v->n_channels, v->layout);
    a->out = gpu_rows_make(env, v->precision, NULL, gpu_samples_n_rows(&a->of_q),
                           v->n_channels, number % GPU_N_LAYOUTS);
    a->scratch = gpu_to_device(env, NULL,
                               GPU_SCRATCH_BYTES(env, attention, a->of_q.extent.max_rows,
                                                 a->of_k.extent.max_rows, N_SAMPLES,
                                                 n_inner, v->n_channels));
    a->call =
        (struct vxd_net_attention_call){v->precision,      1.5f,           a->of_q.extent,
                                        a->of_k.extent,    a->q.rows.rows, a->k.rows.rows,
                                        a->v.rows.rows,    a->out.rows,    a->scratch.ptr,
                                        a->scratch.n_bytes};
}

static void attention_close(struct gpu_env *env, struct attention *a)
{
    vxd_device_free(env->queue, &a->scratch);
    gpu_rows_free(env, &a->out);
    tensor_free(env, &a->q);
    tensor_free(env, &a->k);
    tensor_free(env, &a->v);
    gpu_samples_free(env, &a->of_q);
    gpu_samples_free(env, &a->of_k);
}

/* Query `row` of sample s; every eleventh is checked. */
static size_t check_query(const struct attention *a, int s, size_t row,
                          const float *actual)
{
    size_t n_inner = (size_t)a->call.q.n_channels;
    size_t n_channels = (size_t)a->call.v.n_channels;
    size_t first = a->of_k.starts[s];
    size_t n = a->of_k.starts[s + 1] - first;
    double *scores = gpu_alloc(n * sizeof *scores);
    double size = 0;
    size_t n_wrong;

    for (size_t i = 0; i < n; i++) {
        double dot = 0;
        double sum = 0;

        for (size_t c = 0; c < n_inner; c++) {
            double term = (double)a->q.values[row * n_inner + c] *
                          (double)a->k.values[(first + i) * n_inner + c];

            dot += term;
            sum += fabs(term);
        }
        scores[i] = (double)a->call.scale * dot;
        size = fmax(size, (double)a->call.scale * sum);
    }
    n_wrong = check_weighted(
        a->call.precision, scores, size * ((double)n_inner + 4) * 0x1p-24,
        a->v.values + first * n_channels, n, n_channels, actual + row * n_channels);
    free(scores);
    return n_wrong;
}

/* The samples one by one, into rows of their own; counts values with other bits. */
static size_t check_attention_alone(struct gpu_env *env, const struct attention *a,
                                    const float *batched)
{
    size_t n_channels = (size_t)a->call.v.n_channels;
    size_t n_wrong = 0;

    for (int s = 0; s < N_SAMPLES; s++) {
        struct vxd_net_attention_call call = a->call;
        uint32_t q_size = a->of_q.starts[s + 1] - a->of_q.starts[s];
        uint32_t k_size = a->of_k.starts[s + 1] - a->of_k.starts[s];
        struct gpu_samples of_q;
        struct gpu_samples of_k;
        struct gpu_rows out =
            gpu_rows_make(env, call.precision, NULL, q_size, (int)n_channels, 0);
        float *alone;

        gpu_samples_make(env, &of_q, &q_size, 1);
        gpu_samples_make(env, &of_k, &k_size, 1);
        call.of_q = of_q.extent;
        call.of_k = of_k.extent;
        call.q = gpu_rows_from(&a->q.rows, a->of_q.starts[s]);
        call.k = gpu_rows_from(&a->k.rows, a->of_k.starts[s]);
        call.v = gpu_rows_from(&a->v.rows, a->of_k.starts[s]);
        call.out = out.rows;
        GPU_BACKEND_CALL(env, attention, &call);
        alone = gpu_rows_fetch(env, &out);
        n_wrong += q_size > 0 && memcmp(alone, batched + a->of_q.starts[s] * n_channels,
                                        q_size * n_channels * sizeof *alone) != 0;
        free(alone);
        gpu_rows_free(env, &out);
        gpu_samples_free(env, &of_q);
        gpu_samples_free(env, &of_k);
    }
    return n_wrong;
}

static void attention(struct gpu_env *env)
{
    for (int number = 0; number < N_CASES / 2; number++) {
        struct variant v = variant_of(number);
        size_t n_wrong = 0;
        struct attention a;
        float *actual;

        attention_open(env, &a, &v, number);
        GPU_BACKEND_CALL(env, attention, &a.call);
        actual = gpu_rows_fetch(env, &a.out);
        for (int s = 0; s < N_SAMPLES; s++) {
            for (size_t row = a.of_q.starts[s]; row < a.of_q.starts[s + 1]; row += 11) {
                n_wrong += check_query(&a, s, row, actual);
            }
        }
        CHECK_INT(n_wrong, 0);
        CHECK_INT(check_attention_alone(env, &a, actual), 0);
        free(actual);
        attention_close(env, &a);
    }
}

static void test_attention_of_a_batch_is_that_of_its_samples(void)
{
    gpu_each_backend(attention);
}

/* Scores, values and tokens of them. */
static float *run_tokens(struct gpu_env *env, const struct gpu_samples *samples,
                         enum vxd_net_precision precision, struct vxd_rows scores,
                         struct vxd_rows values)
{
    size_t n_rows = (size_t)samples->n_samples * (size_t)scores.n_channels;
    struct gpu_rows out =
        gpu_rows_make(env, precision, NULL, n_rows, values.n_channels, 2);
    struct vxd_buffer scratch = gpu_to_device(
        env, NULL,
        GPU_SCRATCH_BYTES(env, tokens, samples->extent.max_rows, samples->n_samples,
                          scores.n_channels, values.n_channels));
    float *actual;

    GPU_BACKEND_CALL(
        env, tokens,
        (&(struct vxd_net_tokens_call){precision, samples->extent, scores, values,
                                       out.rows, scratch.ptr, scratch.n_bytes}));
    actual = gpu_rows_fetch(env, &out);
    vxd_device_free(env->queue, &scratch);
    gpu_rows_free(env, &out);
    return actual;
}

/* Tokens of sample s. */
static size_t check_tokens(const struct gpu_samples *samples, int s,
                           const struct tensor *scores, const struct tensor *values,
                           const float *actual)
{
    size_t n_tokens = (size_t)scores->rows.rows.n_channels;
    size_t n_channels = (size_t)values->rows.rows.n_channels;
    size_t first = samples->starts[s];
    size_t n = samples->starts[s + 1] - first;
    double *column = gpu_alloc(n * sizeof *column);
    size_t n_wrong = 0;

    for (size_t t = 0; t < n_tokens; t++) {
        for (size_t i = 0; i < n; i++) {
            column[i] = (double)scores->values[(first + i) * n_tokens + t];
        }
        n_wrong += check_weighted(scores->rows.precision, column, 0x1p-22,
                                  values->values + first * n_channels, n, n_channels,
                                  actual + ((size_t)s * n_tokens + t) * n_channels);
    }
    free(column);
    return n_wrong;
}

static void tokens(struct gpu_env *env)
{
    static const int n_tokens[] = {8, 1, 3, 16, 11};

    for (int number = 0; number < N_CASES; number++) {
        struct variant v = variant_of(number);
        size_t row = (size_t)n_tokens[number % 5] * (size_t)v.n_channels;
        struct gpu_samples samples;
        struct tensor scores;
        struct tensor values;
        size_t n_wrong = 0;
        float *actual;

        gpu_samples_make(env, &samples, v.sizes, N_SAMPLES);
        scores = tensor_of(env, &v, gpu_samples_n_rows(&samples), n_tokens[number % 5],
                           v.layout);
        values = tensor_of(env, &v, gpu_samples_n_rows(&samples), v.n_channels, number);
        actual =
            run_tokens(env, &samples, v.precision, scores.rows.rows, values.rows.rows);
        for (int s = 0; s < N_SAMPLES; s++) {
            uint32_t size = samples.starts[s + 1] - samples.starts[s];
            struct gpu_samples sample;
            float *alone;

            n_wrong += check_tokens(&samples, s, &scores, &values, actual);
            gpu_samples_make(env, &sample, &size, 1);
            alone = run_tokens(env, &sample, v.precision,
                               gpu_rows_from(&scores.rows, samples.starts[s]),
                               gpu_rows_from(&values.rows, samples.starts[s]));
            n_wrong += memcmp(alone, actual + (size_t)s * row, row * sizeof *alone) != 0;
            free(alone);
            gpu_samples_free(env, &sample);
        }
        CHECK_INT(n_wrong, 0);
        free(actual);
        tensor_free(env, &scores);
        tensor_free(env, &values);
        gpu_samples_free(env, &samples);
    }
}

static void test_tokens_of_a_batch_are_those_of_its_samples(void)
{
    gpu_each_backend(tokens);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_global_pool_sums_in_pieces),
    VXD_TEST(test_batch_norm_takes_each_samples_own_statistics),
    VXD_TEST(test_attention_of_a_batch_is_that_of_its_samples),
    VXD_TEST(test_tokens_of_a_batch_are_those_of_its_samples),
};

VXD_TEST_MAIN(tests)
