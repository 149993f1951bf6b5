// SPDX-License-Identifier: Apache-2.0
/* Convolutions against dense ones in double, and the operations after the sum. */
#include <math.h>

#include "tests/support/sparse/sparse_helpers.h"
#include "tests/support/test.h"

enum {
    N_CASES = 240
};

/* Writes rows of values into a dense grid; absolute values for a grid that computes
 * the bound. */
static void fill_grid(struct gpu_grid *grid, const struct gpu_coord_set *coord_set,
                      const float *values, bool is_absolute)
{
    for (uint32_t i = 0; i < coord_set->n_rows; i++) {
        double *at = gpu_grid_at(grid, coord_set->coords + 4 * (size_t)i);

        for (int j = 0; j < grid->n_channels; j++) {
            float value = values[(size_t)i * (size_t)grid->n_channels + (size_t)j];

            at[j] = is_absolute ? fabs((double)value) : (double)value;
        }
    }
}

/* Half a unit in the last place of the stored value. */
static double storing_error(enum vxd_net_precision precision, double value)
{
    if (precision == VXD_NET_FP16) {
        return fabs(value) * 0x1p-11 + 0x1p-25;
    }
    return precision == VXD_NET_BF16 ? fabs(value) * 0x1p-8 : 0.0;
}

static double relative_error(const struct gpu_env *env, const struct gpu_conv *conv)
{
    double e = (conv->n_taps * conv->n_in + 2) * 0x1p-24;

    if (!gpu_is_cuda(env) || conv->precision == VXD_NET_FP32) {
        return e;
    }
    return conv->precision == VXD_NET_TF32 ? 2 * e + 0x1p-10 : 2 * e;
}

/* Compares on the output's coordinate set; elsewhere the dense result must be zero. */
static size_t compare(const struct gpu_env *env, const struct gpu_conv *conv,
                      const struct gpu_coord_set *out, const float *actual,
                      const struct gpu_grid *exact, const struct gpu_grid *bound,
                      bool is_whole_support)
{
    size_t n_values = (size_t)exact->n_samples * (size_t)exact->n_channels;
    size_t n_out = (size_t)conv->n_out;
    size_t n_wrong = 0;

    for (uint32_t i = 0; i < out->n_rows; i++) {
        double *y = gpu_grid_at(exact, out->coords + 4 * (size_t)i);
        const double *b = gpu_grid_at(bound, out->coords + 4 * (size_t)i);

        for (size_t j = 0; j < n_out; j++) {
            double allowed = relative_error(env, conv) * b[j];
            double difference = fabs((double)actual[i * n_out + j] - y[j]);

            allowed += storing_error(conv->precision, fabs(y[j]) + allowed);
            n_wrong += !(difference <= allowed);
            y[j] = 0;
        }
    }
    for (int axis = 0; axis < 3; axis++) {
        n_values *= (size_t)exact->n[axis];
    }
    for (size_t i = 0; i < n_values && is_whole_support; i++) {
        n_wrong += exact->values[i] != 0;
    }
    return n_wrong;
}

/* One layer from `in` to `out` by g. */
static size_t check_layer(struct gpu_env *env, const struct gpu_sparse_case *item,
                          const struct vxd_sparse_geometry *g,
                          const struct gpu_coord_set *in, const struct gpu_coord_set *out,
                          struct gpu_conv *conv, bool is_backwards, uint64_t *state)
{
    const int32_t *in_lo = is_backwards ? item->out_lo : item->in_lo;
    const int32_t *in_n = is_backwards ? item->out_n : item->in_n;
    const int32_t *out_lo = is_backwards ? item->in_lo : item->out_lo;
    const int32_t *out_n = is_backwards ? item->in_n : item->out_n;
    size_t n_weights;
    size_t n_wrong;
    struct gpu_map map;
    struct gpu_grid grids[4];
    float *x;
    float *weights;
    float *actual;

    conv->n_taps = g->kernel[0] * g->kernel[1] * g->kernel[2];
    conv->n_in_rows = in->n_rows;
    conv->n_out_rows = out->n_rows;
    n_weights = (size_t)(conv->n_taps * conv->n_in * conv->n_out);
    x = gpu_random_floats(state, (size_t)in->n_rows * (size_t)conv->n_in, false);
    weights = gpu_random_floats(state, n_weights, false);
    conv->in = x;
    conv->weights = weights;
    gpu_map_build(env, g, in, out, &map);
    conv->map = &map;
    actual = gpu_conv_run(env, conv);

    for (size_t i = 0; i < (size_t)in->n_rows * (size_t)conv->n_in; i++) {
        x[i] = gpu_rounded(conv->precision, x[i]);
    }
    for (size_t i = 0; i < n_weights; i++) {
        weights[i] = gpu_rounded(conv->precision, weights[i]);
    }
    for (int i = 0; i < 4; i++) {
        gpu_grid_make(&grids[i], i < 2 ? in_lo : out_lo, i < 2 ? in_n : out_n,
                      item->n_samples, i < 2 ? conv->n_in : conv->n_out);
    }
    fill_grid(&grids[0], in, x, false);
    fill_grid(&grids[1], in, x, true);
    gpu_grid_conv(&grids[0], g, weights, &grids[2]);
    for (size_t i = 0; i < n_weights; i++) {
        weights[i] = fabsf(weights[i]);
    }
    gpu_grid_conv(&grids[1], g, weights, &grids[3]);
    n_wrong = compare(env, conv, out, actual, &grids[2], &grids[3],
                      !is_backwards && item->rule == VXD_DERIVE_SUPPORT &&
                          !gpu_sparse_case_is_subm(item));
    for (int i = 0; i < 4; i++) {
        gpu_grid_free(&grids[i]);
    }
    gpu_map_free(env, &map);
    free(actual);
    free(weights);
    free(x);
    return n_wrong;
}

static void check_case(struct gpu_env *env, int number, int n_in, int n_out,
                       enum vxd_net_precision precision)
{
    uint64_t state = (uint64_t)number + 99;
    struct gpu_conv conv = {.n_in = n_in, .n_out = n_out, .precision = precision};
    struct gpu_sparse_case item;
    struct vxd_sparse_geometry back;
    struct gpu_coord_set in;
    struct gpu_coord_set out;
    size_t n_wrong;

    gpu_sparse_case_make(&item, number);
    gpu_sparse_case_coord_sets(env, &item, &in, &out);
    n_wrong = check_layer(env, &item, &item.geometry, &in, &out, &conv, false, &state);
    back = item.geometry; /* inverse: the transposed convolution at the saved set */
    back.transposed = !back.transposed;
    n_wrong += check_layer(env, &item, &back, &out, &in, &conv, true, &state);
    if (n_wrong > 0) {
        (void)fprintf(stderr, "%s: case %d, %d to %d, precision %d: %zu values\n",
                      env->name, number, n_in, n_out, (int)precision, n_wrong);
    }
    CHECK_INT(n_wrong, 0);
    gpu_coord_set_free(env, &in);
    gpu_coord_set_free(env, &out);
    gpu_sparse_case_free(&item);
}

static void narrow_case(struct gpu_env *env, int number, enum vxd_net_precision precision)
{
    static const int channels[8] = {1, 3, 16, 5, 17, 2, 33, 8};

    check_case(env, number, channels[number % 8], channels[number / 3 % 8], precision);
}

static void random_cases(struct gpu_env *env)
{
    for (int number = 0; number < vxd_test_rounds(N_CASES); number++) {
        narrow_case(env, number, VXD_NET_FP32);
    }
}

static void test_conv_of_random_geometry_equals_dense_double(void)
{
    gpu_each_backend(random_cases);
}

static void precisions(struct gpu_env *env)
{
    for (int number = 0; number < vxd_test_rounds(60); number++) {
        narrow_case(env, number, (enum vxd_net_precision)(1 + number % 3));
    }
}

/* Every width of CUDA's tiles, with numbers of channels that fill them and that do
 * not, in every precision; for the CPU, which has one kind of tile, some of them. */
static void wide(struct gpu_env *env)
{
    static const int channels[11][2] = {{16, 16},  {24, 32},  {32, 64},  {64, 96},
                                        {96, 96},  {40, 56},  {8, 128},  {128, 72},
                                        {72, 136}, {64, 192}, {144, 144}};

    for (int i = 0; i < 44; i += gpu_is_cuda(env) ? 1 : 7) {
        check_case(env, 5 * (i % 7) + i / 11, channels[i % 11][0], channels[i % 11][1],
                   (enum vxd_net_precision)(i / 11));
    }
}

static void test_conv_of_each_precision_keeps_its_bound(void)
{
    gpu_each_backend(precisions);
}

static void test_conv_of_wide_channels_keeps_its_bound(void)
{
    gpu_each_backend(wide);
}

/* One layer with a coordinate set made of n coordinates; returns the result and its
 * number of rows. */
static float *layer_of(struct gpu_env *env, const struct gpu_sparse_case *item, size_t n,
                       const struct gpu_conv *conv, uint32_t *n_rows)
{
    const struct vxd_sparse_geometry *g = &item->geometry;
    struct gpu_sparse_case some = *item;
    struct gpu_conv run = *conv;
    struct gpu_coord_set in;
    struct gpu_coord_set out;
    struct gpu_map map;
    float *result;

    some.n = n;
    gpu_sparse_case_coord_sets(env, &some, &in, &out);
    gpu_map_build(env, g, &in, &out, &map);
    run.n_taps = g->kernel[0] * g->kernel[1] * g->kernel[2];
    run.n_in_rows = in.n_rows;
    run.n_out_rows = out.n_rows;
    run.map = &map;
    result = gpu_conv_run(env, &run);
    *n_rows = out.n_rows;
    gpu_map_free(env, &map);
    gpu_coord_set_free(env, &in);
    gpu_coord_set_free(env, &out);
    return result;
}

/* Moves the coordinates of sample 0 to the front; returns how many there are. */
static size_t first_sample(struct gpu_sparse_case *item)
{
    size_t n = 0;

    for (size_t i = 0; i < item->n; i++) {
        int32_t c[4];

        memcpy(c, item->coords + 4 * i, sizeof c);
        if (c[0] == 0) {
            memcpy(item->coords + 4 * i, item->coords + 4 * n, sizeof c);
            memcpy(item->coords + 4 * n++, c, sizeof c);
        }
    }
    return n;
}

/* How many values of n rows have other bits with few rows than with many; prints the
 * first. */
static size_t count_other_bits(const struct gpu_env *env, const struct gpu_conv *conv,
                               const float *few, const float *many, size_t n_rows)
{
    size_t n = n_rows * (size_t)conv->n_out;
    size_t first = n;
    size_t n_other = 0;

    for (size_t i = 0; i < n; i++) {
        if (memcmp(&few[i], &many[i], sizeof *few) != 0) {
            first = n_other++ == 0 ? i : first;
        }
    }
    if (n_other > 0) {
        (void)fprintf(stderr,
                      "%s: %d to %d, precision %d: %zu of %zu values, the first of row "
                      "%zu, channel %zu: %a, among many rows %a\n",
                      env->name, conv->n_in, conv->n_out, (int)conv->precision, n_other,
                      n, first / (size_t)conv->n_out, first % (size_t)conv->n_out,
                      (double)few[first], (double)many[first]);
    }
    return n_other;
}

static void batches(struct gpu_env *env)
{
    for (int number = 0; number < vxd_test_rounds(48); number++) {
        uint64_t state = (uint64_t)number;
        struct gpu_conv conv = {.n_in = 8 + number % 5 * 8,
                                .n_out = 10 + number % 7 * 9,
                                .precision = (enum vxd_net_precision)(number % 4)};
        struct gpu_sparse_case item;
        size_t n_first;
        uint32_t n_rows;
        float *x;
        float *weights;
        float *batched;
        float *alone;

        gpu_sparse_case_make(&item, number);
        n_first = first_sample(&item);
        x = gpu_random_floats(&state, item.n * (size_t)conv.n_in, false);
        weights =
            gpu_random_floats(&state, (size_t)(343 * conv.n_in * conv.n_out), false);
        conv.in = x;
        conv.weights = weights;
        batched = layer_of(env, &item, item.n, &conv, &n_rows);
        alone = layer_of(env, &item, n_first, &conv, &n_rows);
        CHECK_INT(count_other_bits(env, &conv, alone, batched, n_rows), 0);
        free(alone);
        free(batched);
        free(weights);
        free(x);
        gpu_sparse_case_free(&item);
    }
}

static void test_conv_batched_equals_alone_bit_for_bit(void)
{
    gpu_each_backend(batches);
}

/* Two fifths of the cells of two cubes: a small one of sample 0, a large one of sample 1. */
static size_t fill_boxes(uint64_t *state, int small, int large, int32_t *coords)
{
    const int sides[2] = {small, large};
    size_t n = 0;

    for (int sample = 0; sample < 2; sample++) {
        int side = sides[sample];

        for (int i = 0; i < side * side * side; i++) {
            const int32_t c[4] = {sample, i / side / side, i / side % side, i % side};

            if (gpu_random(state) % 5 < 2) {
                memcpy(coords + 4 * n++, c, sizeof c);
            }
        }
    }
    return n;
}

/* The number of rows decides how a GPU divides a layer (tiles of 64 to 256 rows, of up
 * to 128 channels, with several stages in each slot of the pipeline), but must not
 * change the result. */
static void many_rows(struct gpu_env *env)
{
    static const int channels[5][2] = {
        {40, 96}, {24, 144}, {72, 128}, {40, 32}, {6, 256}};
    const struct vxd_sparse_geometry g = {
        {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, false};
    const int large = gpu_is_cuda(env) ? 66 : 16;
    size_t n_cells = (size_t)(12 * 12 * 12 + large * large * large);

    for (int i = 0; i < 20; i += gpu_is_cuda(env) ? 1 : 3) {
        uint64_t state = (uint64_t)i + 5;
        struct gpu_conv conv = {.n_in = channels[i / 4][0],
                                .n_out = channels[i / 4][1],
                                .precision = (enum vxd_net_precision)(i % 4)};
        struct gpu_sparse_case item = {.geometry = g, .n_samples = 2};
        uint32_t n_rows;
        size_t n_first;
        float *x;
        float *weights;
        float *many;
        float *few;

        item.coords = gpu_alloc(n_cells * 4 * sizeof *item.coords);
        item.n = fill_boxes(&state, 12, large, item.coords);
        n_first = first_sample(&item);
        x = gpu_random_floats(&state, item.n * (size_t)conv.n_in, false);
        weights = gpu_random_floats(&state, (size_t)(27 * conv.n_in * conv.n_out), false);
        conv.in = x;
        conv.weights = weights;
        many = layer_of(env, &item, item.n, &conv, &n_rows);
        few = layer_of(env, &item, n_first, &conv, &n_rows);
        REQUIRE(n_rows == n_first);
        CHECK_INT(count_other_bits(env, &conv, few, many, n_rows), 0);
        free(few);
        free(many);
        free(weights);
        free(x);
        gpu_sparse_case_free(&item);
    }
}

static void test_conv_of_many_rows_equals_few_bit_for_bit(void)
{
    gpu_each_backend(many_rows);
}

/* Rows for which no tap has an input, after a layer that leaves NaN wherever rows were
 * stored. */
static void no_taps(struct gpu_env *env)
{
    static const int32_t here[4] = {0, 0, 0, 0};
    static const int32_t there[8] = {0, 50, 50, 50, 0, 50, 50, 60};
    static const int32_t unbounded[3] = {0, 0, 0};
    const struct vxd_sparse_geometry g = {
        {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, false};

    for (int precision = 0; precision < 4; precision++) {
        float x[16];
        float weights[27 * 16 * 24];
        float bias[24];
        struct gpu_conv conv = {.n_in_rows = 1,
                                .n_taps = 27,
                                .n_in = 16,
                                .n_out = 24,
                                .precision = (enum vxd_net_precision)precision,
                                .in = x,
                                .weights = weights,
                                .bias = bias};
        struct gpu_coord_set in;

        for (int i = 0; i < 16; i++) {
            x[i] = NAN;
        }
        for (int i = 0; i < 27 * 16 * 24; i++) {
            weights[i] = 1;
        }
        for (int i = 0; i < 24; i++) {
            bias[i] = (float)i - 4;
        }
        CHECK_INT(gpu_coord_set_make(env, here, 1, 1, unbounded, 1, NULL, &in), VXD_OK);
        for (int is_there = 0; is_there < 2; is_there++) {
            struct gpu_coord_set out;
            struct gpu_map map;
            float *y;

            CHECK_INT(is_there
                          ? gpu_coord_set_make(env, there, 2, 1, unbounded, 2, NULL, &out)
                          : gpu_coord_set_make(env, here, 1, 1, unbounded, 1, NULL, &out),
                      VXD_OK);
            gpu_map_build(env, &g, &in, &out, &map);
            conv.map = &map;
            conv.n_out_rows = out.n_rows;
            y = gpu_conv_run(env, &conv);
            for (uint32_t i = 0; i < out.n_rows * 24; i++) {
                CHECK(is_there ? y[i] == bias[i % 24] : isnan(y[i]));
            }
            free(y);
            gpu_map_free(env, &map);
            gpu_coord_set_free(env, &out);
        }
        gpu_coord_set_free(env, &in);
    }
}

static void test_conv_of_rows_without_taps_is_the_bias(void)
{
    gpu_each_backend(no_taps);
}

/* Three voxels in a row and one alone; the middle tap's neighbour +1 on z (tap 14) has
 * infinite weights: only rows that read by it get infinity. A NaN of one row reaches
 * only the rows that read it. */
static void missing_taps(struct gpu_env *env)
{
    static const int32_t coords[16] = {0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 9, 9, 9};
    static const int32_t unbounded[3] = {0, 0, 0};
    const struct vxd_sparse_geometry g = {
        {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, false};

    for (int i = 0; i < 8; i++) {
        bool is_infinite = i / 4 == 0;
        struct gpu_conv conv = {
            .n_in = 8, .n_out = 16, .precision = (enum vxd_net_precision)(i % 4)};
        struct gpu_sparse_case item = {.geometry = g, .n_samples = 1, .n = 4};
        float weights[27 * 8 * 16];
        float x[4 * 8];
        uint32_t n_rows;
        float *y;

        memcpy(item.shape, unbounded, sizeof unbounded);
        item.coords = gpu_alloc(sizeof coords);
        memcpy(item.coords, coords, sizeof coords);
        for (int k = 0; k < 27 * 8 * 16; k++) {
            weights[k] = is_infinite && k / (8 * 16) == 14 ? INFINITY : 1;
        }
        for (int k = 0; k < 32; k++) {
            x[k] = !is_infinite && k == 3 ? NAN : 1;
        }
        conv.in = x;
        conv.weights = weights;
        y = layer_of(env, &item, 4, &conv, &n_rows);
        REQUIRE(n_rows == 4);
        for (int row = 0; row < 4; row++) {
            float finite = row == 1 ? 24.0f : row == 3 ? 8.0f : 16.0f;
            bool is_hit = row < 2;

            for (int k = 0; k < 16; k++) {
                float value = y[row * 16 + k];

                CHECK(is_hit ? (is_infinite ? value == INFINITY : isnan(value))
                             : value == finite);
            }
        }
        free(y);
        gpu_sparse_case_free(&item);
    }
}

static void test_conv_of_missing_taps_takes_nothing_from_them(void)
{
    gpu_each_backend(missing_taps);
}

/* More rows on the device than the call's max_rows. */
static void too_many_rows(struct gpu_env *env)
{
    static const float one[1] = {1};
    const uint32_t n = 5;
    struct vxd_buffer n_rows = gpu_to_device(env, &n, sizeof n);
    struct vxd_buffer in = gpu_to_device(env, NULL, 64);
    struct vxd_buffer out = gpu_to_device(env, NULL, 64);
    struct vxd_conv_weights weights;
    struct vxd_conv_args args = {.n_rows = n_rows.ptr,
                                 .max_rows = 4,
                                 .weights = &weights,
                                 .in = {in.ptr, 1, 1},
                                 .out = {out.ptr, 1, 1}};
    struct vxd_err err = {0};
    unsigned char *bytes;

    REQUIRE(vxd_conv_weights_pack(env->queue, one, 1, 1, 1, VXD_NET_FP32, &weights,
                                  &err) == VXD_OK);
    CHECK_INT(vxd_conv_run(env->queue, &args, &err), VXD_OK);
    CHECK_INT(vxd_queue_wait(env->queue, &err), VXD_RESOURCE_EXHAUSTED);
    bytes = gpu_to_host(env, &out);
    CHECK_INT(bytes[0], 0xa5);
    free(bytes);
    vxd_device_free(env->queue, &weights.data);
    vxd_device_free(env->queue, &n_rows);
    vxd_device_free(env->queue, &in);
    vxd_device_free(env->queue, &out);
    gpu_wait(env);
}

static void test_conv_of_more_rows_than_room_is_refused(void)
{
    gpu_each_backend(too_many_rows);
}

/* The weights of tap t are t + 1, and the only voxel is at (0, 0, 0), so an output's
 * value names the tap that reads it; compared with the formula of the contract. */
static void impulse(struct gpu_env *env)
{
    static const int32_t origin[4] = {0, 0, 0, 0};
    static const int32_t unbounded[3] = {0, 0, 0};
    const struct vxd_sparse_geometry g = {
        {3, 2, 5}, {1, 1, 1}, {1, 0, 2}, {1, 1, 1}, false};
    float weights[30];
    float one = 1;
    struct gpu_conv conv = {.n_in_rows = 1,
                            .n_out_rows = 30,
                            .n_taps = 30,
                            .n_in = 1,
                            .n_out = 1,
                            .in = &one,
                            .weights = weights};
    struct gpu_coord_set in;
    struct gpu_coord_set out;
    struct gpu_map map;
    float *actual;

    for (int i = 0; i < 30; i++) {
        weights[i] = (float)(i + 1);
    }
    CHECK_INT(gpu_coord_set_make(env, origin, 1, 1, unbounded, 1, NULL, &in), VXD_OK);
    CHECK_INT(gpu_coord_set_derive(env, VXD_DERIVE_SUPPORT, &g, &in, unbounded, 30, &out),
              VXD_OK);
    REQUIRE(out.n_rows == 30);
    gpu_map_build(env, &g, &in, &out, &map);
    conv.map = &map;
    actual = gpu_conv_run(env, &conv);
    for (size_t i = 0; i < 30; i++) {
        const int32_t *o = out.coords + 4 * i;
        /* 0 = o - p + r on each axis. */
        int rx = 1 - o[1];
        int ry = 0 - o[2];
        int rz = 2 - o[3];

        CHECK_INT(actual[i], (rx * 2 + ry) * 5 + rz + 1);
    }
    free(actual);
    gpu_map_free(env, &map);
    gpu_coord_set_free(env, &in);
    gpu_coord_set_free(env, &out);
}

static void test_conv_of_an_impulse_reproduces_the_kernel_in_tap_order(void)
{
    gpu_each_backend(impulse);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_conv_of_random_geometry_equals_dense_double),
    VXD_TEST(test_conv_of_each_precision_keeps_its_bound),
    VXD_TEST(test_conv_of_wide_channels_keeps_its_bound),
    VXD_TEST(test_conv_batched_equals_alone_bit_for_bit),
    VXD_TEST(test_conv_of_many_rows_equals_few_bit_for_bit),
    VXD_TEST(test_conv_of_rows_without_taps_is_the_bias),
    VXD_TEST(test_conv_of_missing_taps_takes_nothing_from_them),
    VXD_TEST(test_conv_of_more_rows_than_room_is_refused),
    VXD_TEST(test_conv_of_an_impulse_reproduces_the_kernel_in_tap_order),
};

VXD_TEST_MAIN(tests)
